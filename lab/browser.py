"""Debian's Chromium, driven by playwright, for tests and measurements that need a browser."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lab.errors import LabError

if TYPE_CHECKING:
    from playwright.sync_api import Browser

NAMES = ("chromium", "chromium-browser", "google-chrome")


def missing() -> str:
    """The missing package for opening pages in a browser; empty if nothing is missing."""
    if not any(map(shutil.which, NAMES)):
        return "chromium is not installed (Debian: apt-get install chromium)"
    try:
        import playwright.sync_api  # noqa: F401
    except ModuleNotFoundError:
        return "playwright is not installed (pip install -e '.[lab]')"
    return ""


@contextmanager
def browser() -> Iterator[Browser]:
    """The system's browser, closed at the end; playwright downloads none."""
    lacking = missing()
    if lacking:
        raise LabError(lacking)
    from playwright.sync_api import sync_playwright

    place = next(found for each in NAMES if (found := shutil.which(each)))
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=place)
        try:
            yield opened
        finally:
            opened.close()
