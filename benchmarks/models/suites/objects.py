"""Objects out of texts: every value that the text names is compared."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Literal

from pydantic import BaseModel, Field

from ..cases import SEEN, Case, Outcome, Suite, agree
from ..ways import Way

_ROOM = 128
_DATE = r"^\d{4}-\d{2}-\d{2}$"


class Person(BaseModel):
    name: str
    age: int
    city: str


class Review(BaseModel):
    sentiment: Literal["positive", "negative", "neutral"]
    stars: int = Field(ge=1, le=5)


class Meeting(BaseModel):
    title: str
    date: str = Field(pattern=_DATE)
    people: list[str]


class Line(BaseModel):
    product: str
    quantity: int


class Invoice(BaseModel):
    number: str
    lines: list[Line]


class Place(BaseModel):
    city: str
    country: str | None = None


class Trip(BaseModel):
    traveller: str
    by: Literal["train", "plane", "car", "ship"]
    start: Place
    end: Place
    nights: int | None = None


class Ingredient(BaseModel):
    what: str
    grams: int


class Recipe(BaseModel):
    dish: str
    serves: int
    ingredients: list[Ingredient]


class Bug(BaseModel):
    area: Literal["login", "payment", "search"]
    severity: int = Field(ge=1, le=4)
    reporter: str
    due: str | None = Field(None, pattern=_DATE)


class Contact(BaseModel):
    name: str
    phone: str | None = None


class Flat(BaseModel):
    street: str
    rooms: float
    rent: int
    balcony: bool
    contact: Contact


_SEEN: Sequence[tuple[type[BaseModel], str, dict[str, Any]]] = [
    (Person, "At 71, Luis Ortega still walks every day along the river in Sevilla, his home.",
        {"name": "Luis Ortega", "age": 71, "city": "Sevilla"}),
    (Person, "Meet Mei Tanaka, a nurse from Kyoto who turned fifty last week.",
        {"name": "Mei Tanaka", "age": 50, "city": "Kyoto"}),
    (Review, "It is okay, nothing special. 3 of 5.", {"sentiment": "neutral", "stars": 3}),
    (Review, "Worst purchase ever, zero stars if I could, so 1.",
        {"sentiment": "negative", "stars": 1}),
    (Meeting, "On 5 January 2027 Ines, Chen and Bob meet for the kickoff.",
        {"date": "2027-01-05", "people": ["Ines", "Chen", "Bob"]}),
    (Meeting, "Retro with Kim and Paul on December 24, 2026.",
        {"title": "Retro", "date": "2026-12-24", "people": ["Kim", "Paul"]}),
    (Meeting, "Mia and Noah: design talk, 15.04.2027.",
        {"title": "design talk", "date": "2027-04-15", "people": ["Mia", "Noah"]}),
    (Invoice, "Invoice A-17: 2 lamps, 4 chairs.",
        {"number": "A-17", "lines": [{"product": ("lamp", "lamps"), "quantity": 2},
            {"product": ("chair", "chairs"), "quantity": 4}]}),
    (Invoice, "Invoice X9: one table.",
        {"number": "X9", "lines": [{"product": "table", "quantity": 1}]}),
    (Invoice, "Bill 77 lists 6 cups, 6 plates and 1 pot.",
        {"number": "77", "lines": [{"product": ("cup", "cups"), "quantity": 6},
            {"product": ("plate", "plates"), "quantity": 6}, {"product": "pot", "quantity": 1}]}),
    (Trip, "Eva takes the train from Vienna to Rome and stays three nights.",
        {"traveller": "Eva", "by": "train", "start": {"city": "Vienna"}, "end": {"city": "Rome"},
            "nights": 3}),
    (Trip, "Omar flew from Cairo, Egypt, to Paris, France.",
        {"traveller": "Omar", "by": "plane", "start": {"city": "Cairo", "country": "Egypt"},
            "end": {"city": "Paris", "country": "France"}, "nights": None}),
    (Trip, "By car: Tom Hart, Leeds to Dover, back the same day, no night.",
        {"traveller": "Tom Hart", "by": "car", "start": {"city": "Leeds"},
            "end": {"city": "Dover"}, "nights": (0, None)}),
    (Trip, "Lena's ship leaves Oslo for Kiel; she comes back after 2 nights.",
        {"traveller": "Lena", "by": "ship", "start": {"city": "Oslo"}, "end": {"city": "Kiel"},
            "nights": 2}),
]  # fmt: skip
_NEW: Sequence[tuple[type[BaseModel], str, dict[str, Any]]] = [
    (Recipe, "Pancakes for four: 250 g of flour, 30 g of sugar.",
        {"dish": "Pancakes", "serves": 4, "ingredients": [
            {"what": "flour", "grams": 250}, {"what": "sugar", "grams": 30}]}),
    (Recipe, "You need 500 g of tomatoes for this tomato soup. It is enough for two people.",
        {"dish": "tomato soup", "serves": 2, "ingredients": [
            {"what": ("tomatoes", "tomato"), "grams": 500}]}),
    (Recipe, "Rice salad, serves 6. Rice: 300 g. Peas: 150 g. Ham: 100 g.",
        {"dish": "Rice salad", "serves": 6, "ingredients": [{"what": "rice", "grams": 300},
            {"what": ("peas", "pea"), "grams": 150}, {"what": "ham", "grams": 100}]}),
    (Recipe, "One kilogram of potatoes makes mashed potatoes for five.",
        {"dish": "mashed potatoes", "serves": 5, "ingredients": [
            {"what": ("potatoes", "potato"), "grams": 1000}]}),
    (Bug, "Dana reports: nobody can pay by card. Severity 1, to be fixed by 2027-02-03.",
        {"area": "payment", "severity": 1, "reporter": "Dana", "due": "2027-02-03"}),
    (Bug, "Severity 3: the search finds nothing in capitals (seen by Omar).",
        {"area": "search", "severity": 3, "reporter": "Omar", "due": None}),
    (Bug, "Kim cannot log in. Severity 2. Due on 9 March 2027.",
        {"area": "login", "severity": 2, "reporter": "Kim", "due": "2027-03-09"}),
    (Bug, "A small thing, severity 4, from Lea Brandt: the sign-in page has a typo.",
        {"area": "login", "severity": 4, "reporter": "Lea Brandt", "due": None}),
    (Flat, "2.5 rooms with a balcony in Park Street, 900 a month. Call Eva Lind, 555-0134.",
        {"street": "Park Street", "rooms": 2.5, "rent": 900, "balcony": True,
            "contact": {"name": "Eva Lind", "phone": "555-0134"}}),
    (Flat, "Mill Road, three rooms, no balcony, rent 1200. Ask for Mr Osei.",
        {"street": "Mill Road", "rooms": 3, "rent": 1200, "balcony": False,
            "contact": {"name": ("Mr Osei", "Osei"), "phone": None}}),
    (Flat, "For rent: one room in Hill Lane. 450 a month, balcony. Contact: Noor, 555-0177.",
        {"street": "Hill Lane", "rooms": 1, "rent": 450, "balcony": True,
            "contact": {"name": "Noor", "phone": "555-0177"}}),
    (Flat, "Rosa Diaz lets four rooms in Lake Avenue without a balcony, 1,650 a month.",
        {"street": "Lake Avenue", "rooms": 4, "rent": 1650, "balcony": False,
            "contact": {"name": "Rosa Diaz", "phone": None}}),
]  # fmt: skip
KINDS = {kind.__name__: kind for kind, _, _ in (*_NEW, *_SEEN)}


def _cases() -> Iterator[Case]:
    for group, tasks in (("new", _NEW), (SEEN, _SEEN)):
        for number, (kind, text, wanted) in enumerate(tasks, 1):
            data = {"kind": kind.__name__, "schema": kind.model_json_schema()}
            data |= {"text": text, "wanted": wanted}
            yield Case("objects", group, str(number), kind.__name__, data)


def _ask(way: Way, case: Case) -> Outcome:
    kind = KINDS[case.data["kind"]]
    how = {"method": "json_schema"} if way.name == "native" else {}
    model = way.chat(max_tokens=_ROOM).with_structured_output(
        kind, include_raw=True, **how
    )
    got = model.invoke(f"Extract the data from this text: {case.data['text']}")
    return judge(case, got)


def judge(case: Case, got: Any) -> Outcome:
    """Whether an object came, and all its values are those of the text."""
    parsed, error = got["parsed"], got["parsing_error"]
    if parsed is None:
        text = f"{type(error).__name__}: {error}"
        return Outcome(right=False, why="no object", error=text)
    value = parsed.model_dump()
    is_right = agree(value, case.data["wanted"])
    return Outcome(is_right, "" if is_right else "other values", {"value": value})


def _schema(case: Case) -> str:
    return json.dumps(case.data["schema"])


OBJECTS = Suite("objects", ("svc", "native", "plain"), _cases, _ask, _schema)
