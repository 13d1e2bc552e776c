"""Each test once in continuous integration, where one run follows another with more installed.

    pytest -p tests.once --passed-to FILE     writes the names of the tests that passed to FILE
    pytest -p tests.once --not-again FILE     leaves those out

Nobody sorts tests by hand: tests that passed in the first run are done.  The second run has those that the first run
skipped because a package was missing or did not collect, and new tests.  A test that would pass without a package and
could fail with it must skip itself without it.
"""

from __future__ import annotations

from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("once")
    group.addoption("--passed-to", type=Path, metavar="FILE", help="write the names of the tests that passed to FILE")
    group.addoption("--not-again", type=Path, metavar="FILE", help="leave out the tests whose names are in FILE")


def pytest_configure(config: pytest.Config) -> None:
    # The workers of pytest-xdist report to the process that started them, and this alone writes.
    if config.option.passed_to and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Passed(config.option.passed_to))


class Passed:
    """Collects the names of tests of which nothing failed, neither their setup nor what comes after them."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.passed: set[str] = set()
        self.failed: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.add(report.nodeid)
        elif report.passed and report.when == "call":
            self.passed.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        names = sorted(self.passed - self.failed)
        self.file.write_text("".join(f"{each!a}\n" for each in names), encoding="utf-8")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.option.not_again:
        over = set(config.option.not_again.read_text(encoding="utf-8").split("\n"))
        again = [each for each in items if ascii(each.nodeid) not in over]
        config.hook.pytest_deselected(items=[each for each in items if ascii(each.nodeid) in over])
        items[:] = again
