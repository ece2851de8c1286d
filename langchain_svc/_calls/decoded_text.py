r"""The readings of a text: as it stands, and with the escapes and tags of its format undone.

Tools return text as they receive it: HTML with a tag around each word, URLs and forms with `%7B`,
mails with `=20`, files with numbered lines. A model reads through all of these. So a text has
several readings, and the plain one is always the first:

    plain     escapes of JSON (`\u007b`) and HTML (`&quot;`) are undone
    decoded   and percent escapes, tag characters of Unicode, and letters written from right to left
    rendered  and the tags of HTML's elements are taken out, or all tags

Numbers of lines and the escapes of quoted-printable are undone only in readings of their own,
because both can be something else: `limit=50` is not "limitP".
"""

from __future__ import annotations

import html
import quopri
import re
import unicodedata
from collections.abc import Callable, Iterator
from typing import NamedTuple
from urllib.parse import unquote

_ROUNDS = 3  # an escape in an escape in an escape

_ESCAPE = re.compile(
    r"\\{1,8}(?:u([0-9a-fA-F]{4})|u\{([0-9a-fA-F]{1,5})\}|x([0-9a-fA-F]{2})|[nrtbf])"
)
_HUGE_ENTITY = re.compile(r"&#[xX]?[0-9a-fA-F]{9,}")  # html.unescape would raise
_PARTIAL_ESCAPE = re.compile(r"(?:\\u?[0-9a-fA-F{]{0,4}|&#?\w{0,8})\Z")
_FILLERS = "\u115f\u1160\u3164\uffa0"  # letters that nobody sees

# html.parser takes 34 s for 60 KB of "<a <a <a" on the Python versions that we support. A tag ends
# before the next `<` here, so that a tag within an attribute (`name="delete<wbr>_all"`) is one too.
_TAG = re.compile(r"""</?[a-zA-Z!?](?:(?:[^<>"']|"[^"<]*"|'[^'<]*')*|[^<>]*)>""")
_TAG_NAME = re.compile(r"</?([a-zA-Z][\w:.-]*)")
# What pages put around letters, words and blocks. Other elements may be a call's: <path>, <param>.
_INLINE_ELEMENTS = frozenset(
    """
    a abbr b bdi bdo big cite code del dfn em font i img ins kbd mark nobr q s samp small span
    strike strong sub sup tt u var wbr
    """.split()  # noqa: SIM905  # a list of so many quoted words reads worse
)
_BLOCK_ELEMENTS = frozenset(
    """
    blockquote body br div h1 h2 h3 h4 h5 h6 head hr html li ol p pre table tbody td th thead tr ul
    """.split()  # noqa: SIM905  # the same
)
_QUOTED_PRINTABLE = re.compile(r"=(?:[0-9a-fA-F]{2}|[ \t]*\r?\n)")
# A backslash at the end of a line is the begin of an escape that goes on in the next line.
_LINE_NUMBER = re.compile(
    r"(?:(?<=\\)\n)?^[ \t]*[\[(#]?[Ll]?(?:[0-9]{1,9}|[0-9a-fA-F]{6,16})(?!\w)"
    r"[\])]?[:|.\u2192-]?[ \t]*",
    re.MULTILINE,
)
_TAG_CHARACTERS = re.compile("[\U000e0020-\U000e007e]+")
_RIGHT_TO_LEFT = re.compile("\u202e([^\u202c\u202e]*)")

# Letters that look like Latin ones, in lower case: the part of Unicode's confusables.txt (UTS 39)
# with which an English word can be written.
_LOOK_ALIKES = str.maketrans(
    "авгеһніјкӏмпорԛѕтуѵԝхԁԍсαβγεηικνορτυχωօսհոցզɑɡı",
    "abrehhijklmnopqstyvwxdgcabyenikvoptuxwouhngqagi",
)


class DecodedText(NamedTuple):
    """A reading of a text.

    Attributes:
        text: What the reading says.
        decode: Undoes the same in a part of a call, so that the two can be compared.
    """

    text: str
    decode: Callable[[str], str]


