"""Logs from a History Server, and errors for the page of a running application.

    http://HOST:18080                              one application, or the choice among several
    http://HOST:18080/history/APP[/ATTEMPT]        as in the browser
    http://HOST:18080/api/v1/applications/APP…     as in scripts

The server returns a zip of the current log, also for a running application.  The zip is cached with the time of its
last change, so that an unchanged log is not fetched again.  The page of a running application (http://DRIVER:4040)
returns no log; its pages are fetched instead, and written as the events of one (pages.py).
"""

from __future__ import annotations

import os
import urllib.parse
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from crystalperf.indexes.errors import InputError
from crystalperf.indexes.exports import writable
from crystalperf.indexes.frozen import frozen
from crystalperf.indexes.regex import regex
from crystalperf.indexes.temporary import building_folder
from crystalperf.query.frameworks.spark.pages import Pages, events
from crystalperf.query.inputs.containers import ZIP_MAGIC, LogFile
from crystalperf.query.inputs.discover import choose
from crystalperf.query.inputs.files import Application, Inputs
from crystalperf.query.inputs.rest import Server, pieces
from crystalperf.query.trace.records import shortened

PAGES_S = 600.0
"""Budget of all pages of a running application together."""

TASKS, QUERIES, MOST_ROWS = 10_000, 1_000, 1_000_000
"""Tasks and queries of one request, and the most rows of a page."""

MAX_LOG_BYTES = 16 << 30
"""Maximum size of a zip of logs: the largest known."""

_MAX_MS = 1 << 43
"""The latest time that every file system can store: a server may send a later one."""

_ADDRESS = regex(r"(?P<host>https?://[^\s/?#@]+)(?P<path>(?:/[^\s?#]*)?)(?:[?#]\S*)?")
_HISTORY = regex(r"(?P<base>.*)/history/(?P<app>[^/]+)(?:/(?P<attempt>\d+))?(?:/.*)?")
_REST = regex(r"(?P<base>.*)/api/v1(?:/applications(?:/(?P<app>[^/]+)(?:/(?P<attempt>\d+))?(?:/.*)?)?)?/?")
_PAGES = regex(r"(?P<base>.*?)/?(?:(?:jobs|stages|storage|environment|executors|SQL|StreamingQuery)(?:/.*)?)?")
_ATTEMPT = regex(r"[0-9]{1,9}")
_ID = regex(r"[A-Za-z0-9_.-]{1,200}")

_T = TypeVar("_T")


class Version(msgspec.Struct):
    """The page of the version; other servers have another page there, or none."""

    spark: str


class Attempt(
    msgspec.Struct, rename={"number": "attemptId", "begin_ms": "startTimeEpoch", "at_ms": "lastUpdatedEpoch"}
):
    """An attempt in the list of applications; `at_ms` is the time of the log's last change."""

    number: str | None = None
    begin_ms: float | None = None
    at_ms: float | None = None


class Listed(msgspec.Struct):
    """An application in the list of them, and its own page."""

    id: str
    attempts: list[Attempt]
    name: str | None = None


class Environment(msgspec.Struct, rename={"settings": "sparkProperties"}):
    """The page of an application's environment."""

    settings: list[tuple[str, str]] = []


@frozen
class Address:
    """A parsed address: the server, and the application and attempt if named."""

    server: str
    app: str | None = None
    attempt: str | None = None


def address_of(text: str) -> Address | None:
    """The parsed address; None if it cannot be a page of Spark's."""
    whole = _ADDRESS.fullmatch(text)
    if whole is None:
        return None
    for pattern in (_HISTORY, _REST):
        if found := pattern.fullmatch(whole["path"]):
            app = None if found["app"] is None else urllib.parse.unquote(found["app"])
            return Address(whole["host"] + found["base"], app, found["attempt"])
    found = _PAGES.fullmatch(whole["path"])
    known = found is not None and (whole["path"].rstrip("/") == "" or found["base"] != whole["path"].rstrip("/"))
    return Address(whole["host"] + (found["base"] if found else "")) if known else None


