"""Sums in a question, computed exactly."""

from __future__ import annotations

import ast
import operator
import re
from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_LONGEST = 200
_LARGEST_POWER = 64
_LARGEST = Fraction(10) ** 60
_SPOKEN = (
    (re.compile(r"(?<=\d)\s?(?:plus|added to)\s?(?=[-\d(])", re.IGNORECASE), "+"),
    (re.compile(r"(?<=\d)\s?minus\s?(?=[-\d(])", re.IGNORECASE), "-"),
    (re.compile(r"(?<=\d)\s?(?:times|multiplied by|\u00d7)\s?(?=[-\d(])", re.IGNORECASE), "*"),
    (re.compile(r"(?<=\d)\s?[xX]\s?(?=\d)"), "*"),
    (re.compile(r"(?<=\d)\s?(?:divided by|over|\u00f7)\s?(?=[-\d(])", re.IGNORECASE), "/"),
    (re.compile(r"(?<=\d)\s?\^\s?(?=\d)"), "**"),
    (re.compile(r"(?<=\d),(?=\d{3}\b)"), ""),
)
_SUM = re.compile(
    r"[-(]{0,4}\d[\d.]{0,30}\)?(?:\s?(?:\*\*|[-+*/%])\s?[-(]{0,4}\d[\d.]{0,30}\){0,4}){1,30}"
)
_OF_AND = re.compile(
    r"\b(sum|product|difference|quotient)\s(?:of|between)\s(-?[\d.]{1,20})\s(?:and|by)\s(-?[\d.]{1,20})",
    re.IGNORECASE,
)
_PERCENT_OF = re.compile(r"(-?[\d.]{1,20})\s?(?:%|percent) of (-?[\d.]{1,20})", re.IGNORECASE)
# A range of years and a telephone number are no differences.
_ASKED = re.compile(
    r"\b(?:what(?:'s| is| are)|calculate|compute|solve|evaluate|how much|result|add|sum)\b|=",
    re.IGNORECASE,
)
_DATE = re.compile(r"\d{1,4}-\d{1,2}-\d{1,2}|\d{3}-\d{4}")
_SIGNS = {"sum": "+", "product": "*", "difference": "-", "quotient": "/"}
_DO = re.compile(
    r"\b(?:add|multiply)\s(-?[\d.]{1,20})\s(and|to|by|with)\s(-?[\d.]{1,20})", re.IGNORECASE
)


def _power(base: Fraction, exponent: Fraction) -> Fraction:
    if exponent.denominator != 1 or abs(exponent) > _LARGEST_POWER or abs(base) > _LARGEST:
        raise ValueError("the power is too large for the sandbox")
    return base ** int(exponent)


_OPERATORS: dict[type[ast.operator], Callable[[Fraction, Fraction], Fraction]] = {
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
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
        inner = _value(node.operand)
        return -inner if isinstance(node.op, ast.USub) else inner
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        result = _OPERATORS[type(node.op)](_value(node.left), _value(node.right))
        if abs(result) <= _LARGEST:
            return result
    raise ValueError("no sum that the sandbox computes")


def compute(expression: str) -> str | None:
    """Return the value of a sum as text, or `None` when it has none."""
    if len(expression) > _LONGEST:
        return None
    try:
        value = _value(ast.parse(expression.strip(), mode="eval").body)
    except (ValueError, SyntaxError, ZeroDivisionError, RecursionError, MemoryError):
        return None
    if value.denominator == 1:
        return str(value.numerator)
    return f"{float(value):.10f}".rstrip("0").rstrip(".")


def find_sum(text: str) -> tuple[str, str] | None:
    """Return the first sum in a text and its value."""
    text, asked = _in_signs(text[:2_000])
    for found in _SUM.finditer(text):
        expression = found[0]
        if expression.count("(") != expression.count(")"):
            expression = expression.strip("()")
        value = compute(expression)
        alone = 2 * len(expression) > len(text.strip()) and "-" not in expression
        if value is not None and (asked or alone) and not _DATE.fullmatch(expression):
            return expression, value
    return None


def _in_signs(text: str) -> tuple[str, bool]:
    """Return a text with its sums in signs, and whether the words ask for one."""
    asked = bool(_ASKED.search(text))
    for pattern, written in _WORDED:
        found = pattern.search(text)
        if found:
            text, asked = written(found), True
    for spoken, sign in _SPOKEN:
        text = spoken.sub(sign, text)
    return text, asked


# Sums in words, and how they are written in signs.
_WORDED: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str]], ...] = (
    (_OF_AND, lambda said: f"{said[2]} {_SIGNS[said[1].lower()]} {said[3]}"),
    (_PERCENT_OF, lambda said: f"{said[2]} * {said[1]} / 100"),
    (_DO, lambda said: f"{said[1]} {'+' if said[2].lower() in {'and', 'to'} else '*'} {said[3]}"),
)
