"""Damaged inputs at other interfaces: from a History Server, as a page, as a fleet, uploaded to the service.

Each function takes the files of a damaged run, {name: content}, uses one interface as a user does, and returns the
result: read or refused, and the sentence.  Violations raise ContradictionError.
"""

from __future__ import annotations

import asyncio
import io
import json
import os
import re
import threading
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from html.parser import HTMLParser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

from starlette.requests import Request

import crystalperf as cp
from crystalperf import report
from crystalperf.fleet.engines import Engine
from crystalperf.fleet.reading import read
from crystalperf.fleet.summary import opened
from crystalperf.indexes.errors import CrystalPerfError
from crystalperf.service.problems import ProblemError
from crystalperf.service.profiler import check_within
from crystalperf.service.settings import Limits
from crystalperf.service.uploads import Uploads
from lab.damage.judging import ContradictionError, one_sentence, typed
from lab.damage.mutations import changed_document, damaged

Files = dict[str, bytes]
Reported = tuple[str, str]

_NAMES: tuple[bytes, ...] = (
    b"log", b"day=2026-01-01", b"*", b"[x", b"a b", b"'; DROP TABLE runs", b"l\xffg", b"\xe2\x80\xaex", b"=1+1",
    b"-o", b"a\nb\x1b[31m", b"eventlog_v2_", b"%41", b"$HOME", b"x.jfr", b"app-20260101000000-0000.collapsed",
)  # fmt: skip


# A server -------------------------------------------------------------------------------------------------------------


def through_server(random: Random, files: Files, folder: Path, home: Path) -> Reported:
    """Serve the log from a History Server, whose version, list and zip are damaged too."""
    with _served(_pages(random, files)) as address:
        place = random.choice(("", "/history/app-1", "/history/app-1/1/jobs/", "/api/v1/applications/app-1/1/logs"))
        message = typed(home, random.choice(("analyze", "profile")), address + place)
    return _reported(message)


