"""The site of the documentation: its links work, it asks no other server, and its search works without a server."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import unquote, urlsplit

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.later

ROOT = Path(__file__).parent.parent
AXE = ROOT / "web/node_modules/axe-core/axe.min.js"
LOADED = {"audio", "embed", "iframe", "img", "script", "source", "video"}
NOT_LOADED = {"alternate", "canonical", "next", "prev"}
"""Relations of <link> that a browser does not load."""
WIDTHS = (400, 768, 1440, 2560)
"""Widths of windows, in pixels: a phone, a tablet, a laptop, a large screen."""


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


@dataclass
class Seen:
    """A page in a browser, and its errors: of the console, of scripts, and requests to another server."""

    page: Page
    wrong: list[str]

    def opened(self, path: Path) -> None:
        self.wrong.clear()
        self.page.goto(path.as_uri())

    def is_too_wide(self) -> bool:
        width: int = self.page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
        return width > 0

    def serious(self) -> list[tuple[str, list[str]]]:
        """Serious findings of axe, each with the first elements that it is about."""
        self.page.wait_for_timeout(300)  # the theme wraps tables
        self.page.evaluate(AXE.read_text(encoding="utf-8"))
        found = self.page.evaluate("axe.run()")
        assert found["passes"], "axe examined nothing"
        violations = [each for each in found["violations"] if each["impact"] in ("serious", "critical")]
        return [(each["id"], [str(node["target"]) for node in each["nodes"]][:5]) for each in violations]


@contextmanager
def seen(browser: Browser, width: int, scheme: Literal["light", "dark"] = "light") -> Iterator[Seen]:
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    wrong: list[str] = []
    page.on("console", lambda said: wrong.append(said.text) if said.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("request", lambda asked: None if asked.url.startswith(("file:", "data:")) else wrong.append(asked.url))
    try:
        yield Seen(page, wrong)
    finally:
        page.close()


@pytest.mark.parametrize("width", [400, 1440])
@pytest.mark.parametrize(("words", "name"), [("prediction interval", "glossary.html"), ("gpumem", "resources.html")])
def test_search_finds_a_page_without_a_server(chromium: Browser, site: Path, width: int, words: str, name: str) -> None:
    with seen(chromium, width) as there:
        there.opened(site / "index.html")
        there.page.keyboard.press("s")
        there.page.keyboard.type(words)
        there.page.wait_for_selector(".md-search-result__item")
        links = there.page.query_selector_all(".md-search-result__link")
        assert any(name in (each.get_attribute("href") or "") for each in links)
        assert not there.wrong


def test_search_for_nonsense_finds_nothing(chromium: Browser, site: Path) -> None:
    with seen(chromium, 1440) as there:
        there.opened(site / "index.html")
        there.page.keyboard.press("s")
        there.page.keyboard.type("xqzzyw")
        there.page.wait_for_function("document.querySelector('.md-search-result__meta').innerText.includes('No match')")
        assert not there.page.query_selector_all(".md-search-result__item")


@pytest.mark.parametrize("width", WIDTHS)
def test_every_page_fits_and_has_no_error(chromium: Browser, pages: dict[Path, Html], width: int) -> None:
    found = []
    with seen(chromium, width) as there:
        for path in pages:
            there.opened(path)
            found += [(path.name, each) for each in there.wrong]
            found += [(path.name, "too wide")] if there.is_too_wide() else []
    assert not found


EXAMINED = re.compile(r"/(tutorials|how-to|reference)/[\w-]+\.html$|/(index|accuracy|architecture|SECURITY)\.html$")
"""The pages that axe examines, which takes it seconds for each."""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_page_has_a_serious_finding_of_axe(
    chromium: Browser, pages: dict[Path, Html], scheme: Literal["light", "dark"]
) -> None:
    if not AXE.is_file():
        pytest.skip("web/node_modules is not there (make page)")
    examined = [each for each in pages if EXAMINED.search(each.as_posix())]
    assert len(examined) >= 30
    found = []
    with seen(chromium, 1440, scheme) as there:
        there.page.set_default_timeout(120_000)
        for path in examined:
            there.opened(path)
            found += [(path.name, *each) for each in there.serious()]
    assert not found


def test_a_wide_page_its_errors_and_its_pictures_without_text_are_found(chromium: Browser, tmp_path: Path) -> None:
    page = tmp_path / "wrong.html"
    page.write_text(
        '<html lang="en"><title>a</title><main><h1>a</h1><p style="width: 3000px">a</p><img src="a.png">'
        '<script>console.error("wrong"); fetch("http://127.0.0.1:1/"); absent()</script></main></html>'
    )
    with seen(chromium, WIDTHS[-1]) as there:
        there.opened(page)
        assert there.is_too_wide()
        there.page.wait_for_timeout(300)
        assert {"wrong", "http://127.0.0.1:1/", "absent is not defined"} <= set(there.wrong)
        if AXE.is_file():
            assert "image-alt" in [name for name, _ in there.serious()]