def served(text: str, app: str | None, folder: Path, progress: Callable[[str], None]) -> Path | None:
    """The log at an address of Spark's, as a file below `folder`; None if no server of Spark's responds.

    `app` selects one of several applications, as APP or APP/ATTEMPT.  Raises InputError.
    """
    named = address_of(text)
    if named is None:
        return None
    server = _Server(named.server)
    try:
        if server.page("/api/v1/version", Version) is None:
            return None
    except _UnlikeError:
        return None
    progress("listing the applications")
    selector = app or (named.app and (f"{named.app}/{named.attempt}" if named.attempt else named.app))
    if named.app:
        only = server.page(f"/api/v1/applications/{_quoted(named.app)}", Listed)
        listed = [] if only is None else [only]
    else:
        listed = server.page("/api/v1/applications", list[Listed]) or []
    found = list(_applications(listed, server.address))
    if not found:
        what = "has no such application" if named.app else "has no application yet"
        raise InputError(f"{text}: the server {what}; it lists logs some seconds after they are written")
    chosen = choose(Inputs(tuple(_newest_first(found)), (), ()), selector)
    try:
        return _fetched(server, chosen, folder, progress)
    except _NoLogError as error:
        progress(f"{error}; reading its pages instead")
        return _from_pages(server, chosen, folder)


def _applications(listed: Sequence[Listed], origin: str) -> Iterator[Application]:
    """The attempts that a server lists, without ids that are not valid file names."""
    for each in listed:
        if _ID.fullmatch(each.id) is None:
            continue
        for one in each.attempts:
            yield Application(
                framework="spark",
                app_id=each.id,
                attempt=one.number if one.number is not None and _ATTEMPT.fullmatch(one.number) else None,
                name=each.name or None,
                started_at_ms=_number(one.begin_ms),
                log=LogFile(origin, ()),
                size=int(_number(one.at_ms) or 0),
            )


def _newest_first(found: list[Application]) -> list[Application]:
    return sorted(found, key=lambda each: (each.started_at_ms or 0.0, int(each.attempt or 0)), reverse=True)


def _number(value: float | None) -> float | None:
    return None if value is None or not abs(value) < _MAX_MS else value


def _fetched(server: _Server, chosen: Application, folder: Path, progress: Callable[[str], None]) -> Path:
    """The zip of a log, fetched unless the cache has one of the same time."""
    place = _place(server, chosen, folder, "zip")
    changed_ns = max(chosen.size, 0) * 1_000_000
    with suppress(OSError):
        if changed_ns and place.stat().st_mtime_ns == changed_ns:
            return place
    progress(f"fetching the log of {chosen.app_id}")
    page = f"{_base(chosen)}/logs"
    with _kept(place), building_folder(place) as building:
        temporary = building / "log.zip"
        with temporary.open("wb") as sink, server.opened(page) as answer:
            temporary.chmod(0o600)  # names of tables and hosts, texts of queries
            for piece in pieces(answer, f"{server.address}{page}", MAX_LOG_BYTES):
                with _kept(place):  # or a full disk would be reported as a missing response
                    sink.write(piece)
        with temporary.open("rb") as stored:
            if stored.read(len(ZIP_MAGIC)) != ZIP_MAGIC:  # the page of a running application responds without content
                raise server.without_log(page)
        if changed_ns:
            os.utime(temporary, ns=(changed_ns, changed_ns))
        os.replace(temporary, place)
    return place


def _place(server: _Server, chosen: Application, folder: Path, suffix: str) -> Path:
    """The file of a log in the cache."""
    where = folder / sha256(server.address.encode()).hexdigest()[:12]
    attempt = "" if chosen.attempt is None else f"_{chosen.attempt}"
    return writable(where / f"{chosen.app_id}{attempt}.{suffix}")


def _base(chosen: Application) -> str:
    """The start of the addresses of an application's pages."""
    attempt = "" if chosen.attempt is None else f"/{chosen.attempt}"
    return f"/api/v1/applications/{_quoted(chosen.app_id)}{attempt}"


def _from_pages(server: _Server, chosen: Application, folder: Path) -> Path:
    """The log that the pages of a running application make."""
    place = _place(server, chosen, folder, "json")
    found = events(_pages(server, chosen))
    with _kept(place), building_folder(place) as building:
        temporary = building / "log.json"
        with temporary.open("wb") as sink:
            temporary.chmod(0o600)
            try:
                for each in found:
                    sink.write(msgspec.json.encode(each) + b"\n")
            except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
                raise server.unlike(_base(chosen), f"a value is missing or of another type: {error!r}") from error
        os.replace(temporary, place)
    return place


