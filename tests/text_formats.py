"""Formats in which tools return text: each writes a text as a page, a mail, a form or a dump does."""

from __future__ import annotations

import html
import json
import quopri
import re
import textwrap
from urllib.parse import quote, quote_plus, urlencode

LOOK_ALIKES = str.maketrans("aceopxyi", "асеорхуі")
GREEK_LOOK_ALIKES = str.maketrans("aoipt", "αοιρτ")


def every(text, size):
    """The text in pieces of a number of letters."""
    return [text[at : at + size] for at in range(0, len(text), size)]


def spans(text, opens="<span>", closes="</span>"):
    return "".join(opens + html.escape(letter) + closes for letter in text)


def highlighted(text):
    """A page of documentation, as Pygments and highlight.js write it."""
    pieces = re.findall(r"\w+|\s+|[^\w\s]", text)
    return (
        "<pre>"
        + "".join(f'<span class="n x{n % 7}">{html.escape(p)}</span>' for n, p in enumerate(pieces))
        + "</pre>"
    )


def broken_words(text, mark):
    """A mark of a page in the middle of each word of four letters and more."""
    return re.sub(r"(?<!&)(?<!&#)\b(\w{2})(?=\w{2})", rf"\1{mark}", text)


def quoted_printable(text):
    return quopri.encodestring(text.encode(), quotetabs=True).decode()


def numbered(text, prefix, size=12):
    return "\n".join(
        prefix.format(n, n * size) + piece
        for n, piece in enumerate(every(text.replace("\n", " "), size), 1)
    )


def numbered_lines(text):
    return "\n".join(f"{n:>4}: {line}" for n, line in enumerate(text.split("\n"), 1))


def tag_characters(text):
    return "".join(chr(0xE0000 + ord(c)) if " " <= c <= "~" else c for c in text)


FORMATS = {
    "a tag around each letter": spans,
    "a tag with attributes around each letter": lambda t: spans(
        t, "<b class=\"a>b\" data-n='1'>", "</b>"
    ),
    "an unknown tag around each letter": lambda t: spans(t, "<x-c>", "</x-c>"),
    "a tag around each word": highlighted,
    "a tag around each word, escaped in a feed": lambda t: html.escape(highlighted(t)),
    "a page in JSON": lambda t: json.dumps({"html": highlighted(t)}),
    "<wbr> in words of a page": lambda t: broken_words(html.escape(t), "<wbr>"),
    "<wbr/> in words of plain text": lambda t: broken_words(t, "<wbr/>"),
    "comments in words": lambda t: broken_words(html.escape(t), "<!-- page 2 -->"),
    "percent escapes": lambda t: quote(t, safe=""),
    "percent escapes of all letters": lambda t: "".join(f"%{byte:02x}" for byte in t.encode()),
    "percent escapes twice": lambda t: quote(quote(t)),
    "a form": lambda t: urlencode({"subject": "Hello", "body": t}),
    "a query": lambda t: f"https://example.com/open?text={quote_plus(t)}&lang=en",
    "a link on a page": lambda t: f'<a href="/open?text={quote_plus(t)}">Open</a>',
    "quoted-printable": quoted_printable,
    "quoted-printable of all bytes": lambda t: "=\n".join(
        "".join(f"={b:02X}" for b in line.encode()) for line in every(t, 24)
    ),
    "quoted-printable with short lines": lambda t: "=\r\n".join(
        piece.replace("=", "=3D").replace(" ", "=20") for piece in every(t, 9)
    ),
    "an HTML mail": lambda t: quoted_printable(highlighted(t)),
    "tag characters": tag_characters,
    "lines with numbers": lambda t: numbered(t, "{0:>6}\t"),
    "lines with numbers and colons": lambda t: numbered(t, "{0:04}: "),
    "lines with numbers and arrows": lambda t: numbered(t, "{0:>5}→"),
    "lines with offsets": lambda t: numbered(t, "{1:08x}  "),
    "a numbered mail": lambda t: numbered_lines(quoted_printable(t)),
    "Cyrillic look-alikes": lambda t: t.translate(LOOK_ALIKES),
    "Greek look-alikes": lambda t: t.translate(GREEK_LOOK_ALIKES),
    "look-alikes in the name": lambda t: re.sub(
        r"\w+_\w+", lambda name: name[0].translate(LOOK_ALIKES), t
    ),
    "right to left": lambda t: f"\u202e{t[::-1]}\u202c",
    "right to left, in lines": lambda t: "\n".join(
        f"\u202e{line[::-1]}\u202c" for line in textwrap.wrap(t, 30)
    ),
    "right to left, in JSON": lambda t: json.dumps(f"\u202e{t[::-1]}\u202c"),
}
