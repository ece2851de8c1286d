"""How other model families write calls, each form with its reader. Nothing else depends on it.

Without them the parser reads the form asked for, and the model is asked about all others. So what a
reader is worth is measured by leaving it out of `FAMILIES`. `READERS` has a row for each mark of a
family with a syntax of its own. A reader begins right after the mark and returns the calls it
reads; an empty list if the text is only noise around calls, None if this is not markup at all.
"""

from __future__ import annotations

from functools import partial

from ..asked import close, read_inside
from ..calls import Raw
from ..cursor import Cursor, Families, Reader
from ..marks import MARK_FOLLOWS, pass_blanks
from .elements import NAME_TAGS, name_and_arguments, named_element, own_element
from .named import gemma, headed, python_calls, python_list, react, unmarked

_COMMENTARY = "<|channel|>commentary "
_SPEAKS_OF_TOOLS = ("<tool>", "<tools>", _COMMENTARY)  # other texts have these, too


def marked(cursor: Cursor, mark: str) -> list[Raw] | None:
    """What stands after the mark of any family; the mark alone is dropped before another one."""
    begin = cursor.at
    is_sure = mark not in _SPEAKS_OF_TOOLS
    pass_blanks(cursor)
    raws = read_inside(cursor, tagged=is_sure)
    if not raws:
        cursor.at = begin
        raws = headed(cursor, offered=not is_sure)
    if not raws:
        cursor.at = begin
        pass_blanks(cursor)
        is_dropped = mark[1] in "|｜" or cursor.match(MARK_FOLLOWS, 80)
        cursor.at = begin
        return [] if is_dropped else None
    # Special tokens and brackets often have no closer, elements have one.
    is_element = mark[0] == "<" and mark[1].isalpha()
    close(cursor, raws, mark[1:-1], demanded=is_element)
    return raws


def _inside(cursor: Cursor) -> list[Raw] | None:
    """What stands after a mark and is no JSON."""
    begin = cursor.at
    if cursor.char() == "<":
        raws = name_and_arguments(cursor) if cursor.sees(*NAME_TAGS) else None
        if not raws:
            cursor.at = begin
        return raws
    for reader in (name_and_arguments, python_calls, headed):
        cursor.at = begin
        raws = reader(cursor)
        if raws:
            return raws
    return None


READERS: dict[str, Reader] = {
    "<|tool_call>": gemma,
    "<start_function_call>": gemma,
    "Action:": react,
    _COMMENTARY: partial(marked, mark=_COMMENTARY),
}
FAMILIES = Families(
    readers=READERS,
    marked=marked,
    inside=_inside,
    named_element=named_element,
    own_element=own_element,
    listed=python_list,
    code=python_calls,
    unmarked=unmarked,
    loose=frozenset((react,)),
)
