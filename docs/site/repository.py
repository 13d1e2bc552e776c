"""Hook of MkDocs: pages are written for readers of the repository, and must render in the site too.

Pages outside docs/ become pages of the site.  A page links to a file by its path in the repository.  In the site, a
link to a page of the site leads there.  A link to any other file becomes the URL of the file if mkdocs.yml has a
`repo_url`, and otherwise its text with the path.  Python-Markdown wants four spaces before the text of a list item,
where two or three are usual.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
PAGES = (
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "RELEASING.md",
    "SECURITY.md",
    *(each.relative_to(ROOT).as_posix() for each in sorted(ROOT.glob("examples/*/README.md"))),
)
LINK = re.compile(r"(?<!!)\[((?:[^\[\]`]|`[^`]*`)*)\]\(([^()\s#]+)(#[^()\s]*)?\)")
ITEM = re.compile(r"([-*]|\d+\.) +")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for path in PAGES:
        files.append(File(path, str(ROOT), config.site_dir, config.use_directory_urls))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    at = page.file.src_uri
    folder = posixpath.dirname(at if at in PAGES else f"docs/{at}")

    def link(match: re.Match[str]) -> str:
        text, target, anchor = match.groups(default="")
        path = posixpath.normpath(posixpath.join(folder, target))
        if "://" in target or not (ROOT / path).exists():
            return match[0]  # --strict reports a missing file
        if (ROOT / path / "README.md").is_file():
            path += "/README.md"
        site_path = path.removeprefix("docs/")
        if files.get_file_from_path(site_path):
            return f"[{text}]({posixpath.relpath(site_path, posixpath.dirname(at) or '.')}{anchor})"
        if config.repo_url:
            return f"[{text}]({config.repo_url.rstrip('/')}/blob/main/{path}{anchor})"
        return text if path in text else f"{text} (`{path}`)"

    return LINK.sub(link, indented(markdown))


def indented(markdown: str) -> str:
    """The text with four spaces for each list item around a line."""
    columns: list[int] = []  # where the text of each open item begins
    is_code, lines = False, []
    for line in markdown.split("\n"):
        text = line.lstrip(" ")
        column = len(line) - len(text)
        while columns and text and not is_code and column < columns[-1]:
            columns.pop()
        inner = max(column - columns[-1], 0) if columns else column
        lines.append(" " * (4 * len(columns) + inner) + text if text else "")
        if text.startswith("```"):
            is_code = not is_code
        elif not is_code and (item := ITEM.match(text)) and inner < 4:
            columns.append(column + item.end())
    return "\n".join(lines)
