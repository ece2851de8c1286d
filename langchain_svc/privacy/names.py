"""Where a text names somebody or something: persons, addresses, organizations, other texts.

The words of these stand in `vocabulary`. Here is which of them belong together in a text, and
whether they are a name where they stand. A word that is a name and nothing else is one wherever it
stands. A word with other meanings is one only where something shows it: the other part of the name,
a title, or a capital letter inside a sentence.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from .vocabulary import (
    ALWAYS_CAPITAL,
    COMMON,
    EPONYMS,
    GERMAN_WORDS,
    KINSHIP,
    PARTICLES,
    TITLES,
    TOKEN,
    Hit,
    Scan,
    Vocabulary,
    fold,
)
from .whole_values import WholeValues

# -- persons ---------------------------------------------------------------------------------------

_SHORTEST_NAME = 3
_LEAST_GERMAN_WORDS = 2

_AFTER_WORD = re.compile(
    r"\d{0,4}[ \t\u00a0\u202f]{1,2}|\d{0,4},[ \t\u00a0]{0,2}|[-\u2010\u2011\u2013'’_^]"
    r"|,?[ \t]{0,4}(?:\r?\n){1,2}[ \t]{0,4}"
)
_AFTER_INITIAL = re.compile(r"\.?[ \t\u00a0\u202f]{0,2}|\.?[-\u2010\u2011'’_^]")
_AFTER_LETTERS = (".", "'", "’")  # a. meyer, o'connell
_DIGITS = re.compile(r"\d*")  # of generated names: Anna123 Meyer456
_NEXT_WORD = re.compile(r"[ \t\u00a0]+\w|\w")
_TITLE_BEFORE = re.compile(
    r"""(?:^|\W)(?:
    dr|doktor|doctor|dra|prof|mr|mrs|ms|miss|sir|lady|herrn?|frau|hr|fr|familie|fam|monsieur|madame|
    mademoiselle|m|mme|mlle|señora?|sra?|sr|srta|don|doña|mijnheer|meneer|mevrouw|mevr|dhr|mw|pani?|
    panem|panu|panią|bay|bayan|sayın|hasta|patient(?:in|en|e)?|pat|paciente|patiënte?|
    pacjent(?:ka|a)?|
    schwester|pfleger|nurse|named|called|name\ is|name\ ist|name:|names?|hei(?:ß|ss)[et]|heet|
    appelle|llamo|llama|nazywam\ się|nazwisko|adım|soyadı|ik\ ben|dear|lieber?|geehrter?
    )[.:]?[ \t\u00a0]{1,2}$""",
    re.IGNORECASE | re.VERBOSE,
)
_TITLE_AFTER = re.compile(r"[ ](?:bey|hanım|hoca)\b", re.IGNORECASE)
_DISEASE_AFTER = re.compile(
    r"""(?:['’]s|s['’]|['’])?(?:[ \t\u00a0-]|\ ?[-–]\ ?)(?:
    disease|syndrom|sign|test|reflex|lymphom|score|scale|palsy|paralysis|criteria|classification|
    procedure|operation|maneuver|manoeuvre|method|phenomen|nodule|node|cell|body|bodies|fract|
    contract|chorea|tumou?r|anemia|anaemia|thyroiditis|gangrene|ulcer|esophagus|oesophagus|catheter|
    krankheit|zeichen|zelle|klassifikation|fraktur|kontraktur|reflux|probe|linie|lähmung|demenz|
    dementia|ziekte|teken|sindrom|sendrom|hastal|choro|zesp|objaw|skala|signo|enfermedad|ring|coma
    )""",
    re.IGNORECASE | re.VERBOSE,
)
_DISEASE_BEFORE = re.compile(
    r"""(?:^|\W)(?:
    morbus|mb?\.|
    (?:maladie|syndrome|signe|test|enfermedad|síndrome|sindrome|signo|ziekte|syndroom)\ de|
    (?:ziekte|syndroom)\ van|chorob[ayęą]|zespo[lł]u?|zespół|objaw|thyreoiditis|ductus|skala
    )[ \t\u00a0]{1,2}$""",
    re.IGNORECASE | re.VERBOSE,
)
_LONGEST_TITLE = 24
_LONGEST_SIGNATURE = 80
_MOST_TURNS = 12  # of a name's words
_ABBREVIATED_BEFORE = re.compile(r"(?<![^\W\d_])[^\W\d_]\.$")
_STARTS_SENTENCE = ".!?:;\n\r•|"
_BETWEEN_SENTENCES = " \t\u00a0\"'“”„«»‘’([{*_-–"


def name_words(name: str) -> list[str]:
    """The words of a written name, without titles and what stands in parentheses."""
    words: list[str] = []
    for word in TOKEN.findall(name.partition("(")[0]):
        if word.isdigit():
            continue
        base = fold(word)
        is_initial = len(base) == 1
        if not is_initial and (base in TITLES or base in KINSHIP):
            continue
        words.append(word)
    return words


def whole_names(name: str) -> Iterator[str]:
    """The name without titles at its ends, and turned: with the family's name first, or last."""
    parts = name.split()
    first = 0
    last = len(parts)
    while first < last and _is_title(parts[first]):
        first += 1
    while first < last and _is_title(parts[last - 1]):
        last -= 1
    if last - first > 1:  # Do Ha is a name, and DO a title
        parts = parts[first:last]
    yield " ".join(parts)
    names = " ".join(parts).partition("(")[0].replace(",", " ").split()
    for index in range(1, min(len(names), _MOST_TURNS)):
        end = " ".join(names[index:])
        begin = " ".join(names[:index])
        yield f"{end} {begin}"
        yield f"{end}, {begin}"


def _is_title(part: str) -> bool:
    words = [fold(word) for word in TOKEN.findall(part)]
    return all(len(word) > 1 and (word in TITLES or word in KINSHIP) for word in words)


@dataclass(repr=False)
class Person:
    """The words of one person's names, in their base form."""

    number: int
    bases: set[str] = field(default_factory=set)


class PersonNames:
    """All persons, and where a text names them."""

    def __init__(self, vocabulary: Vocabulary, values: WholeValues) -> None:
        self._vocabulary = vocabulary
        self._values = values
        self._persons: list[Person] = []
        self._numbers: dict[str, set[int]] = {}
        self._initials: dict[str, set[int]] = {}

    @property
    def count(self) -> int:
        """How many persons there are."""
        return len(self._persons)

    def add(self, names: Iterable[str]) -> None:
        """Adds a person by all names; names that are all of a known person's are theirs."""
        names = [*names]
        word_lists = [name_words(name) for name in names]
        bases = {fold(word) for words in word_lists for word in words}
        long_bases = {base for base in bases if len(base) > 1}
        are_whole = any(len(name.split()) > 1 for name in names)
        if not long_bases or (long_bases <= PARTICLES and not are_whole):
            return
        person = self._person_with(bases)
        for name, words in zip(names, word_lists, strict=True):
            for whole_name in whole_names(name):
                self._values.add_name(person.number, whole_name)
            for word in words:
                self._add_word(person, word)
            self._add_joined(person, words)

    def _person_with(self, bases: set[str]) -> Person:
        if len(bases) > 1:  # one word alone may be a relative's
            for person in self._persons:
                if bases <= person.bases:
                    return person
        person = Person(len(self._persons) + 1)
        self._persons.append(person)
        return person

    def _add_word(self, person: Person, word: str) -> None:
        base = self._vocabulary.add(word)
        person.bases.add(base)
        if len(base) > 1:
            self._numbers.setdefault(base, set()).add(person.number)
        if base not in PARTICLES or len(base) == 1:
            initial = base[0]
            self._vocabulary.add(initial)
            self._initials.setdefault(initial, set()).add(person.number)

    def _add_joined(self, person: Person, words: list[str]) -> None:
        """Adds names that people write as one word: AnnaMeyer, Annalena."""
        for index in range(1, len(words)):
            first = words[index - 1]
            second = words[index]
            if min(len(first), len(second)) < _SHORTEST_NAME:
                continue
            for compound in (first + second, second + first):
                base = self._vocabulary.add(compound)
                self._numbers.setdefault(base, set()).add(person.number)

    def find(self, scan: Scan) -> Iterator[tuple[int, int, int]]:
        """The places of a text that name a person: start, end and the person's number."""
        is_german: bool | None = None
        for run, numbers in self._runs(scan):
            hits = _trimmed(scan.text, run)
            if not hits:
                continue
            if is_german is None:
                is_german = _is_german(scan)
            if _is_name(scan.text, hits, is_german=is_german):
                digits = _DIGITS.match(scan.text, hits[-1].end)
                end = digits.end() if digits else hits[-1].end
                yield hits[0].start, end, min(numbers)

    def _runs(self, scan: Scan) -> Iterator[tuple[list[Hit], set[int]]]:
        """Words that follow one another and may belong to the same person."""
        run: list[Hit] = []
        numbers: set[int] = set()
        for hit in scan.hits:
            candidates = self._candidates(scan.text, hit)
            if not candidates:
                continue
            common = numbers & candidates
            if run and common and _follows(scan.text, run[-1], hit):
                if not _is_repeated(run, hit):
                    run.append(hit)
                    numbers = common
                    continue
                # "Meyer, A. Meyer" names the person twice, and the initial is of the second.
                initials = _last_initials(run)
                yield run[: len(run) - len(initials)], numbers
                run = [*initials, hit]
                numbers = common
                continue
            if run:
                yield run, numbers
            run = [hit]
            numbers = candidates
        if run:
            yield run, numbers

    def _candidates(self, text: str, hit: Hit) -> set[int]:
        """The numbers of the persons whose name a word may be."""
        numbers: set[int] = set()
        if _is_initial(hit):
            if hit.is_capital or text.startswith(_AFTER_LETTERS, hit.end):
                numbers |= self._initials.get(hit.form, set())
            return numbers
        if hit.is_inflected and not hit.is_capital:
            return numbers
        for base in hit.bases:
            numbers |= self._numbers.get(base, set())
        return numbers


def _is_initial(hit: Hit) -> bool:
    return len(hit.form) == 1


def _follows(text: str, last: Hit, hit: Hit) -> bool:
    """Whether between two words nothing stands that separates two names."""
    between = _AFTER_WORD
    if _is_initial(last):
        between = _AFTER_INITIAL
    return between.fullmatch(text, last.end, hit.start) is not None


def _is_repeated(run: list[Hit], hit: Hit) -> bool:
    if _is_initial(hit) or hit.form in PARTICLES:
        return False
    return any(not hit.bases.isdisjoint(other.bases) for other in run)


def _last_initials(run: list[Hit]) -> list[Hit]:
    start = len(run)
    while start > 0 and _is_initial(run[start - 1]):
        start -= 1
    return run[start:]


def _trimmed(text: str, run: list[Hit]) -> list[Hit]:
    """A run without the words at its ends that belong to the sentence.

    They are those of "Meyer de", of "Meyer A new", of "o.B. Meyer", and the first of "van L. van
    den Broek".
    """
    start = 0
    end = len(run)
    counts = Counter(hit.form for hit in run)
    while start < end and _belongs_before(text, run[start], counts):
        counts[run[start].form] -= 1
        start += 1
    while start < end and _belongs_behind(text, run[end - 1]):
        end -= 1
    return run[start:end]


def _belongs_before(text: str, first: Hit, counts: Counter[str]) -> bool:
    if _is_initial(first):
        before = text[max(0, first.start - 3) : first.start]
        return _ABBREVIATED_BEFORE.search(before) is not None
    return first.form in PARTICLES and counts[first.form] > 1


def _belongs_behind(text: str, last: Hit) -> bool:
    if not _is_initial(last):
        return last.form in PARTICLES
    is_abbreviated = text.startswith(".", last.end)
    return not is_abbreviated and _NEXT_WORD.match(text, last.end) is not None


def _is_name(text: str, hits: list[Hit], *, is_german: bool) -> bool:
    words = [hit for hit in hits if not _is_initial(hit) and hit.form not in PARTICLES]
    first = hits[0]
    if not words:
        return _are_initials(text, hits)
    if len(words) == 1 and _names_a_disease(text, words[0]):
        return False
    if not all(map(_is_weak, words)):
        return True
    if not all(word.is_capital for word in words):
        return False
    parts = len(words)
    for hit in hits:
        if _is_initial(hit) and text.startswith(".", hit.end):
            parts += 1
    if parts > 1:
        return True
    return _stands_as_name(text, first, words[0], is_german=is_german)


def _is_weak(hit: Hit) -> bool:
    """Whether a word alone does not show that it is a name."""
    if len(hit.form) < _SHORTEST_NAME:
        return True
    return hit.form in COMMON or hit.bases <= COMMON or hit.form in ALWAYS_CAPITAL


def _stands_as_name(text: str, first: Hit, word: Hit, *, is_german: bool) -> bool:
    before = text[max(0, first.start - _LONGEST_TITLE) : first.start]
    if _TITLE_BEFORE.search(before) or _TITLE_AFTER.match(text, word.end):
        return True
    if is_german or word.form in ALWAYS_CAPITAL or len(word.form) < _SHORTEST_NAME:
        return False
    return _stands_out(text, word)


def _stands_out(text: str, hit: Hit) -> bool:
    """Whether a word has a capital letter that the begin of a sentence does not explain."""
    if not hit.is_capital or hit.spelling.isupper():
        return False
    position = hit.start - 1
    while position >= 0 and text[position] in _BETWEEN_SENTENCES:
        position -= 1
    return position >= 0 and text[position] not in _STARTS_SENTENCE


def _are_initials(text: str, hits: list[Hit]) -> bool:
    """Whether initials alone are a signature: after a title, or all of a line."""
    initials = [hit for hit in hits if _is_initial(hit)]
    if len(initials) < 2 or not text.startswith(".", initials[0].end):
        return False
    start = hits[0].start
    before = text[max(0, start - _LONGEST_TITLE) : start]
    if _TITLE_BEFORE.search(before):
        return True
    lines_before = text[max(0, start - _LONGEST_SIGNATURE) : start]
    end = hits[-1].end
    lines_behind = text[end : end + _LONGEST_SIGNATURE]
    around = lines_before.rpartition("\n")[2] + lines_behind.partition("\n")[0]
    return not TOKEN.search(around)


def _names_a_disease(text: str, hit: Hit) -> bool:
    if hit.form not in EPONYMS and not hit.bases & EPONYMS:
        return False
    if _DISEASE_AFTER.match(text, hit.end):
        return True
    before = text[max(0, hit.start - _LONGEST_TITLE) : hit.start]
    return _DISEASE_BEFORE.search(before) is not None


def _is_german(scan: Scan) -> bool:
    return len(GERMAN_WORDS.intersection(scan.words)) >= _LEAST_GERMAN_WORDS


# -- addresses, organizations and other texts, hidden as a whole -----------------------------------

_FARTHEST = 4  # characters between two words of a phrase
_SHORTEST_CODE = 4
_SHORTEST_STREET = 6
_ABBREVIATED = {
    "strasse": ("str",),
    "straat": ("str",),
    "street": ("st", "str"),
    "avenue": ("ave", "av"),
    "avenida": ("av", "avda"),
    "road": ("rd",),
    "lane": ("ln",),
    "drive": ("dr",),
    "boulevard": ("blvd", "bd"),
    "platz": ("pl",),
    "ulica": ("ul",),
    "sokak": ("sok", "sk"),
    "sokagi": ("sok", "sk"),
    "caddesi": ("cad", "cd"),
    "mahallesi": ("mah", "mh"),
}
_PIECES = re.compile(r"[,;\n]")


@dataclass(frozen=True, repr=False)
class Phrase:
    """Words in their base form, with the kind and the number that their marks have."""

    bases: tuple[str, ...]
    kind: str
    number: int

    @property
    def is_place(self) -> bool:
        """Whether it is of an address or an organization, and not exactly what to hide."""
        return self.kind == "PLACE"


class Phrases:
    """All phrases, and where they stand in a text."""

    def __init__(self, vocabulary: Vocabulary, values: WholeValues) -> None:
        self._vocabulary = vocabulary
        self._values = values
        self._by_first: dict[str, list[Phrase]] = {}
        self.counts: dict[str, int] = {}
        self._known: dict[tuple[str, ...], tuple[str, int]] = {}

    def add(self, kind: str, text: str) -> None:
        """Adds a phrase; the same words have one number."""
        words = TOKEN.findall(text)
        bases = tuple(map(fold, words))
        if not bases:
            return
        if bases not in self._known:
            number = self.counts.get(kind, 0) + 1
            self.counts[kind] = number
            self._add_words(kind, words, number)
        # A city may be a common word: Reading, Essen.
        if len(words) > 1 or kind != "PLACE":
            self._values.add(*self._known[bases], text)

    def _add_words(self, kind: str, words: list[str], number: int) -> None:
        bases = tuple(map(self._vocabulary.add, words))
        if bases in self._known:
            return
        self._known[bases] = (kind, number)
        for base in bases:
            for ending, abbreviations in _ABBREVIATED.items():
                if base.endswith(ending):
                    stem = base.removesuffix(ending)
                    for abbreviation in abbreviations:
                        self._vocabulary.add_form(stem + abbreviation, base)
        phrases = self._by_first.setdefault(bases[0], [])
        phrases.append(Phrase(bases, kind, number))
        phrases.sort(key=lambda phrase: -len(phrase.bases))

    def add_address(self, address: str) -> None:
        """Adds an address: its lines, and of each the street without its number and the city."""
        pieces = _PIECES.split(address)
        for piece in pieces:
            self.add("PLACE", piece)
            words = TOKEN.findall(piece)
            known = self._known.get(tuple(map(fold, words)))
            if known is None or len(words) == 1:
                continue
            _, number = known
            letters = [word for word in words if not word.isdigit() and len(word) > 1]
            if _says_where(letters):
                self._add_words("PLACE", letters, number)
            for word in words:
                if word.isdigit() and len(word) > _SHORTEST_CODE:  # a postal code
                    self._add_words("PLACE", [word], number)
        # All of it is a writing of its first line.
        known = self._known.get(tuple(map(fold, TOKEN.findall(pieces[0]))))
        if known is not None and len(pieces) > 1:
            self._values.add(*known, address)

    def find(self, scan: Scan) -> Iterator[tuple[int, int, str, int]]:
        """The places of a text that have a phrase: start, end, kind and number."""
        hits = scan.hits
        for index, hit in enumerate(hits):
            match = self._match_at(scan.text, hits, index)
            if match is not None:
                last = hits[index + len(match.bases) - 1]
                yield hit.start, last.end, match.kind, match.number

    def _match_at(self, text: str, hits: list[Hit], index: int) -> Phrase | None:
        for base in hits[index].bases:
            for phrase in self._by_first.get(base, ()):
                candidates = hits[index : index + len(phrase.bases)]
                if _matches(text, candidates, phrase):
                    return phrase
        return None


def _says_where(words: list[str]) -> bool:
    """Whether the words of a line without its numbers still say where it is."""
    if len(words) == 1:
        word = fold(words[0])
        return len(word) >= _SHORTEST_STREET and word not in COMMON
    return any(fold(word) not in COMMON for word in words)


def _matches(text: str, hits: list[Hit], phrase: Phrase) -> bool:
    if len(hits) < len(phrase.bases):
        return False
    for hit, base in zip(hits, phrase.bases, strict=True):
        if base not in hit.bases:
            return False
        if hit.is_inflected and not (phrase.is_place and hit.is_capital):
            return False
    for index in range(1, len(hits)):
        gap = text[hits[index - 1].end : hits[index].start]
        if len(gap) > _FARTHEST or TOKEN.search(gap):
            return False
    if len(hits) == 1 and phrase.is_place:
        return _is_place(text, hits[0])
    return True


def _is_place(text: str, hit: Hit) -> bool:
    """Whether one word alone is a place: Essen is a city, and a meal."""
    if hit.form.isdigit():
        return True
    is_common = hit.form in COMMON or hit.form in ALWAYS_CAPITAL
    if is_common or len(hit.form) < _SHORTEST_NAME:
        return _stands_out(text, hit)
    return True