def _pages(server: _Server, chosen: Application) -> Pages:
    """All pages of an application, within PAGES_S."""
    base = _base(chosen)
    with server.within(PAGES_S):
        version = server.page("/api/v1/version", Version)
        stages = server.page(f"{base}/stages", list[dict[str, Any]]) or []
        return Pages(
            version=version.spark if version else "",
            application=server.page(f"/api/v1/applications/{_quoted(chosen.app_id)}", dict[str, Any]) or {},
            environment=server.page(f"{base}/environment", dict[str, Any]) or {},
            executors=server.page(f"{base}/allexecutors", list[dict[str, Any]]) or [],
            jobs=server.page(f"{base}/jobs", list[dict[str, Any]]) or [],
            stages=stages,
            tasks={
                (each["stageId"], each["attemptId"]): list(_tasks(server, f"{base}/stages", each))
                for each in stages
                if each.get("status") not in ("PENDING", "SKIPPED") and {"stageId", "attemptId"} <= set(each)
            },
            queries=list(_numbered(server, f"{base}/sql?details=true&planDescription=false", QUERIES)),
        )


def _tasks(server: _Server, base: str, stage: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    yield from _numbered(server, f"{base}/{stage['stageId']}/{stage['attemptId']}/taskList?sortBy=ID", TASKS)


def _numbered(server: _Server, page: str, count: int) -> Iterator[dict[str, Any]]:
    """The rows of a page that is served in parts of `count`."""
    for offset in range(0, MOST_ROWS, count):
        rows = server.page(f"{page}&offset={offset}&length={count}", list[dict[str, Any]]) or []
        yield from rows
        if len(rows) < count:
            return


@contextmanager
def _kept(place: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(f"{place}: the log cannot be written there ({error.strerror or error})") from error


class _Server(Server):
    """A server of Spark's pages and of its REST interface."""

    def page(self, page: str, kind: type[_T]) -> _T | None:
        """A page as this type; None if it does not exist.  Raises InputError."""
        try:
            text = self.fetched(page)
        except _MissingError:
            return None
        if text.startswith(b"Spark is starting up"):  # a driver's page during startup, with status 200
            raise InputError(f"{self.address}: Spark is starting up; try again in a moment")
        return self.as_type(page, text, kind)

    def unlike(self, page: str, why: str) -> InputError:
        """The error for a page of another shape."""
        return _UnlikeError(str(super().unlike(page, why)))

    def refused(self, page: str, status: int) -> InputError:
        """The error for a response with another status than 200."""
        where = f"{self.address}{page}"
        if status == 404:
            return _MissingError(f"{where}: this page does not exist")
        if status in (401, 403):
            return InputError(
                f"{where}: requires a login; download the log's zip with a browser, and analyze that file"
            )
        if page.endswith("/logs") and status in (500, 503):
            return self.without_log(page)
        return super().refused(page, status)

    def without_log(self, page: str) -> InputError:
        """The error for a server that returns no zip: the page of a running application names the folder of the log."""
        try:
            environment = self.page(page.removesuffix("/logs") + "/environment", Environment)
        except _UnlikeError:
            environment = None
        known = dict(environment.settings) if environment is not None else {}
        if not known:
            return InputError(f"{self.address}{page}: is not a zip of a log")
        start = f"{self.address}: is the page of a running application, which does not serve its log"
        if known.get("spark.eventLog.enabled") != "true":
            return _NoLogError(f"{start}, and the application writes no log")
        folder = shortened(known.get("spark.eventLog.dir", "/tmp/spark-events"))
        return _NoLogError(f"{start}; the log in {folder} has more")


class _NoLogError(InputError):
    """A running application, whose pages there are instead of a log."""


class _MissingError(InputError):
    """A page that does not exist."""


class _UnlikeError(InputError):
    """A page of another shape."""


def _quoted(text: str) -> str:
    return urllib.parse.quote(text, safe="")
