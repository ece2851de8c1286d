"""What people look at: numbers without an exponent, amounts of money, tables in notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from html import escape


def plain(number: float, digits: int = 6) -> str:
    """A number in so many significant digits and with no exponent."""
    return f"{Decimal(f'{number:.{digits}g}'):,f}"


def money(amount: float, currency: str) -> str:
    """An amount and its currency; a small amount has two digits that are not zero."""
    digits = f"{amount:,.2f}"
    if 0 < amount < 0.095:  # it rounds to less than 0.1
        digits = plain(amount, 2)
    return f"{digits} {currency}".rstrip()


def html_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table for a notebook; all texts are data, and none is markup."""
    lines = [_row("th", head)] if head else []
    lines += [_row("td", row) for row in rows]
    return f"<table>{''.join(lines)}</table>"


def _row(tag: str, cells: Sequence[str]) -> str:
    texts = (escape(cell).replace("\n", " ") for cell in cells)
    return f"<tr>{''.join(f'<{tag}>{text}</{tag}>' for text in texts)}</tr>"
