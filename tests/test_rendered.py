"""The pages as they are rendered: what the source of a table says, its reader sees."""

import re
from xml.etree.ElementTree import Element

import markdown
import pytest
from fences import PAGES, ROOT
from markdown.extensions.tables import TableProcessor

SITE = (ROOT / "mkdocs.yml").read_text("utf-8")
RENDERED = sorted({*PAGES, *ROOT.glob("*.md"), *ROOT.glob("langchain_svc/**/README.md")})


class Widths(TableProcessor):
    """Tables as the site has them, and how many cells were written for each row."""

    def __init__(self, parser):
        super().__init__(parser, {"use_align_attribute": False})
        self.rows = []

    def _build_row(self, row, parent, align):
        self.rows.append((row, len(self._split_row(row)), len(align)))
        super()._build_row(row, parent, align)


def rendered(text):
    """The page's tree, and the rows of its tables: each with its cells, and those of its head."""
    trees = []
    page = markdown.Markdown(extensions=["tables", "attr_list", "md_in_html", "fenced_code"])
    widths = Widths(page.parser)
    page.parser.blockprocessors.register(widths, "table", 75)

    class Kept(markdown.treeprocessors.Treeprocessor):
        def run(self, root: Element) -> None:
            trees.append(root)

    page.treeprocessors.register(Kept(page), "kept", 0)
    page.convert(text)
    return trees[0], widths.rows


def faults(text):
    """What a reader of the rendered page misses in its tables."""
    tree, rows = rendered(text)
    for row, cells, wanted in rows:
        if cells != wanted:
            yield f"{cells} cells below a head of {wanted}: {row}"
    for cell in (one for tag in ("td", "th") for one in tree.iter(tag)):
        if re.fullmatch(r":?-{3,}:?", "".join(cell.itertext()).strip()):
            yield "a cell of dashes: two tables have run together"
    for paragraph in tree.iter("p"):
        if (paragraph.text or "").lstrip().startswith("|"):
            yield f"a row in no table: {paragraph.text}"


@pytest.mark.parametrize("page", RENDERED, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_table_is_whole_on_the_rendered_page(page):
    assert list(faults(page.read_text("utf-8"))) == []


@pytest.mark.parametrize(
    "text",
    [
        "| a | b |\n|---|---|\n| 1 | 2 |\n| c | d | e |\n|---|---|---|\n| 3 | 4 | 5 |",
        "| a | b |\n|---|---|\n| 1 | 2 | 3 |",
        "| a | b |\n|---|---|\n| 1 |",
        "| a | b |\n| 1 | 2 |",
    ],
    ids=["two in one", "a cell too many", "a cell too few", "no head"],
)
def test_a_table_that_loses_something_is_found(text):
    assert list(faults(text))


@pytest.mark.parametrize("word", ["GDPR", "max_retries", "SvcQuota", "SVC_API_KEY", "v1"])
def test_the_search_finds_a_word_between_marks(word):
    (separator,) = re.findall(r"separator: '(.+)'", SITE)
    for text in (f"kept ({word}, Article 4(5))", f"“{word}”: it is", f'{word}="x"', f"a/{word}."):
        assert word in re.split(separator.replace("''", "'"), text), text
