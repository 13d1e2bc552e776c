"""Logs from a History Server, and errors for the page of a running application.

    http://HOST:18080                              one application, or the choice among several
    http://HOST:18080/history/APP[/ATTEMPT]        as in the browser
    http://HOST:18080/api/v1/applications/APP…     as in scripts

The server returns a zip of the current log, also for a running application.  The zip is cached with the time of its
last change, so that an unchanged log is not fetched again.  The page of a running application (http://DRIVER:4040)
returns no log; it names the folder of the log.
"""

from __future__ import annotations

import json
import os
import re
import urllib.parse
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from crystalperf.indexes.errors import InputError, Remedy
from crystalperf.indexes.exports import writable
from crystalperf.indexes.temporary import building_folder
from crystalperf.query.inputs.containers import ZIP_MAGIC, LogFile
from crystalperf.query.inputs.discover import choose
from crystalperf.query.inputs.files import Application, Inputs
from crystalperf.query.inputs.rest import Server, pieces
from crystalperf.query.trace.records import shortened

MAX_LOG_BYTES = 16 << 30
"""Maximum size of a zip of logs: the largest known."""

_MAX_MS = 1 << 43
"""The latest time that every file system can store: a server may send a later one."""

_ADDRESS = re.compile(r"(?P<host>https?://[^\s/?#@]+)(?P<path>(?:/[^\s?#]*)?)(?:[?#]\S*)?")
_HISTORY = re.compile(r"(?P<base>.*)/history/(?P<app>[^/]+)(?:/(?P<attempt>\d+))?(?:/.*)?")
_REST = re.compile(r"(?P<base>.*)/api/v1(?:/applications(?:/(?P<app>[^/]+)(?:/(?P<attempt>\d+))?(?:/.*)?)?)?/?")
_PAGES = re.compile(r"(?P<base>.*?)/?(?:(?:jobs|stages|storage|environment|executors|SQL|StreamingQuery)(?:/.*)?)?")
_ATTEMPT = re.compile(r"[0-9]{1,9}")
_ID = re.compile(r"[A-Za-z0-9_.-]{1,200}")


@dataclass(frozen=True)
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
    version = server.page("/api/v1/version", missing={})
    if not isinstance(version, dict) or "spark" not in version:
        return None
    progress("listing the applications")
    selector = app or (named.app and (f"{named.app}/{named.attempt}" if named.attempt else named.app))
    listed = server.page(f"/api/v1/applications{f'/{_quoted(named.app)}' if named.app else ''}", missing=[])
    found = list(_applications(listed if isinstance(listed, list) else [listed], server.address))
    if not found:
        what = "has no such application" if named.app else "has no application yet"
        raise InputError(f"{text}: the server {what}; it lists logs some seconds after they are written")
    chosen = choose(Inputs(tuple(_newest_first(found)), (), ()), selector)
    return _fetched(server, chosen, folder, progress)


def _applications(listed: list[Any], origin: str) -> Iterator[Application]:
    """The attempts that a server lists, without ids that are not valid file names."""
    for each in listed:
        app_id = each.get("id") if isinstance(each, dict) else None
        attempts = each.get("attempts") if isinstance(each, dict) else None
        if not isinstance(app_id, str) or _ID.fullmatch(app_id) is None or not isinstance(attempts, list):
            continue
        for one in attempts:
            if isinstance(one, dict):
                number = one.get("attemptId")
                yield Application(
                    framework="spark",
                    app_id=app_id,
                    attempt=number if isinstance(number, str) and _ATTEMPT.fullmatch(number) else None,
                    name=str(each.get("name") or "") or None,
                    started_at_ms=_number(one.get("startTimeEpoch")),
                    log=LogFile(origin, ()),
                    size=int(_number(one.get("lastUpdatedEpoch")) or 0),
                )


def _newest_first(found: list[Application]) -> list[Application]:
    return sorted(found, key=lambda each: (each.started_at_ms or 0.0, int(each.attempt or 0)), reverse=True)


def _number(value: object) -> float | None:
    if not isinstance(value, int | float) or isinstance(value, bool) or not abs(value) < _MAX_MS:
        return None
    return float(value)


def _fetched(server: _Server, chosen: Application, folder: Path, progress: Callable[[str], None]) -> Path:
    """The zip of a log, fetched unless the cache has one of the same time."""
    attempt = "" if chosen.attempt is None else f"/{chosen.attempt}"
    where = folder / sha256(server.address.encode()).hexdigest()[:12]
    place = writable(where / f"{chosen.app_id}{attempt.replace('/', '_')}.zip")
    changed_ns = max(chosen.size, 0) * 1_000_000
    with suppress(OSError):
        if changed_ns and place.stat().st_mtime_ns == changed_ns:
            return place
    progress(f"fetching the log of {chosen.app_id}")
    page = f"/api/v1/applications/{_quoted(chosen.app_id)}{attempt}/logs"
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


@contextmanager
def _kept(place: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(f"{place}: the log cannot be written there ({error.strerror or error})") from error


class _Server(Server):
    """A server of Spark's pages and of its REST interface."""

    def page(self, page: str, missing: Any) -> Any:
        """A page as decoded JSON, or `missing` if it does not exist or is of another type.  Raises InputError."""
        try:
            text = self.fetched(page)
        except _MissingError:
            return missing
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            if text.startswith(b"Spark is starting up"):  # a driver's page during startup, with status 200
                raise InputError(f"{self.address}: Spark is starting up; try again in a moment") from None
            return missing

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
        environment = self.page(page.removesuffix("/logs") + "/environment", missing={})
        pairs = environment.get("sparkProperties", []) if isinstance(environment, dict) else []
        known = {each[0]: each[1] for each in pairs if isinstance(each, list) and len(each) == 2}
        if not known:
            return InputError(f"{self.address}{page}: is not a zip of a log")
        start = f"{self.address}: is the page of a running application, which does not serve its log"
        if known.get("spark.eventLog.enabled") != "true":
            return InputError(
                f"{start}, and the application writes no log", Remedy("set up the job", {"framework": "spark"})
            )
        folder = shortened(str(known.get("spark.eventLog.dir", "/tmp/spark-events")))
        return InputError(f"{start}; analyze the log in {folder}, also while the application runs")


class _MissingError(InputError):
    """A page that does not exist."""


def _quoted(text: str) -> str:
    return urllib.parse.quote(text, safe="")
