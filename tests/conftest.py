"""Shared by all tests: network access to this machine only, and a separate cache."""

from __future__ import annotations

import os
import shutil
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

from crystalperf.cli.main import run

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from crystalperf.query.run import Run

ROOT = Path(__file__).parent.parent
REAL_INPUTS = ROOT.parent / "shared" / "real-inputs"

settings.register_profile("untimed", deadline=None)  # no test asserts how long something takes
settings.load_profile("untimed")

# Torch starts as many threads as there are CPUs, which wait for each other by spinning: on two CPUs with other work a
# training of a second took a minute.
os.environ.setdefault("OMP_NUM_THREADS", "1")


class BlockedNetworkError(AssertionError):
    """A test reached for the network."""


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Of `make test`, what is wholly left to `make test-all`: to import torch takes each worker ten seconds."""
    if config.option.markexpr != "not later" or collection_path.suffix != ".py":
        return None
    return "\npytestmark = pytest.mark.later\n" in collection_path.read_text(encoding="utf-8") or None


@pytest.hookimpl(tryfirst=True)  # before pytest chooses by marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave to `make test-all` what asks for Java's readers, which Maven fetches, or for the public files, for minutes.

    The fixtures decide, so that nobody has to think of it; the mark can be set by hand too.  Of the cases of a test
    that is marked `few(NOW)` all but NOW, evenly spread from the first on, are left to it as well.
    """
    cases: dict[object, list[pytest.Item]] = {}
    for each in items:
        if {"java_dump", "real_inputs"} & set(getattr(each, "fixturenames", ())):
            each.add_marker("later")
        if each.get_closest_marker("few"):
            cases.setdefault(each.function, []).append(each)  # type: ignore[attr-defined]
    for alike in cases.values():
        (now,) = alike[0].get_closest_marker("few").args  # type: ignore[union-attr]
        chosen = {number * len(alike) // now for number in range(now)}
        for number, each in enumerate(alike):
            if number not in chosen:
                each.add_marker("later")


@pytest.fixture(autouse=True, scope="session")
def one_name() -> Iterator[None]:
    """Fail a session in which a package was imported as `query` as well as crystalperf.query."""
    yield
    rooms = ("indexes", "indexer", "query", "report", "service", "fleet", "cli")
    assert not [each for each in sys.modules if each.partition(".")[0] in rooms]


@pytest.fixture(autouse=True, scope="session")
def no_network() -> Iterator[None]:
    """Fail any connection that leaves the machine; child processes that may do so say why they are exempt."""
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: Any) -> None:
        host = address[0] if isinstance(address, tuple) else ""
        if self.family != socket.AF_UNIX and not str(host).startswith(("127.", "::1", "localhost", "10.203.")):
            raise BlockedNetworkError(f"a test connects to {address}")
        connect(self, address)

    socket.socket.connect = guarded  # type: ignore[method-assign]
    yield
    socket.socket.connect = connect  # type: ignore[method-assign]


@pytest.fixture(scope="session")
def shared_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The cache that all tests share; with pytest-xdist each of its workers has one."""
    return tmp_path_factory.getbasetemp() / "home"


@pytest.fixture(autouse=True)
def own_cache(shared_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests never see the user's cache; prebuilt indexes are unpacked once for the whole session."""
    monkeypatch.setenv("CRYSTALPERF_HOME", str(shared_home))
    monkeypatch.setenv("NO_COLOR", "1")


@pytest.fixture(scope="session")
def real_inputs() -> Path:
    """Public logs and recordings next to the checkout, where somebody put them."""
    if not REAL_INPUTS.is_dir():
        pytest.skip("the folder of public real inputs is not next to this checkout")
    return REAL_INPUTS


@pytest.fixture(scope="session")
def demo() -> Path:
    """The recorded run that `make demo` explains."""
    folder = ROOT / "lab" / "recordings" / "demo-q9"
    if not folder.is_dir():
        pytest.skip("the demo's recording is not in this checkout")
    return folder


# Profiles that many tests ask: each is made once, and is for reading only.


@pytest.fixture(scope="session")
def demo_run(demo: Path, shared_home: Path) -> Iterator[Run]:
    """The demo with its recordings, kept in the shared cache under its own name."""
    yield from shared([demo], shared_home)


@pytest.fixture(scope="session")
def demo_log_run(demo: Path, shared_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """The demo's log alone: quick, and enough for what does not depend on samples."""
    output = tmp_path_factory.mktemp("shared") / "demo-log.duckdb"
    yield from shared(sorted(demo.glob("eventlog*")), shared_home, output)


@pytest.fixture(scope="session")
def log_run(shared_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """Another real log of Spark, one file of it, without recordings."""
    log = ROOT / "tests" / "data" / "eventlog" / "q9.zstd"
    yield from shared([log], shared_home, tmp_path_factory.mktemp("shared") / "q9.duckdb")


def shared(paths: list[Path], home: Path, output: Path | None = None) -> Iterator[Run]:
    """The profile of the paths; a test that changed its file would change the input of other tests."""
    import crystalperf as cp

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CRYSTALPERF_HOME", str(home))
        made = cp.profile(paths, output=output)
    before = made.path.read_bytes()
    yield made
    assert made.path.read_bytes() == before


@pytest.fixture(scope="module")  # no longer: playwright's loop would be in the way of other modules' own
def chromium() -> Iterator[Browser]:
    """The system's browser."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (pip install -e '.[lab]')")
    place = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if place is None:
        pytest.skip("chromium is not installed (Debian: apt-get install chromium)")
    with api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=place)
        yield opened
        opened.close()


@pytest.fixture
def crystalperf(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Run a command line: (exit code, stdout, stderr)."""

    def call(*arguments: object) -> tuple[int, str, str]:
        code = run([str(each) for each in arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call
