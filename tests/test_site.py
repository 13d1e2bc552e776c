"""The site of the documentation: its links work, it asks no other server, and its search works without a server."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import unquote, urlsplit

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.later

ROOT = Path(__file__).parent.parent
AXE = ROOT / "web/node_modules/axe-core/axe.min.js"
LOADED = {"audio", "embed", "iframe", "img", "script", "source", "video"}
NOT_LOADED = {"alternate", "canonical", "next", "prev"}
"""Relations of <link> that a browser does not load."""


class Html(HTMLParser):
    """The ids of a page, the addresses that it links to, and those that a browser loads with it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: set[str] = set()
        self.loaded: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.ids |= {values[name] for name in ("id", "name") if name in values}
        address = values.get("href") or values.get("src") or ""
        if tag in LOADED or (tag == "link" and not NOT_LOADED & {*values["rel"].split()}):
            self.loaded |= {address} - {""}
        elif address:
            self.links.add(address)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site; without warnings, because `strict` is set."""
    pytest.importorskip("material", reason="Material for MkDocs is not installed (pip install -e '.[docs]')")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, check=False)
    assert done.returncode == 0
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Html]:
    return {each: Html(each.read_text(encoding="utf-8")) for each in sorted(site.rglob("*.html")) if each.stem != "404"}


def broken(pages: dict[Path, Html]) -> Iterator[str]:
    """Links and loaded files inside the site that do not exist."""
    for path, html in pages.items():
        for address in sorted(html.links | html.loaded):
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            anchor = unquote(parts.fragment)
            if not target.is_file() or (anchor and target in pages and anchor not in pages[target].ids):
                yield f"{path.name}: {address}"


def test_every_link_inside_the_site_leads_to_a_file_and_an_anchor(pages: dict[Path, Html]) -> None:
    assert len(pages) >= 30
    assert not list(broken(pages))


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    found = {tmp_path / "a.html": '<p id="x"><a href="a.html#x"></a><a href="#y"></a><img src="b.png">'}
    for path, text in found.items():
        path.write_text(text)
    assert list(broken({path: Html(text) for path, text in found.items()})) == ["a.html: #y", "a.html: b.png"]


def test_pages_and_styles_load_nothing_from_another_server(site: Path, pages: dict[Path, Html]) -> None:
    assert not {each for html in pages.values() for each in html.loaded if urlsplit(each).netloc}
    for style in site.rglob("*.css"):
        assert "url(http" not in style.read_text(encoding="utf-8")


def test_every_page_is_in_the_navigation(site: Path, pages: dict[Path, Html]) -> None:
    front = site / "index.html"
    linked = {(site / urlsplit(each).path).resolve() for each in pages[front].links if not urlsplit(each).netloc}
    assert set(pages) - {front} <= linked


def test_front_page_includes_parts_of_the_readme(site: Path, pages: dict[Path, Html]) -> None:
    front = site / "index.html"
    text = front.read_text(encoding="utf-8")
    assert "<!-- include" not in text
    for part in ("CrystalPerf shows why", "pipx install .", "4.0 s instead of 7.4 s", "PySpark and Python UDFs"):
        assert text.count(part) == 1, part
    for name in ("page-verdict", "public-reruns"):
        shown = {each for each in pages[front].loaded if name in each}
        assert {each.partition("#")[2] for each in shown} == {"only-light", "only-dark"}
    assert "how-to/record-spark.html" in pages[front].links


@pytest.mark.parametrize("width", [400, 1440])
def test_search_finds_a_page_without_a_server(chromium: Browser, site: Path, width: int) -> None:
    page = chromium.new_page(viewport={"width": width, "height": 900})
    wrong: list[str] = []
    page.on("console", lambda said: wrong.append(said.text) if said.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("request", lambda asked: None if asked.url.startswith("file:") else wrong.append(asked.url))
    page.goto((site / "index.html").as_uri())
    page.keyboard.press("s")
    page.keyboard.type("prediction interval")
    page.wait_for_selector(".md-search-result__item")
    found = [each.get_attribute("href") or "" for each in page.query_selector_all(".md-search-result__link")]
    assert any("glossary.html" in each for each in found)
    assert not wrong
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["index", "accuracy", "reference/reading-the-output", "reference/python-api"])
def test_pages_have_no_serious_finding_of_axe(
    chromium: Browser, site: Path, name: str, scheme: Literal["light", "dark"]
) -> None:
    if not AXE.is_file():
        pytest.skip("web/node_modules is not there (make page)")
    page = chromium.new_page(viewport={"width": 1440, "height": 900}, color_scheme=scheme)
    page.goto((site / f"{name}.html").as_uri())
    page.wait_for_timeout(300)  # the theme wraps tables
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate("axe.run()")
    serious = [each for each in found["violations"] if each["impact"] in ("serious", "critical")]
    assert not [(each["id"], [node["target"] for node in each["nodes"]][:5]) for each in serious]
    assert len(found["passes"]) > 15
    page.close()


@pytest.mark.parametrize("width", [400, 2560])
def test_no_page_is_wider_than_the_window(chromium: Browser, pages: dict[Path, Html], width: int) -> None:
    page = chromium.new_page(viewport={"width": width, "height": 900})
    wide = []
    for path in pages:
        page.goto(path.as_uri())
        if page.evaluate("document.documentElement.scrollWidth") > width:
            wide.append(path.name)
    assert not wide
    page.close()
