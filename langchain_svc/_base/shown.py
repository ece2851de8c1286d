"""What people look at: numbers without an exponent, amounts of money, records, tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields
from decimal import Decimal
from html import escape
from typing import Any


def plain(number: float, digits: int = 6) -> str:
    """A number in so many significant digits and with no exponent."""
    return f"{Decimal(f'{number:.{digits}g}'):,f}"


def money(amount: float, currency: str) -> str:
    """An amount and its currency; a small amount has two digits that are not zero."""
    digits = f"{amount:,.2f}"
    if 0 < amount < 0.095:  # it rounds to less than 0.1
        digits = plain(amount, 2)
    return f"{digits} {currency}".rstrip()


def record_repr(record: Any) -> str:
    """A dataclass as Python shows it, with amounts and seconds in as many digits as `money`."""
    values = (
        f"{field.name}={_value_repr(getattr(record, field.name))}"
        for field in fields(record)
    )
    return f"{type(record).__name__}({', '.join(values)})"


def _value_repr(value: object) -> str:
    if isinstance(value, float):
        return money(value, "").replace(",", "")
    if type(value) is dict:
        items = (f"{name!r}: {_value_repr(item)}" for name, item in value.items())
        return f"{{{', '.join(items)}}}"
    return repr(value)


def html_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table for a notebook; all texts are data, and none is markup."""
    lines = [_row("th", head)] if head else []
    lines += [_row("td", row) for row in rows]
    return f"<table>{''.join(lines)}</table>"


def _row(tag: str, cells: Sequence[str]) -> str:
    texts = (escape(cell).replace("\n", " ") for cell in cells)
    return f"<tr>{''.join(f'<{tag}>{text}</{tag}>' for text in texts)}</tr>"
