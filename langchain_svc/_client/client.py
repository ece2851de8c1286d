"""`Client`: what an object of this package keeps from one call to the next."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Generator
from typing import TYPE_CHECKING, Any, TypeVar

from .._base.lazy import IMPORTING
from ..errors import SvcRequestError
from .steps import Exchange, RetryBudget, origin

if TYPE_CHECKING:
    from .._http.connections import Connections

T = TypeVar("T")


class Client:
    """Runs exchanges, over connections of its own or the client that an exchange brings.

    It knows no settings: an exchange says what is sent, and by which route. A copy or a pickle of
    it begins without connections.

    Attributes:
        retry_budget: What its calls owe a failing service together.
    """

    def __init__(self, retry_budget: RetryBudget | None = None) -> None:
        self.retry_budget: RetryBudget = retry_budget or RetryBudget()
        # By origin, since one interface may be spoken to over TLS or by a proxy, and another not.
        self.connections: dict[str, Connections] = {}

    def read(self, exchange: Exchange[T]) -> Generator[T, None, None]:
        """The pieces of the answer, blocking."""
        connections = self._connections_to(exchange)
        from .drivers import run  # noqa: PLC0415  # it came with the connections

        return run(exchange, connections)

    def aread(self, exchange: Exchange[T]) -> AsyncGenerator[T, None]:
        """The pieces of the answer, on the running event loop."""
        refuse_trio()
        connections = self._connections_to(exchange)
        from .drivers import arun  # noqa: PLC0415  # it came with the connections

        return arun(exchange, connections)

    def _connections_to(self, exchange: Exchange[Any]) -> Connections:
        """The connections to where an exchange goes, made at the first call."""
        place = origin(exchange.request.url)
        connections = self.connections.get(place)
        if connections is None:
            with IMPORTING:  # httpx is imported at the first call
                from .drivers import new_connections  # noqa: PLC0415

            new = new_connections(place, exchange.route)
            connections = self.connections.setdefault(place, new)
        return connections

    def close(self) -> None:
        """Close all connections. The next call opens new ones."""
        for connections in list(self.connections.values()):
            connections.close()

    async def aclose(self) -> None:
        """Close all connections, and wait until those of the running event loop are closed."""
        for connections in list(self.connections.values()):
            await connections.aclose()

    def __copy__(self) -> Client:
        return Client(self.retry_budget)

    def __deepcopy__(self, _: object) -> Client:
        return Client()

    def __reduce__(self) -> tuple[type[Client], tuple[()]]:
        return Client, ()


class LentClient(Client):
    """The client of another object, which alone closes the connections."""

    def __init__(self, owner: Client) -> None:
        super().__init__(owner.retry_budget)
        self.connections = owner.connections

    def close(self) -> None:
        """Leave the connections to their owner."""

    async def aclose(self) -> None:
        """Leave the connections to their owner."""


def refuse_trio() -> None:
    """LangChain's asynchronous methods are asyncio's; on trio they fail in ways that say little."""
    trio = sys.modules.get("trio")
    if trio is None:
        return
    try:
        trio.lowlevel.current_task()  # trio before 0.28 has no `in_trio_task`
    except RuntimeError:
        return
    raise SvcRequestError(
        "Asynchronous calls run on asyncio, and this is trio. Call the blocking method in a "
        "thread: await trio.to_thread.run_sync(model.invoke, question)"
    )
