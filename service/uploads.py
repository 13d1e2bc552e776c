"""Uploads: multipart files, streamed to disk within limits, and kept only if complete."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.requests import Request

from crystalperf.indexes.temporary import make_durable
from crystalperf.service.bodies import pieces
from crystalperf.service.problems import ProblemError, busy
from crystalperf.service.settings import Limits

FILES = "files"
"""The name of the parts that are files."""

FIELDS = ("app", "index")
"""The names of the other parts; `index` may occur again."""

_LONGEST_FIELD = 10_000
_MAX_FIELDS = 32
_LONGEST_NAME = 100


@dataclass
class Upload:
    """An upload: a folder of files, the client's names of them, and the form fields."""

    folder: Path
    names: list[str] = field(default_factory=list)
    fields: dict[str, list[str]] = field(default_factory=dict)


class Uploads:
    """Receives uploads, with limited concurrency.

    A complete upload is below `place`, and in `protected` until a job reads it, which protects it from removal.
    """

    def __init__(self, place: Path, staging: Path, protected: set[str], limits: Limits) -> None:
        self._place = place
        self._staging = staging
        self._protected = protected
        self._limits = limits
        self._running = 0

    async def take(self, request: Request) -> Upload:
        """Read the body and return the upload, durable and under its final name.  Raises ProblemError."""
        kind, options = parse_options_header(request.headers.get("content-type", ""))
        boundary = options.get(b"boundary", b"")
        if kind != b"multipart/form-data" or not boundary:
            raise ProblemError(
                415, "an upload must be multipart/form-data with a boundary, its files in parts named 'files'"
            )
        length = request.headers.get("content-length", "0")
        if length.isdecimal() and int(length) > self._limits.upload_bytes:
            raise self._too_large()
        if self._running >= self._limits.uploads:
            raise busy(f"{self._running} uploads are running; send it again later", status=429, retry_after_s=10)
        self._running += 1
        try:
            with TemporaryDirectory(dir=self._staging, ignore_cleanup_errors=True) as staged:
                reader = _Reader(Path(staged), boundary, self._limits)
                try:
                    await self._read(request, reader)
                finally:
                    reader.close()
                return await asyncio.to_thread(self._kept, Path(staged), reader)
        except OSError as error:
            raise busy(f"the service cannot store the upload ({error.strerror or error})", retry_after_s=60) from error
        finally:
            self._running -= 1

    async def _read(self, request: Request, reader: _Reader) -> None:
        taken = 0
        async for piece in pieces(request, self._limits):
            taken += len(piece)
            if taken > self._limits.upload_bytes:
                raise self._too_large()
            await asyncio.to_thread(reader.feed, piece)
        if not reader.complete:
            raise ProblemError(400, "the upload ended before it was complete; send it again")
        if not reader.upload.names:
            raise ProblemError(400, "the upload has no files; send them as parts named 'files', each with a file name")

    def _kept(self, staged: Path, reader: _Reader) -> Upload:
        """Rename the upload by its content hash, so that the same files are the same input."""
        place = self._place / reader.digest()
        for path in sorted(staged.rglob("*")):
            os.utime(path, (0, 0))  # equal content gets an equal modification time
        make_durable(staged)
        self._protected.add(str(place))
        if not place.exists():
            try:
                staged.rename(place)
            except OSError:  # another upload of the same content was quicker
                if not place.exists():
                    raise
        make_durable(place.parent)
        reader.upload.folder = place
        return reader.upload

    def _too_large(self) -> ProblemError:
        most = self._limits.upload_bytes >> 20
        return ProblemError(413, f"the upload is larger than {most} MiB, the limit; send it compressed")


