"""Reads an error answer: (status, headers, body) -> the error to raise.

The v1 interface documents `{"error": {"message", "type", "code"}}` (v1 API, section 7); the
others show no shape. One reader takes every plausible one. A server's message may echo what was
sent, so it passes through `safe_text` before it becomes part of an error.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from urllib.parse import unquote

from pydantic_core import from_json

from .. import errors
from .limits import retry_after
from .redact import without_secrets

_LONGEST_MESSAGE = 1_000
_LONGEST_QUOTED = 16_000  # with its escapes
_BY_STATUS: dict[int, type[errors.SvcAPIError]] = {
    400: errors.SvcBadRequestError,
    401: errors.SvcAuthenticationError,
    403: errors.SvcPermissionDeniedError,
    404: errors.SvcNotFoundError,
    413: errors.SvcBadRequestError,
    422: errors.SvcBadRequestError,
    429: errors.SvcRateLimitError,
}
_NEXT_STEP = {
    401: "check the API key and that it belongs to this interface",
    403: "the key is valid but not allowed to do this: check its plan",
    413: "send a shorter request",
}
_LISTED = "list_models() names those that exist, such as svc-turbo and svc-pro in the documents"
_OVERFLOW_CODES = frozenset({"context_length_exceeded", "context_window_exceeded"})
# Statuses that come and go by themselves.
TRANSIENT = frozenset({408, 429, 500, 502, 503, 504})
# Those among them that show the service in trouble; 429 comes from one that is well.
TROUBLE = TRANSIENT - {429}
# Failures of the service that another try cannot fix: Not Implemented, HTTP Version Not Supported.
_LASTING = frozenset({501, 505})


def read_failure(
    status: int,
    headers: Mapping[str, str],
    body: bytes,
    *,
    now: float,
    secrets: Iterable[str] = (),
    private: Iterable[str] = (),
    url: str = "",
    setting: str = "the base URL",
    sent: bytes | None = None,
) -> errors.SvcAPIError:
    """The error that an answer with an error status means.

    Args:
        status: The HTTP status.
        headers: The answer's headers, with names in lower case.
        body: The whole body, decoded from its transfer form.
        now: The present as a Unix timestamp, for dates in headers.
        secrets: Keys, removed from the server's message wherever they stand.
        private: Texts of users and models that were sent. Their words are removed from the
            server's message.
        url: Where the request was sent.
        setting: What its base URL is called.
        sent: The request's body.
    """
    message, type_, code = read_error_value(
        _load(body), secrets=secrets, private=private
    )
    text = f"The service answered {status}"
    if message:
        text += f": {message.removesuffix('.')}"
    if code and code not in text:
        text += f" (code {code})"
    if status in _NEXT_STEP:
        text += f"; {_NEXT_STEP[status]}"
    if status == 404:
        text += f"; {_why_not_found(url, setting, sent)}"
    request_id = safe_label(
        headers.get("x-request-id"), secrets=secrets, private=private
    )
    return failure(
        status, headers, text, now=now, type_=type_, code=code, request_id=request_id
    )


def _why_not_found(url: str, setting: str, sent: bytes | None) -> str:
    """What to change where the service has nothing at a URL."""
    *parts, path = url.split("/", 3)
    place = "/".join(parts)  # the rest of a base URL could hold a key
    if path.count("chat/completions") > 1:
        return (
            f"{setting} holds the path of an endpoint, and must end in /v1: {place}/v1"
        )
    if "v1/" not in path and "api/" not in path:
        return f"{setting} does not end in /v1: write {place}/v1"
    if path.count("api/") > 1 or ("v1/" in path and "api/" in path):
        return f"{setting} must end before the /api of the paths: {place}"
    request = _load(sent or b"")
    if isinstance(request, Mapping):
        model = request.get("model")
        if isinstance(model, str):
            return f"the model asked for is {model!r:.80}; {_LISTED}"
    return f"check {setting}, which is at {place}"


def failure(
    status: int,
    headers: Mapping[str, str],
    text: str,
    *,
    now: float,
    type_: str | None = None,
    code: str | None = None,
    request_id: str | None = None,
) -> errors.SvcAPIError:
    """The error of a status, whose text ends with what the status and the headers say to do."""
    if 300 <= status < 400:  # redirects
        text += "; redirects are not followed, as they would carry the key away: check the URL"
    wait = retry_after(status, headers, now)
    if wait is not None:
        seconds = f"{wait:.0f}"
        if wait < 1:
            seconds = f"{wait:.3g}"
        text += f"; come back in {seconds} s"
    error = _kind(status, code)(
        text,
        status_code=status,
        type=type_,
        code=code,
        request_id=request_id,
        retry_after=wait,
    )
    error.is_retryable = status in TRANSIENT or (
        error.is_retryable and status not in _LASTING
    )
    return error


def _kind(status: int, code: str | None) -> type[errors.SvcAPIError]:
    if code in _OVERFLOW_CODES and status < 500:
        return errors.SvcContextOverflowError
    if status >= 500:
        return errors.SvcServerError
    return _BY_STATUS.get(status, errors.SvcAPIError)


def _load(body: bytes) -> object:
    try:
        return from_json(body)
    except ValueError:
        return None  # a page of HTML or a proxy's text says nothing to a program


def read_error_value(
    value: object, *, secrets: Iterable[str] = (), private: Iterable[str] = ()
) -> tuple[str, str | None, str | None]:
    """Message, type and code of an error value, alone or under the key `error`, made safe."""
    source: Mapping[str, object] = {}
    if isinstance(value, Mapping):
        source = value
        value = source.get("error")
        if isinstance(value, Mapping):
            source = value
    message = ""
    for text in (value, *map(source.get, _MESSAGE_KEYS)):
        if isinstance(text, str):
            message = text
            break
    return (
        safe_text(message, secrets=secrets, private=private),
        safe_label(source.get("type"), secrets=secrets, private=private),
        safe_label(source.get("code"), secrets=secrets, private=private),
    )


def safe_label(
    value: object, *, secrets: Iterable[str] = (), private: Iterable[str] = ()
) -> str | None:
    """A short identifier from the server; None for anything else and for what was sent."""
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str) or not _LABEL.fullmatch(value):
        return None
    # Whole words only: a single digit of a prompt stands in nearly every id of letters and digits.
    if any(map(_quote_check(private), _WORD.findall(value))):
        return None
    if without_secrets(value, secrets) != value:
        return None
    return value


_LABEL = re.compile(r"[\w.:/-]{1,80}", re.ASCII)
_MESSAGE_KEYS = ("message", "detail", "description", "msg", "title")
_SHORTEST_PART = 4  # letters from which on a part of a word counts as quoted
# The forms of words and numbers: 1,000 and 1.000 and 1 000 and 1'000, 123-45-6789, words, and in
# 140bpm both.
_WORD = re.compile(r"[^\W_]+")
_FORMS = (
    re.compile(r"(?<!\d)\d{1,3}(?:[,.'\u2019 \u00a0\u202f]\d{3})+(?!\d)"),
    re.compile(r"(?<!\d)\d{1,12}(?:[-/]\d{1,12})+(?!\d)"),
    _WORD,
    re.compile(r"\d+|[^\W\d_]+"),
)
_UMLAUTS = str.maketrans(
    {
        "ä": "ae",
        "ö": "oe",
        "ü": "ue",
        "Ä": "Ae",
        "Ö": "Oe",
        "Ü": "Ue",
        "å": "aa",
        "ø": "oe",
    }
)
# The words of error messages themselves. They stay readable although a prompt may hold them too.
_PLAIN_WORDS = frozenset(
    """
    a about above access account again all allowed already amount an and answer anyof api are
    argument arguments array as assistant at authentication authorized available back bad be been
    before below between billing body boolean but by can cannot chat check choose code completion
    completions contact contain content context could count current daily day default defs
    description details did do does during each empty engine enum error exceed exceeded exceeds
    exist expected expired fail failed failure field fields first for forbidden format found free
    from gateway greater had has have header hour hourly how if image images in input instead
    integer interface internal invalid is it items its json key keys large later least length less
    level limit limits list long malformed many max maximum message messages method min minimum
    minute missing model models more must name need needs no not null number object of on one only
    or out output overloaded parameter parameters parse payload per period permission plan please
    pro prompt properties provide provided quality quota range rate reached received ref request
    requests required resource response retry role second seconds send sent server service should
    size small something start starter stop stream string support supported system task temperature
    temporarily text than that the then there this time timeout title to token tokens too try type
    unable unauthorized unavailable unexpected unknown unsupported until up upgrade url use used
    user valid value values wait was went were when which while window with within without wrong you
    your
    """.split()  # noqa: SIM905  # a list of 250 quoted words reads worse
)


def json_texts(value: object) -> Iterator[str]:
    """Every key, text and number inside a JSON value: what an error may quote of it."""
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, Mapping):
            pending += item.keys()
            pending += item.values()
        elif isinstance(item, (list, tuple)):
            pending += item
        elif item is not None and not isinstance(item, bool):
            yield str(item)


def safe_text(
    text: str, *, secrets: Iterable[str] = (), private: Iterable[str] = ()
) -> str:
    """A server's message without keys and without the words and numbers of what users sent.

    A service that rejects a prompt may quote it, and that may be a patient's record. So every
    word and number of the message that also stands in a text of `private` becomes `[...]`, save
    the plain words that error messages are made of. Our own instructions are not among those
    texts: "You exceeded your current quota" is to stay readable beside tools.
    """
    text = unicodedata.normalize("NFC", _unescape(text[:_LONGEST_QUOTED]))
    text = without_secrets(text, secrets)
    text = " ".join(text[: 4 * _LONGEST_MESSAGE].split())
    is_quote = _quote_check(private)

    def mask(match: re.Match[str]) -> str:
        if is_quote(match[0]):
            return "[...]"
        return match[0]

    for form in _FORMS:
        text = form.sub(mask, text)
    text = re.sub(r"\[\.\.\.\](?:\W{0,3}\[\.\.\.\])+", "[...]", text)
    if len(text) > _LONGEST_MESSAGE:
        text = text[: _LONGEST_MESSAGE - 3] + "..."
    return text


def _quote_check(private: Iterable[str]) -> Callable[[str], bool]:
    """A function that tells whether a word or number stands in these texts too.

    A service may quote García as Garcia, Müller as Mueller and 1500 as 1,500. The texts may hold
    escapes themselves, as a tool's JSON does, and the message is compared without them.
    """
    texts = "\n".join(private)
    unescaped = _unescape(texts)
    if unescaped.split() != texts.split():
        texts = f"{texts}\n{unescaped}"
    if not texts.isascii():
        spellings = (
            unicodedata.normalize("NFC", texts),
            unicodedata.normalize("NFKC", texts),
            texts.translate(_UMLAUTS),
        )
        texts = "\n".join(spellings)
    private_words: set[str] = set()
    for form in _FORMS:
        private_words.update(form.findall(texts))
    # Without plain words, so that no part of one counts: "script" stands in "description".
    folded_words = {*_fold("\n".join(private_words)).split("\n")} - _PLAIN_WORDS
    folded_text = "\n".join(folded_words)

    def is_quote(word: str) -> bool:
        word = _fold(word)
        if word in _PLAIN_WORDS:
            return False
        if word in folded_words:
            return True
        # A longer part counts also inside a word: a server may cut its quotation anywhere.
        return len(word) >= _SHORTEST_PART and word in folded_text

    return is_quote


def _fold(words: str) -> str:
    """Words and numbers, one a line, as they are compared: without case, accents and separators."""
    words = unicodedata.normalize("NFKD", words).casefold().translate(_STROKES)
    return re.sub(r"[^\w\n]", "", words)


# Letters that no normal form takes apart.
_STROKES = str.maketrans("ıłøđ", "ilod")


# -- the ways in which a server may write a text that it quotes ------------------------------------

_LAYERS = 2  # a text may be escaped for JSON and then for a URL
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|([nrt])|([\"'/\\]))")
# Python makes no number of thousands of digits, and there is no letter of eight.
_PADDED = re.compile(r"&#([xX]?)0+(?=[0-9a-fA-F])")
_NO_LETTER = re.compile(r"&#(?:[0-9]{8,}|[xX][0-9a-fA-F]{7,});?")
_TERMINAL = re.compile(r"\x1b\[[\d;]*[A-Za-z]?")
# Format characters part a name where no eye sees it; what is not assigned shows as nothing.
_INVISIBLE = frozenset({"Cf", "Cn", "Co", "Cs"})


def _unescape(text: str) -> str:
    """A text without escapes of JSON, of URLs and of HTML, and with printable characters only."""
    for _ in range(_LAYERS):
        if "\\" in text:
            text = _ESCAPE.sub(_unescape_letter, text)
            text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        if "&#" in text:
            text = _NO_LETTER.sub("\ufffd", _PADDED.sub(r"&#\1", text))
        text = unquote(html.unescape(text))
    text = _TERMINAL.sub(" ", text)
    if text.isprintable():
        return text
    return "".join(map(_printable, text))


def _unescape_letter(match: re.Match[str]) -> str:
    code = match[1] or match[2]
    if code:
        return chr(int(code, 16))
    if match[3]:  # a line break or a tab
        return " "
    return match[4]


def _printable(letter: str) -> str:
    if letter.isprintable():
        return letter
    if unicodedata.category(letter) in _INVISIBLE:
        return ""
    return " "
