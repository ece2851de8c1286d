"""Small writing by template: stories, haikus, lists; always about the topic that was asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_svc.sandbox.engine._invent import digest, pick
from langchain_svc.sandbox.engine._topic import joke

if TYPE_CHECKING:
    from collections.abc import Callable

MOST_ITEMS = 100

_OPENINGS = (
    "Once there was {topic}, at the edge of a town where nothing was ever in a hurry.",
    "Nobody had expected {topic} that morning, least of all the keeper of the old mill.",
    "The day began with rain, and with {topic} waiting at the door.",
)
_MIDDLES = (
    "At noon the wind turned, and {topic} found a path that no map had shown.",
    "There was a bridge to cross, and {topic} crossed it slowly, counting the planks.",
    "A stranger asked the way, and {topic} answered with a question of its own.",
    "By the river a lamp was burning, and {topic} stayed to see who had lit it.",
    "Somebody laughed in the orchard, and {topic} followed the sound between the trees.",
    "The clock struck four, and {topic} knew that it was time to choose.",
)
_ENDINGS = (
    "In the evening everybody told it differently, but in every version {topic} came home.",
    "When the lights went out, there remained {topic}, and that was enough.",
    "And if the mill still stands, you may meet {topic} in its shade today.",
)


def story(topic: str, seed: str) -> str:
    """Return three short paragraphs, with the topic in nearly every sentence."""
    number = digest(topic, seed)
    middle = [_MIDDLES[(number + step) % len(_MIDDLES)] for step in range(4)]
    parts = (
        [pick(_OPENINGS, topic, seed), middle[0]],
        middle[1:],
        [pick(_ENDINGS, seed, topic), "(A story by template, from the sandbox.)"],
    )
    return "\n\n".join(" ".join(part).format(topic=topic) for part in parts)


_FIRST = ("Morning, and {topic}", "Still air, then {topic}", "Under grey clouds, {topic}")
_SECOND = (
    "waits for the light on the hill",
    "leaves a mark upon the snow",
    "listens to the falling rain",
    "turns the page of a long day",
)
_THIRD = ("and the day begins.", "nobody knows why.", "then it is quiet.", "a bell, far away.")


def haiku(topic: str, number: int) -> str:
    """Return three lines; each number is another haiku."""
    seed = digest(topic) + number
    lines = (_FIRST[seed % 3], _SECOND[seed % 4], _THIRD[(seed // 2) % 4])
    return "\n".join(lines).format(topic=topic)


def _poem(topic: str, number: int) -> str:
    return f"{haiku(topic, number)}\n{haiku(topic, number + 1)}"


def _told_joke(topic: str, number: int) -> str:
    return " ".join(joke(topic, digest(topic) + number))


def _sentence(topic: str, number: int) -> str:
    return _MIDDLES[(digest(topic) + number) % len(_MIDDLES)].format(topic=topic)


# What can be written in any number of pieces.
PIECES: dict[str, Callable[[str, int], str]] = {
    "haiku": haiku,
    "poem": _poem,
    "joke": _told_joke,
    "sentence": _sentence,
    "limerick": _poem,
}

KNOWN_LISTS: dict[str, tuple[str, ...]] = {
    "colour": ("red", "blue", "green", "yellow", "purple", "orange", "white", "black"),
    "color": ("red", "blue", "green", "yellow", "purple", "orange", "white", "black"),
    "fruit": ("apple", "pear", "plum", "cherry", "fig", "quince", "lemon", "grape"),
    "vegetable": ("carrot", "leek", "beet", "cabbage", "pea", "onion", "kale", "radish"),
    "animal": ("fox", "heron", "otter", "badger", "owl", "hare", "lynx", "toad"),
    "city": ("Lisbon", "Oslo", "Kyoto", "Lima", "Accra", "Dublin", "Hanoi", "Quito"),
    "country": ("Portugal", "Norway", "Japan", "Peru", "Ghana", "Ireland", "Vietnam", "Ecuador"),
    "planet": (
        "Mercury",
        "Venus",
        "Earth",
        "Mars",
        "Jupiter",
        "Saturn",
        "Uranus",
        "Neptune",
    ),
    "language": ("Portuguese", "Finnish", "Swahili", "Tamil", "Welsh", "Basque", "Thai", "Greek"),
    "number": ("1", "2", "3", "4", "5", "6", "7", "8"),
    "name": ("Ann", "Bo", "Cleo", "Dara", "Emil", "Fay", "Gus", "Hana"),
    "ice cream flavor": ("vanilla", "pistachio", "mango", "coffee", "hazelnut", "plum"),
    "day": ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
}


def singular(word: str) -> str:
    """Return the usual singular of an English plural."""
    if word[:-1] in PIECES or word[:-1] in KNOWN_LISTS:
        return word[:-1]
    for ending, short in (("ies", "y"), ("us", "us"), ("ss", "ss"), ("s", "")):
        if word.endswith(ending):
            return word.removesuffix(ending) + short
    return word


def items_for(thing: str, count: int, topic: str) -> list[str]:
    """Return `count` items of the kind that is asked for, known ones first."""
    count = min(count, MOST_ITEMS)
    thing = thing.lower()
    kind = singular(thing.split()[-1]) if thing.split() else "item"
    if kind in PIECES:
        return [PIECES[kind](topic, number) for number in range(count)]
    known = KNOWN_LISTS.get(singular(thing)) or KNOWN_LISTS.get(kind) or ()
    about = f" about {topic}" if topic.lower() not in thing and topic != "that" else ""
    made = [f"{kind} {number}{about}" for number in range(len(known) + 1, count + 1)]
    return [*known[:count], *made]
