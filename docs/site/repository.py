"""Hook of MkDocs: pages are written for readers of the repository, and must render in the site too.

Pages outside docs/ become pages of the site.  A page links to a file by its path in the repository.  In the site, a
link to a page of the site leads there.  A link to any other file becomes the URL of the file if mkdocs.yml has a
`repo_url`, and otherwise its text with the path.  Python-Markdown wants four spaces before the text of a list item,
where two or three are usual.

A line that ends in `<!-- include README.md NAME -->` becomes the part of that file from `<!-- NAME -->` to
`<!-- end of NAME -->`; its own text is for readers of the repository.  A `<picture>` with a dark source becomes two
images, of which the theme shows the one that fits its own scheme.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
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
INCLUDE = re.compile(r"^.*<!-- include (\S+) (.+?) -->$", re.MULTILINE)
PICTURE = re.compile(r'<picture>\s*<source [^>]*srcset="([^"]+)">\s*<img alt="([^"]*)" src="([^"]+)">\s*</picture>')
ITEM = re.compile(r"([-*]|\d+\.) +")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for path in PAGES:
        files.append(File(path, str(ROOT), config.site_dir, config.use_directory_urls))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    at = page.file.src_uri

    def included(match: re.Match[str]) -> str:
        path, name = match.groups()
        return _of_site(part(ROOT / path, name), posixpath.dirname(path), at, config, files)

    # A part is included after the page's own links were replaced, because its links have another folder.
    text = _of_site(markdown, posixpath.dirname(at if at in PAGES else f"docs/{at}"), at, config, files)
    return INCLUDE.sub(included, text)


def part(file: Path, name: str) -> str:
    """The text between a file's marks.  Raises PluginError if they are missing."""
    mark, text = re.escape(name), file.read_text(encoding="utf-8")
    found = re.search(rf"<!-- {mark} -->\n(.*?)<!-- end of {mark} -->", text, re.DOTALL)
    if found is None:
        raise PluginError(f"{file.name} has no <!-- {name} --> … <!-- end of {name} -->, which a page includes")
    return found[1]


def _of_site(markdown: str, folder: str, at: str, config: MkDocsConfig, files: Files) -> str:
    """Markdown of a file in `folder` of the repository for the page `at` of the site."""

    def address(target: str) -> str | None:
        """A file's address in the site, from the page; None if it is not in the site."""
        path = posixpath.normpath(posixpath.join(folder, target)).removeprefix("docs/")
        return posixpath.relpath(path, posixpath.dirname(at) or ".") if files.get_file_from_path(path) else None

    def link(match: re.Match[str]) -> str:
        text, target, anchor = match.groups(default="")
        path = posixpath.normpath(posixpath.join(folder, target))
        if "://" in target or not (ROOT / path).exists():
            return match[0]  # --strict reports a missing file
        if (ROOT / path / "README.md").is_file():
            target, path = f"{target}/README.md", f"{path}/README.md"
        if found := address(target):
            return f"[{text}]({found}{anchor})"
        if config.repo_url:
            return f"[{text}]({config.repo_url.rstrip('/')}/blob/main/{path}{anchor})"
        return text if path in text else f"{text} (`{path}`)"

    def picture(match: re.Match[str]) -> str:
        dark, alt, light = match.groups()
        images = ((address(light) or light, "only-light"), (address(dark) or dark, "only-dark"))
        return "\n".join(f'<img alt="{alt}" src="{source}#{scheme}">' for source, scheme in images)

    return LINK.sub(link, PICTURE.sub(picture, indented(markdown)))


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
