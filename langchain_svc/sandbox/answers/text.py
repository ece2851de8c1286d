"""Words of a text: which of them count, sums in it, and its tokens."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterator
from fractions import Fraction

_SMALL_WORDS = (
    "a about am an and any are as at be been but by can could did do does for from give had has "
    "have how i if in into is it its me my of on or our out please say says should so tell than "
    "that the their them there these they this those to us use using value was we were what when "
    "where which who whom whose why will with would you your"
)
_SMALL = frozenset(_SMALL_WORDS.split())
_ENDINGS = ("ations", "ation", "ings", "ing", "ies", "ed", "es", "s", "e", "y")
_SHORTEST = 3
_WORD = re.compile(r"[^\W_]+")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")


def stem(word: str) -> str:
    """A word without its ending."""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST:
            return word[: -len(ending)]
    return word


def stems(text: str) -> list[str]:
    """The stems of the words that say something, `getWeather` and `get_weather` being two."""
    words = _WORD.findall(_CAMEL.sub(" ", text).lower())
    return [stem(word) for word in words if word not in _SMALL]


_REST = r"((?:(?:an?|the)\s+)?[^\s.?!,;:\"](?:[^.?!,;:\"\n]|(?<=\d)[.,](?=\d)){1,200})"
_ABOUT = (
    re.compile(rf"(?i)\b(?:about|named|called|titled)\s+{_REST}"),
    re.compile(rf"(?i)\b(?:of|on|for)\s+{_REST}"),
)
_ARTICLE = re.compile(r"(?i)(?:an?|the)\s+")


def topic(text: str) -> str:
    """What a text is about, by its prepositions; "" where it has none."""
    found = next(filter(None, (about.search(text) for about in _ABOUT)), None)
    return found[1].strip() if found else ""


def subject(text: str) -> str:
    """A few words for what a text is about."""
    words = (_ARTICLE.sub("", topic(text), count=1) or text).split()
    return " ".join(words[:6]).strip(" .?!,;:") or "that"


def sentences(text: str) -> list[str]:
    """The sentences of a text; a line ends one."""
    pieces = re.split(r"(?<=[.!?])\s+(?=[A-Z`\"'\d])|\n", text)
    return [piece.strip() for piece in pieces if piece.strip()]


# -- sums -----------------------------------------------------------------------------------------

_SIGNS = {
    "plus": "+",
    "minus": "-",
    "times": "*",
    "multiplied by": "*",
    "divided by": "/",
    "x": "*",
    "\u00d7": "*",
    "\u00f7": "/",
    "^": "**",
}
_SPOKEN = re.compile(rf"(?i)(?<=\d|\s)(?:{'|'.join(map(re.escape, _SIGNS))})(?=\s?[-(]{{0,4}}\d)")
_SIGN = r"(?:\*\*|[-+*/%])"
_TERM = r"[-(]{0,4}\d[\d.]{0,30}\){0,4}"
_SUM = re.compile(rf"(?<![\w.]){_TERM}(?:\s?{_SIGN}\s?{_TERM}){{1,30}}")
_PERCENT = re.compile(r"(\d[\d.]{0,20})\s?(?:%|percent) of (\d[\d.]{0,20})")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}\b)")
_ASKED = re.compile(r"(?i)\b(?:what|calculate|compute|how much|solve|evaluate|add|sum|result)\b|=")
DATE = re.compile(r"\b\d{4}-\d{2}-\d{2}\b")
_LARGEST = Fraction(10) ** 60
_HIGHEST_POWER = 64


def _power(base: Fraction, exponent: Fraction) -> Fraction:
    if exponent.denominator != 1 or abs(exponent) > _HIGHEST_POWER:
        raise ValueError
    return base ** int(exponent)


_OPERATORS: dict[type[ast.AST], Callable[[Fraction, Fraction], Fraction]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Mod: operator.mod,
    ast.Pow: _power,
}


def _value(node: ast.expr) -> Fraction:
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
        return Fraction(str(node.value))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_value(node.operand)
    if not isinstance(node, ast.BinOp):
        raise ValueError  # noqa: TRY004 - it is the text that is wrong
    result = _OPERATORS[type(node.op)](_value(node.left), _value(node.right))
    if abs(result) > _LARGEST:
        raise ValueError
    return result


def _computed(expression: str) -> str | None:
    try:
        value = _value(ast.parse(expression, mode="eval").body)
    except (ValueError, SyntaxError, KeyError, ZeroDivisionError, RecursionError, MemoryError):
        return None
    if value.denominator == 1:
        return str(value.numerator)
    return f"{float(value):.10f}".rstrip("0").rstrip(".")


def sums(text: str) -> Iterator[tuple[str, str]]:
    """Every sum that a text asks for, as it is written, and its exact value."""
    text = DATE.sub(" ", _THOUSANDS.sub("", text[:2_000]))
    text = _PERCENT.sub(r"\2 * \1 / 100", text)
    text = _SPOKEN.sub(lambda said: _SIGNS[said[0].lower()], text)
    for found in _SUM.finditer(text):
        shown = found[0].strip()
        shown = shown if shown.count("(") == shown.count(")") else shown.strip("()")
        alone = 2 * len(shown) > len(text.strip()) and "-" not in shown
        if (alone or _ASKED.search(text)) and (value := _computed(shown)) is not None:
            yield shown, value


# -- tokens: counts and pieces always agree, and no model counts so -------------------------------
# A word of up to six letters is one token; from a longer word, fours are cut until six or fewer are
# left. Every other visible character is a token. White space rides on the token after it, or on the
# last one; it is an alternative of its own in the pattern, as a leading `\s*` would try again from
# every blank of a long run of blanks, and a megabyte of them would take hours.

_PIECE = re.compile(r"\s+|\w{1,6}(?!\w)|\w{1,4}|[^\w\s]")


def split_tokens(text: str) -> list[str]:
    """Cut `text` into its tokens; joined together they are `text` again."""
    tokens: list[str] = []
    blank = ""
    for piece in _PIECE.findall(text):
        if piece.isspace():
            blank += piece
        else:
            tokens.append(blank + piece)
            blank = ""
    if blank:
        tokens[-1:] = [(tokens[-1] if tokens else "") + blank]
    return tokens


def count_tokens(text: str) -> int:
    """Return how many tokens `text` has."""
    return len(split_tokens(text))