def readings(text: str) -> Iterator[DecodedText]:
    """The plain reading, then each that differs from those before it: most texts have none.

    There are at most thirteen, and all together take time linear in the text.
    """
    plain = unescape(text)
    yield DecodedText(plain, unescape)
    earlier = {plain}
    for undone in _transports(unescape(_in_reading_order(text))):
        decoded = _without_percent_escapes(undone)
        if decoded not in earlier:
            earlier.add(decoded)
            yield DecodedText(decoded, decode_characters)
        rendered = _without_html(decoded)
        if rendered not in earlier:
            earlier.add(rendered)
            yield DecodedText(rendered, without_html)
        bare = unescape(_TAG.sub(_any_tag, decoded))
        if bare not in earlier:
            earlier.add(bare)
            yield DecodedText(bare, decode_characters)


def _transports(text: str) -> Iterator[str]:
    """The text as it is, without numbers of lines, out of quoted-printable, and without both."""
    yield text
    unnumbered, count = _LINE_NUMBER.subn("", text)
    is_numbered = count > 1
    if is_numbered:
        yield unescape(unnumbered)
    if _QUOTED_PRINTABLE.search(text):
        yield _from_quoted_printable(text)
        if is_numbered:
            yield _from_quoted_printable(unnumbered)


def _from_quoted_printable(text: str) -> str:
    data = quopri.decodestring(text.encode("utf-8", "surrogatepass"))
    return unescape(data.decode("utf-8", "replace"))


def unescape(text: str) -> str:
    """The text without escapes of JSON strings and of HTML."""
    for _ in range(_ROUNDS):
        before = text
        text = html.unescape(_HUGE_ENTITY.sub(" ", _ESCAPE.sub(_escaped_letter, text)))
        if text == before:
            break
    return text


def _escaped_letter(escape: re.Match[str]) -> str:
    number = escape[1] or escape[2] or escape[3]
    return chr(int(number, 16)) if number else "\n"


def without_partial_escape(text: str) -> str:
    """The text without the begin of an escape at its end, of which the rest is still to come."""
    return _PARTIAL_ESCAPE.sub("", text)


def decode_characters(text: str) -> str:
    """The text without escapes of any kind that can be nothing else."""
    return _without_percent_escapes(unescape(_in_reading_order(text)))


def _without_percent_escapes(text: str) -> str:
    text = _in_reading_order(text)
    for _ in range(_ROUNDS):
        decoded = unquote(text)
        if decoded == text:
            break
        text = unescape(_in_reading_order(decoded))
    return text


def _in_reading_order(text: str) -> str:
    """The text with tag characters as the ASCII that they stand for, and from left to right."""
    if text.isascii():
        return text
    text = _TAG_CHARACTERS.sub(_ascii_of_tags, text)
    return _RIGHT_TO_LEFT.sub(_from_right_to_left, text)


def _ascii_of_tags(tags: re.Match[str]) -> str:
    return "".join(chr(ord(letter) - 0xE0000) for letter in tags[0])


def _from_right_to_left(letters: re.Match[str]) -> str:
    return letters[1][::-1]


def without_html(text: str) -> str:
    """The text without escapes and tags of HTML; tags that may be a call's are kept."""
    return _without_html(decode_characters(text))


def _without_html(text: str) -> str:
    # A tag can come out of tags, as `<b>` out of `<i>&lt;</i><i>b</i><i>&gt;</i>`, and so can `\n`.
    for _ in range(_ROUNDS):
        rendered = _TAG.sub(_html_tag, text)
        if rendered == text:
            break
        text = unescape(rendered)
    return text


def _html_tag(tag: re.Match[str]) -> str:
    """What a tag of HTML leaves: nothing within a line, a blank between blocks."""
    name = _tag_name(tag)
    is_comment = not name
    if is_comment or name in _INLINE_ELEMENTS:
        return ""
    if name in _BLOCK_ELEMENTS:
        return " "
    return tag[0]


def _any_tag(tag: re.Match[str]) -> str:
    return " " if _tag_name(tag) in _BLOCK_ELEMENTS else ""


def _tag_name(tag: re.Match[str]) -> str:
    name = _TAG_NAME.match(tag[0])
    return name[1].lower() if name else ""


def fold(text: str) -> str:
    """The text without invisible letters and without differences of case, width and alphabet."""
    if text.isascii():
        return text.lower()
    # Halves of one letter, then marks: thousands of them in a row would take long to normalize.
    text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    invisible = {ord(letter): None for letter in set(text) if _is_invisible(letter)}
    text = unicodedata.normalize("NFKD", text.translate(invisible)).casefold()
    return unicodedata.normalize("NFKD", text).translate(_LOOK_ALIKES)


def _is_invisible(letter: str) -> bool:
    return unicodedata.category(letter) in {"Mn", "Me", "Cf"} or letter in _FILLERS