class _Reader:
    """Writes the parts of a body to a folder as they arrive."""

    def __init__(self, folder: Path, boundary: bytes, limits: Limits) -> None:
        self.upload = Upload(folder)
        self.complete = False
        self._limits = limits
        self._hashes: list[str] = []
        self._header = [b"", b""]
        self._headers: dict[bytes, bytes] = {}
        self._file: IO[bytes] | None = None
        self._hash = sha256()
        self._field: tuple[str, bytearray] | None = None
        self._fields = 0
        callbacks: dict[str, Callable[..., Any]] = {
            "on_part_begin": self._begin,
            "on_header_field": lambda data, start, end: self._in_header(0, data[start:end]),
            "on_header_value": lambda data, start, end: self._in_header(1, data[start:end]),
            "on_header_end": self._header_ends,
            "on_headers_finished": self._headers_end,
            "on_part_data": lambda data, start, end: self._in_part(data[start:end]),
            "on_part_end": self._part_ends,
            "on_end": self._ends,
        }
        with _invalid_form_as_problem():
            self._parser = MultipartParser(boundary, callbacks)  # type: ignore[arg-type]

    def feed(self, piece: bytes) -> None:
        """Process the next bytes of the body."""
        with _invalid_form_as_problem():
            self._parser.write(piece)

    def digest(self) -> str:
        """The hash of names and contents of the files, 32 hex digits."""
        return sha256("\n".join(sorted(self._hashes)).encode()).hexdigest()[:32]

    def close(self) -> None:
        """Close the open file of a body that ended early."""
        if self._file is not None:
            self._file.close()

    def _begin(self) -> None:
        self._headers = {}
        self._header = [b"", b""]

    def _in_header(self, which: int, data: bytes) -> None:
        self._header[which] += data

    def _header_ends(self) -> None:
        self._headers[self._header[0].lower()] = self._header[1]
        self._header = [b"", b""]

    def _headers_end(self) -> None:
        _, options = parse_options_header(self._headers.get(b"content-disposition", b""))
        name = options.get(b"name", b"").decode("utf-8", "replace")
        if name == FILES and b"filename" in options:
            if len(self.upload.names) >= self._limits.upload_files:
                raise ProblemError(
                    413, f"the upload has more than {self._limits.upload_files} files; send a zip of them"
                )
            given = options[b"filename"].decode("utf-8", "replace")
            self.upload.names.append(given[-_LONGEST_NAME:])
            place = self.upload.folder / plain_name(given)
            if place.exists():  # parts of one log share a folder, except for files of the same name
                place = (
                    self.upload.folder / f"{len(self.upload.names)}~" / place.name
                )  # plain_name() returns no such name
                place.parent.mkdir()
            self._file = place.open("xb")
            self._hash = sha256(plain_name(given).encode() + b"\n")
        elif name in FIELDS:
            self._fields += 1
            if self._fields > _MAX_FIELDS:  # they are kept in memory
                raise ProblemError(413, f"the upload has more than {_MAX_FIELDS} parts besides the files; send fewer")
            self._field = (name, bytearray())
        else:
            raise ProblemError(400, f"unexpected part '{name[:60]}'; known parts: files, {', '.join(FIELDS)}")

    def _in_part(self, data: bytes) -> None:
        if self._file is not None:
            self._file.write(data)
            self._hash.update(data)
        elif self._field is not None:
            self._field[1].extend(data)
            if len(self._field[1]) > _LONGEST_FIELD:
                raise ProblemError(413, f"'{self._field[0]}' is longer than {_LONGEST_FIELD} characters")

    def _part_ends(self) -> None:
        if self._file is not None:
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
            self._file = None
            self._hashes.append(self._hash.hexdigest())
        elif self._field is not None:
            name, content = self._field
            if name == "app" and name in self.upload.fields:
                raise ProblemError(400, "app: given more than once")
            self.upload.fields.setdefault(name, []).append(content.decode("utf-8", "replace"))
            self._field = None

    def _ends(self) -> None:
        self.complete = True


@contextmanager
def _invalid_form_as_problem() -> Iterator[None]:
    try:
        yield
    except FormParserError as error:
        raise ProblemError(400, f"the upload is not valid multipart/form-data ({error})") from error


def plain_name(given: str) -> str:
    """The client's file name without folders and without characters that file systems or shells treat specially."""
    plain = re.sub(r"[^A-Za-z0-9_.-]", "_", re.split(r"[\\/]", given)[-1])[-_LONGEST_NAME:]
    return plain if plain.strip(".") else "file"
