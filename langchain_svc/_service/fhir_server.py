"""A FHIR server: where it is, with which token, and how one patient's record is fetched."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import model_validator

from .._fhir import Page, read_page, read_refusal, record_pages
from ..config import check_url
from .parsers import WholeParser
from .settings import Secret, ServiceSettings, bounded_number, reveal_secret
from .steps import Exchange, Limits, Request

if TYPE_CHECKING:
    from typing_extensions import Self


class FhirServer(ServiceSettings):
    """A server that is not an interface of the service: no key of the service is ever used here."""

    url: str
    """The server's base, such as https://hospital.example/fhir."""

    max_pages: Annotated[int, bounded_number(1, whole=True)] = 100
    """The most pages of one record."""

    @model_validator(mode="after")
    def _check_url(self) -> Self:
        self.__dict__["url"] = check_url(self.url, self.insecure_hosts)
        return self

    @classmethod
    def parted(
        cls, url: str, token: Secret, words: Mapping[str, Any]
    ) -> tuple[FhirServer, dict[str, Any]]:
        """The server that these words set up, and the words that are not about it."""
        own = {name: words[name] for name in words if name in cls.model_fields}
        rest = {name: words[name] for name in words if name not in own}
        return cls(url=url, api_key=token, **own), rest

    def record(self, patient_id: str, searches: Sequence[str]) -> dict[str, Any]:
        """All pages of one patient's record as one Bundle."""
        steps, limits = self._steps(patient_id, searches), self._limits({})
        try:
            url = next(steps)
            while True:
                (page,) = self._pieces(self._exchange(url, patient_id, limits))
                url = steps.send(page)
        except StopIteration as done:
            return done.value  # type: ignore[no-any-return]  # what a generator returns

    async def arecord(self, patient_id: str, searches: Sequence[str]) -> dict[str, Any]:
        """Async version of `record`."""
        steps, limits = self._steps(patient_id, searches), self._limits({})
        try:
            url = next(steps)
            while True:
                (page,) = [p async for p in self._apieces(self._exchange(url, patient_id, limits))]
                url = steps.send(page)
        except StopIteration as done:
            return done.value  # type: ignore[no-any-return]  # the same

    def _steps(
        self, patient_id: str, searches: Sequence[str]
    ) -> Generator[str, Page, dict[str, Any]]:
        return record_pages(
            self.url,
            patient_id,
            searches,
            max_pages=self.max_pages,
            max_bytes=self.max_response_bytes,
        )

    def _exchange(self, url: str, patient_id: str, limits: Limits) -> Exchange[Page]:
        token = reveal_secret(self.api_key)
        request = Request(
            method="GET",
            url=url,
            headers=(
                *((("Authorization", f"Bearer {token}"),) if token else ()),
                *self._headers({"Accept": "application/fhir+json"}, typed=False),
            ),
            private=(patient_id,),
            secrets=(token,) if token else (),
        )
        everything = url.endswith("/$everything")
        return Exchange(
            request,
            limits,
            partial(WholeParser, read_page),
            read_failure=partial(read_refusal, everything=everything),
        )
