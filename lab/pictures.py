"""The pictures of docs/pictures that show a run's page, taken in a browser: the demo, light and dark.

python -m lab.pictures
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Literal

import crystalperf as cp
from crystalperf.report.page import render
from lab.browser import browser
from lab.errors import LabError

if TYPE_CHECKING:
    from playwright.sync_api import FloatRect, Page, ViewportSize

ROOT = Path(__file__).parent.parent
RECORDING = ROOT / "lab/recordings/demo-q9"
PICTURES = ROOT / "docs/pictures"
MAX_BYTES = 300_000
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
WIDTH, PHONE, HEIGHT = 1_280, 400, 800
ABOVE, BELOW = 18, 18  # offsets of a picture from the top and the end of its section


def main() -> int:
    """Take all pictures again."""
    with TemporaryDirectory() as folder, browser() as opened:
        place = Path(folder) / "page.html"
        place.write_text(render(cp.profile([RECORDING], output=Path(folder) / "demo.duckdb")), encoding="utf-8")
        for scheme in SCHEMES:
            for part in ("verdict", "what-if", "timeline", "stages", "flame", "phone"):
                size: ViewportSize = {"width": PHONE if part == "phone" else WIDTH, "height": HEIGHT}
                page = opened.new_page(viewport=size, color_scheme=scheme)
                page.goto(place.as_uri())
                page.wait_for_selector("#headline")
                _take(page, part, PICTURES / f"page-{part}-{scheme}.png")
                page.close()
    return 0


def _take(page: Page, part: str, place: Path) -> None:
    if part in ("verdict", "phone"):
        page.screenshot(path=place)
    else:
        if part == "what-if":
            page.locator(".usual li button").nth(1).click()
        page.locator(f"#{part}").scroll_into_view_if_needed()
        page.wait_for_timeout(300)
        box = page.locator(f"#{part}").bounding_box()
        assert box is not None  # it was scrolled to
        down = box["y"] + page.evaluate("scrollY")
        clip: FloatRect = {"x": 0, "y": down + ABOVE, "width": WIDTH, "height": box["height"] - ABOVE + BELOW}
        page.screenshot(path=place, full_page=True, clip=clip)
    if place.stat().st_size > MAX_BYTES:
        raise LabError(f"{place} has {place.stat().st_size} bytes; the limit is {MAX_BYTES}")
    print(f"{place.relative_to(ROOT)}: {place.stat().st_size / 1000:.0f} KB")


if __name__ == "__main__":
    raise SystemExit(main())