def _pages(random: Random, files: Files) -> dict[str, tuple[int, dict[str, str], bytes]]:
    listed = {
        "id": "app-1",
        "name": "made",
        "attempts": [{"attemptId": "1", "startTimeEpoch": 1700000000000, "lastUpdatedEpoch": 1700000100000}],
    }
    stored = io.BytesIO()
    with zipfile.ZipFile(stored, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    one, many = json.dumps(listed).encode(), json.dumps([listed]).encode()
    log = stored.getvalue()
    begin = "/api/v1/applications"
    found = {"/api/v1/version": b'{"spark":"3.5.1"}', begin: many, f"{begin}/app-1": one, f"{begin}/app-1/1": one}
    found |= dict.fromkeys((f"{begin}/app-1/logs", f"{begin}/app-1/1/logs"), log)
    pages = {place: (200, dict[str, str](), content) for place, content in found.items()}
    for place, (_, _, content) in list(pages.items()):
        drawn = random.random()
        if drawn < 0.25:
            how = damaged if place.endswith("/logs") else changed_document
            pages[place] = (200, {}, how(random, content)[0])
        elif drawn < 0.3:
            pages[place] = (random.choice((204, 304, 400, 403, 404, 418, 500, 503, 999)), {}, content)
        elif drawn < 0.34:
            where = random.choice((place, begin, "http://127.0.0.1:9/x", "file:///etc/passwd", "//x", "\x7f", ""))
            pages[place] = (random.choice((301, 302, 307)), {"Location": where}, b"")
        elif drawn < 0.38:
            header = random.choice((("Content-Length", "9" * 20), ("Content-Length", "-1"), ("Content-Length", "7")))
            pages[place] = (200, dict([header, ("Content-Encoding", "gzip")]), content)
    return pages


@contextmanager
def _served(pages: dict[str, tuple[int, dict[str, str], bytes]]) -> Iterator[str]:
    """The address of a server with these pages."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, headers, content = pages.get(self.path, (404, {}, b""))
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            with suppress(OSError):
                self.wfile.write(content)

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


# A page ---------------------------------------------------------------------------------------------------------------


class _Elements(HTMLParser):
    """Counts of elements, and attributes that could run code."""

    def __init__(self) -> None:
        super().__init__()
        self.scripts = 0
        self.running: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.scripts += tag == "script"
        self.running += [
            f"{tag} {name}"
            for name, value in attrs
            if name.startswith("on") or name == "srcdoc" or re.match(r"\s*(?:javascript|https?|//)", value or "")
        ]


_SCRIPTS = (Path(report.__file__).parent / "templates" / "page.html.j2").read_text(encoding="utf-8").count("<script")
"""Script elements of every page: its data and its own script."""


def through_page(random: Random, files: Files, folder: Path, home: Path) -> Reported:
    """Write the page of the run, and check that it has no additional scripts or other code."""
    write(folder, files)
    run, page = folder.with_name("run.duckdb"), folder.with_name("page.html")
    try:
        message = typed(home, "profile", folder, "-o", run)
        if message is None:
            message = typed(home, "report", run, "-o", page, *(("--redact",) if random.random() < 0.3 else ()))
        if message is None:
            elements = _Elements()
            elements.feed(page.read_text(encoding="utf-8"))
            elements.close()
            if elements.running or elements.scripts != _SCRIPTS:
                raise ContradictionError(f"a page with {elements.scripts} scripts and {elements.running}")
    finally:
        for each in (run, page):
            each.unlink(missing_ok=True)
    return _reported(message)


# A fleet --------------------------------------------------------------------------------------------------------------


def through_fleet(random: Random, files: Files, folder: Path, home: Path) -> Reported:
    """A fleet of the run's files under hostile names, with a link and a pipe: each log becomes a run or a problem."""
    place = folder / "logs"
    place.mkdir()
    write(place, files)
    for each in list(place.iterdir()):
        if each.is_file() and random.random() < 0.5:
            os.rename(os.fsencode(each), os.fsencode(place) + b"/" + random.choice(_NAMES))
    if random.random() < 0.2:
        (place / "away").symlink_to(random.choice(("/nowhere", "away", "/dev/zero", "..")))
    if random.random() < 0.1:
        os.mkfifo(place / "pipe")

    def here(_: Engine, items: Sequence[Any], scratch: Path) -> Iterator[Any]:
        return (read(each, scratch) for each in items)

    fleet = folder / "fleet"
    with patch.object(Engine, "read_all", here):
        message = typed(home, "fleet", "build", place, "-o", fleet)
    if message is not None:
        return _reported(message)
    for form in ((), ("--json",)):
        if (message := typed(home, "fleet", "ask", fleet, *form)) is not None:
            raise ContradictionError(f"the summary of a built fleet failed: {message}")
    with opened(fleet) as tables:
        unreported = tables.execute(
            "SELECT path FROM logs WHERE runs = 0 AND path NOT IN (SELECT path FROM problems)"
        ).fetchall()
        bugs = tables.execute("SELECT text FROM problems WHERE text LIKE '%bug of CrystalPerf%'").fetchall()
    if unreported or bugs:
        raise ContradictionError(f"logs missing in a fleet: {unreported}; bugs: {bugs}")
    return "read", ""


# An upload ------------------------------------------------------------------------------------------------------------


def through_upload(random: Random, files: Files, folder: Path, home: Path) -> Reported:
    """Upload the files and profile them; no file may be outside of the upload's own folder."""
    inputs, staging = folder / "inputs", folder / "staging"
    for each in (inputs, staging):
        each.mkdir()
    boundary, body = _form(random, files)
    limits = Limits(upload_bytes=8 << 20, upload_files=8, silent_s=5.0)
    uploads = Uploads(inputs, staging, set(), limits)
    pieces = [body[place : place + 65536] for place in range(0, len(body), 65536)] or [b""]

    async def receive() -> dict[str, Any]:
        if not pieces:
            return {"type": "http.disconnect"}
        piece = pieces.pop(0)
        return {"type": "http.request", "body": piece, "more_body": bool(pieces)}

    content_type = b"multipart/form-data; boundary=" + boundary
    scope = {"type": "http", "method": "POST", "path": "/api/jobs", "headers": [(b"content-type", content_type)]}
    try:
        upload = asyncio.run(uploads.take(Request(scope, receive)))
    except ProblemError as problem:
        if list(staging.iterdir()) or list(inputs.iterdir()):
            raise ContradictionError("a refused upload left files behind") from problem
        return "refused", one_sentence(problem.what)
    if upload.folder.parent != inputs or {each.name for each in folder.iterdir()} != {"inputs", "staging"}:
        raise ContradictionError(f"an upload is in {upload.folder}, outside of its folder")
    given = sorted(upload.folder.iterdir())
    path = str(given[0] if len(given) == 1 else upload.folder)
    try:
        check_within([path], inputs)
        with patch.dict(os.environ, CRYSTALPERF_HOME=str(home)):
            cp.profile([path], app=next(iter(upload.fields.get("app", [])), None)).verdict()
    except CrystalPerfError as error:
        return "refused", one_sentence(str(error))
    return "read", ""


def _form(random: Random, files: Files) -> tuple[bytes, bytes]:
    """A boundary and a body with these files, with a changed line of the form, name or field."""
    boundary = random.choice((b"x", b"----1", b"a" * 200))
    parts = [
        [b'Content-Disposition: form-data; name="files"; filename="%s"' % name.encode(), b"", content]
        for name, content in files.items()
    ]
    if random.random() < 0.3:
        name = random.choice((b"app", b"index", b"files", b"other", b""))
        parts.append([b'Content-Disposition: form-data; name="%s"' % name, b"", random.choice(_NAMES)])
    for part in parts:
        if random.random() < 0.4:
            hostile = random.choice(
                (*_NAMES, b"../../x", b"/etc/passwd", b"..", b".", b"", b"a" * 4000, b"C:\\x", b"\0")
            )
            part[0] = b'Content-Disposition: form-data; name="files"; filename="%s"' % hostile
        if random.random() < 0.05:
            part[0] = random.choice((b"", b":", b"Content-Disposition", part[0] * 300, b"X: 1\r\n" * 20 + part[0]))
    if random.random() < 0.05:
        parts *= 20
    body = b"".join(b"--" + boundary + b"\r\n" + b"\r\n".join(part) + b"\r\n" for part in parts)
    body += b"--" + boundary + b"--\r\n"
    if random.random() < 0.15:
        body, _ = damaged(random, body)
    return boundary, body


# Shared ------------------------------------------------------------------------------------------------------


def write(folder: Path, files: Files) -> None:
    """Files in a folder, and in folders of it."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(text)


def _reported(message: str | None) -> Reported:
    return ("read", "") if message is None else ("refused", message)
