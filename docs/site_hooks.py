"""What MkDocs does to pages of a repository: links lead somewhere, and tables fit a phone.

Pages link as the repository does. Those of its root that readers want are pages of the site; other
files, such as tests, are named without a link.
"""

from __future__ import annotations

import logging
import re
from html import escape, unescape
from pathlib import Path
from posixpath import dirname, normpath, relpath

from messages import lists
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
OF_THE_ROOT = ["CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"]
LINK = re.compile(r"\[([^\]]+)\]\((\.\./[^)#\s]+)(#[^)\s]*)?\)")
LOADED = re.compile(
    r'<(?:script|img|iframe)[^>]+src="https?:[^"]*"|<link[^>]+href="https?:[^"]*"'
)
MESSAGES = "<!-- the messages of docs/messages.py -->\n"
TABLE = re.compile("<table>.*?</table>", re.DOTALL)
HEAD = re.compile("<th[^>]*>(.*?)</th>", re.DOTALL)
ROW = re.compile("<tr>.*?</tr>", re.DOTALL)
log = logging.getLogger("mkdocs.plugins.langchain_svc")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages of the root, with their links seen from docs/."""
    for name in OF_THE_ROOT:
        text = (ROOT / name).read_text("utf-8").replace("](docs/", "](")
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Lead links that leave docs/ to a page of the site, or name the file only.

    The page of errors gets all messages.
    """
    if page.file.src_uri == "errors.md":
        markdown = markdown.replace(MESSAGES, lists())

    def led(link: re.Match[str]) -> str:
        text, path, anchor = link.groups(default="")
        goal = normpath(f"docs/{dirname(page.file.src_uri)}/{path}")
        if goal.startswith("docs/"):
            return link[0]
        return (
            f"[{text}]({relpath(goal, dirname(page.file.src_uri))}{anchor})"
            if goal in OF_THE_ROOT
            else text
        )

    return LINK.sub(led, markdown)


def on_page_content(html: str, **_: object) -> str:
    """Give each cell the head of its column, which a phone shows before it."""

    def labelled(table: re.Match[str]) -> str:
        heads = [
            unescape(re.sub("<[^>]+>", "", head)) for head in HEAD.findall(table[0])
        ]

        def row(cells: re.Match[str]) -> str:
            names = iter(heads)
            return re.sub(
                "<td", lambda _: f'<td data-head="{escape(next(names))}"', cells[0]
            )

        return ROW.sub(row, table[0])

    return TABLE.sub(labelled, html)


def on_post_page(output: str, **_: object) -> None:
    """Warn of everything that a page would load from an outside address."""
    for found in LOADED.findall(output):
        log.warning("A page loads from outside: %s", found)
