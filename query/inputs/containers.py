"""Reads logs as streams of lines from any container.

A container is recognised by its first bytes, never by its name: plain text, zstd (several frames), gzip, the block
streams of lz4-java, snappy-java (xerial) and compress-lzf, and any of these inside a zip or a tar.  No Python package
reads the last three in the form that these libraries write, so this module parses their framing; packages decompress
the blocks.

No file is read as a whole: memory is bounded by the longest line that is kept (LONGEST_LINE), and every step of a
decompressor returns a bounded piece for any input.  query.inputs.bounds has the bounds of a whole file.
"""

from __future__ import annotations

import io
import lzma
import os
import re
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from itertools import islice
from tempfile import TemporaryFile
from typing import IO, Any, cast
from urllib.parse import unquote

import cramjam
import msgspec
import numpy as np
import zstandard

from crystalperf.indexes.errors import CrystalPerfError, InputError, Remedy
from crystalperf.indexes.frozen import frozen
from crystalperf.indexes.regex import regex
from crystalperf.query.inputs.bounds import PIECE_BYTES, BoundReached, DamagedStream, Meter, note
from crystalperf.query.trace.records import Problem, Problems, as_text

LONGEST_LINE = 64 << 20
"""Maximum bytes of a complete line.  A longer one (a plan of hundreds of MB) is cut to its start and end, which have
the fields that identify it; joining a line needs twice its length for a moment."""

_CUT_HEAD, _CUT_TAIL = 1 << 20, 64 << 10
_PIECE = 1 << 20  # bytes per read of a plain file or an inflating decompressor
_ZSTD_PIECE = 4 << 10  # of input: a zstd decompressor has no limit of its output, which is at most ×32 768
_MEMBER_PIECE = 64 << 10
_LARGEST_BLOCK = 32 << 20  # the largest block that lz4-java, snappy-java and compress-lzf write
_MAX_COPIED_BYTES = 16 << 30  # of a URL that can only be read once
_MAX_UNPACKED_BYTES = 1 << 30  # of all members of an archive together, to recognise them
_MAX_TAR_READ = 1 << 20  # bytes of one read: a header that states more is a bomb, and tarfile reads it whole
MAX_MEMBERS = 20_000

_NEWLINE = ord("\n")

_ZIP_ERRORS = (
    zipfile.BadZipFile,
    tarfile.TarError,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    RuntimeError,
    NotImplementedError,
    KeyError,
    EOFError,
)
"""Errors of opening and reading an archive; those of invalid names are converted in _zip_file() and _member()."""

ZIP_MAGIC = b"PK\x03\x04"
_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_LZ4_MAGIC = b"LZ4Block"
_ZSTD_SKIPPABLE = regex(rb"[\x50-\x5f]\x2a\x4d\x18")


@frozen
class Part:
    """One file of a log: a path or fsspec URL, or a member of the zip or tar at that path."""

    path: str
    member: str | None = None

    @property
    def name(self) -> str:
        return as_text(self.path if self.member is None else f"{self.path}!{self.member}")


@frozen
class LogFile:
    """The event log of one attempt of one application: its parts in the order they were written.

    `app_id` is from the names of files, for logs without it; `problems` are those of assembling the parts.
    """

    origin: str
    parts: tuple[Part, ...]
    app_id: str | None = None
    problems: tuple[Problem, ...] = ()


@frozen
class Batch:
    """Consecutive lines of one part: the first one, and the piece with its end and all other lines.

    All other lines end with a newline of the piece; without a piece there are none.
    """

    part: Part
    first_line: int
    """number of the first of the lines, counted from 1 within the part"""
    first: bytes
    piece: bytes | None = None

    @cached_property
    def lines(self) -> list[bytes]:
        """The lines without their newlines, split on first use: skipping a batch needs no split."""
        return [self.first] if self.piece is None else [self.first, *self.piece.split(b"\n")[1:-1]]

    @cached_property
    def count(self) -> int:
        if self.piece is None:
            return 1
        if "lines" in self.__dict__:  # already split
            return len(self.lines)
        # bytes.count() takes as long as splitting does.
        return int(np.count_nonzero(np.frombuffer(self.piece, dtype=np.uint8) == _NEWLINE))


def batches(log: LogFile, problems: Problems) -> Iterator[Batch]:
    """The lines of a log.

    Damage ends a part, not the log: it is added to `problems`, and the part's intact lines are returned.
    Raises InputError if a part cannot be opened at all.
    """
    archives: dict[str, Archive] = {}
    with ExitStack() as stack:
        for part in log.parts:
            if part.member is not None and part.path not in archives:
                with as_input_error(part.name):
                    archives[part.path] = stack.enter_context(archive(part.path, shared=False))
            with opened(part, archives.get(part.path)) as source:
                yield from _part_batches(part, source, problems)


def lines(log: LogFile, problems: Problems | None = None) -> Iterator[bytes]:
    """The lines of a log that are not blank, one by one, for readers of small logs.

    Damage is added to `problems`.  Raises InputError if a part cannot be opened at all.
    """
    for batch in batches(log, Problems() if problems is None else problems):
        yield from (line for line in batch.lines if line and not line.isspace())


def pieces(part: Part, problems: Problems) -> Iterator[bytes]:
    """The decompressed bytes of a part, a piece at a time, for formats without lines.

    Damage ends the stream and is added to `problems`.  Raises InputError if the part cannot be opened at all.
    """
    with opened(part) as source:
        counted = _Counted(source)
        try:
            yield from _decompressed(counted)
        except DamagedStream as error:
            note(problems, error, part.name, f"byte {counted.meter.given_bytes}")


def head(part: Part, size: int) -> bytes:
    """Up to `size` decompressed bytes from the start of a part; fewer if it ends or is damaged before that."""
    pieces: list[bytes] = []
    with opened(part) as source:
        try:
            for piece in _decompressed(_Counted(source)):
                pieces.append(piece)
                size -= len(piece)
                if size <= 0:
                    break
        except DamagedStream:
            pass
    text = b"".join(pieces)
    held = (_ARCHIVES.get() or {}).get(part.path)
    if held is not None:
        held.unpacked_bytes += len(text)
        if held.unpacked_bytes > _MAX_UNPACKED_BYTES:
            raise InputError(f"{part.path}: its files are too large to inspect in the archive; unpack it first")
    return text[:size] if size < 0 else text


@contextmanager
def opened(part: Part, within: Archive | None = None) -> Iterator[IO[bytes]]:
    """The stored bytes of a part; `within` is its archive if that is open.  Raises InputError."""
    with as_input_error(part.name), ExitStack() as stack:
        if part.member is None:
            yield stack.enter_context(_opened_path(part.path))
        else:
            held = within or stack.enter_context(archive(part.path))
            yield stack.enter_context(_member(held, part.member))


@contextmanager
def as_input_error(name: str) -> Iterator[None]:
    """Convert errors of opening and reading a file to InputError, one sentence."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{name}: cannot be read ({error.strerror or error})") from error
    except _ZIP_ERRORS as error:
        kind = "tar" if isinstance(error, tarfile.TarError) else "zip"
        raise InputError(f"{name}: the {kind} archive cannot be read ({error})") from error
    except Exception as error:
        if not is_url(name) or isinstance(error, CrystalPerfError | MemoryError):
            raise
        raise InputError(f"{name}: cannot be read ({error})") from error  # each store's client has its own errors


def _zip_file(stored: IO[bytes]) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(stored)
    except ValueError as error:  # a name is not the UTF-8 that it claims to be, or a size is negative
        raise zipfile.BadZipFile(str(error)) from error


class _Member(io.RawIOBase):
    """A member of a zip; `stored_bytes()` is the number of bytes that were read of it there.

    A read returns at most 64 KiB: zipfile reads as many packed bytes as unpacked ones are asked for.
    """

    def __init__(self, file: IO[bytes], stored_bytes: Callable[[], int]) -> None:
        super().__init__()
        self._file, self.stored_bytes = file, stored_bytes

    def read(self, size: int = -1) -> bytes:
        return self._file.read(_MEMBER_PIECE if size < 0 else min(size, _MEMBER_PIECE))

    def close(self) -> None:
        self._file.close()
        super().close()


def _member(archive: Archive, name: str) -> IO[bytes]:
    """A member of an archive.  Raises errors of _ZIP_ERRORS, also for methods that no program of Java uses."""
    if isinstance(archive.file, _Tar):
        return archive.file.open(name)
    try:
        facts = archive.file.getinfo(name)
        if facts.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise NotImplementedError("it is packed by another method than deflate; unpack it first")
        file = archive.file.open(facts)
    except ValueError as error:
        raise zipfile.BadZipFile(str(error)) from error
    return _Member(file, lambda: max(archive.stored.tell() - facts.header_offset, 0))  # type: ignore[return-value]


def is_tar(start: bytes) -> bool:
    """Whether a file is a tar archive, by the first bytes of what it unpacks to."""
    return start[257:262] == b"ustar"


class _SmallReads:
    """A file for tarfile that refuses large reads."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self.seek, self.tell = file, file.seek, file.tell

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= _MAX_TAR_READ:
            raise tarfile.ReadError("a header is too large")
        return self._file.read(size)


class _Tar:
    """A tar archive.  A compressed one is unpacked to a temporary file, because members are read in any order."""

    def __init__(self, stored: IO[bytes], path: str) -> None:
        counted = _Counted(stored)
        if is_tar(counted.peek(512)):
            stored.seek(0)
            file = stored
        else:
            file = self._unpacked = TemporaryFile()  # noqa: SIM115 - close() closes it
            try:
                for piece in _decompressed(counted):
                    file.write(piece)
                    if file.tell() > _MAX_COPIED_BYTES:
                        raise InputError(f"{path}: unpacks to more than {_MAX_COPIED_BYTES >> 30} GiB; unpack it first")
            except BoundReached as error:
                self.close()
                raise InputError(f"{path}: {error}") from error
            except DamagedStream:
                pass  # its intact members are read, and the damaged one says so
            except BaseException:
                self.close()
                raise
            file.seek(0)
        self._file = tarfile.TarFile(fileobj=cast("IO[bytes]", _SmallReads(file)), mode="r")
        self._members: dict[str, tarfile.TarInfo] = {}
        try:
            for each in islice(self._file, MAX_MEMBERS + 1):
                if each.isreg() and not each.issparse():
                    self._members[each.name] = each
        except tarfile.TarError:
            if not self._members:
                self.close()
                raise

    def names(self) -> list[str]:
        return list(self._members)

    def open(self, name: str) -> IO[bytes]:
        found = self._file.extractfile(self._members[name])
        assert found is not None
        return found

    def close(self) -> None:
        if (unpacked := getattr(self, "_unpacked", None)) is not None:
            unpacked.close()

    def __enter__(self) -> _Tar:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@dataclass
class Archive:
    """An open zip or tar archive, and the bytes unpacked from it to recognise its members."""

    file: zipfile.ZipFile | _Tar
    stored: IO[bytes]
    unpacked_bytes: int = 0


_ARCHIVES: ContextVar[dict[str, Archive] | None] = ContextVar("_ARCHIVES", default=None)


@contextmanager
def archive(path: str, *, shared: bool = True) -> Iterator[Archive]:
    """A zip or tar archive, opened once for all uses of its members in the block, because its list may be long.

    An archive that is not `shared` is only for the caller: for generators, which may end in another context.
    """
    already = (_ARCHIVES.get() or {}).get(path) if shared else None
    if already is not None:
        yield already
        return
    with _opened_path(path) as stored, _opened_archive(stored, path) as file:
        held = Archive(file, stored)
        if not shared:
            yield held
            return
        token = _ARCHIVES.set({**(_ARCHIVES.get() or {}), path: held})
        try:
            yield held
        finally:
            _ARCHIVES.reset(token)


def _opened_archive(stored: IO[bytes], path: str) -> zipfile.ZipFile | _Tar:
    start = stored.read(len(ZIP_MAGIC))
    stored.seek(0)
    return _zip_file(stored) if start == ZIP_MAGIC else _Tar(stored, path)


def members(path: str) -> list[str]:
    """Names of the files in an archive, each once."""
    with as_input_error(path), archive(path) as held:
        if isinstance(held.file, _Tar):
            return held.file.names()
        try:
            names = [each.filename for each in held.file.infolist() if not each.is_dir()]
        except ValueError as error:
            raise InputError(f"{path}: the zip archive cannot be read ({error})") from error
    return list(dict.fromkeys(names))


def is_url(path: str) -> bool:
    return "://" in path


def local(path: str) -> str:
    """The local path of a file URL (file:///tmp/x, and file:/tmp/x as Hadoop writes it); any other text stays.

    Raises InputError for an empty path."""
    if not path:
        raise InputError(
            "the path is empty, for example because a variable is not set; name a log, or a folder of logs"
        )
    match = re.fullmatch(r"file:(?://(?:localhost)?)?(/(?!/).*)", path, re.DOTALL)
    return path if match is None or os.path.exists(path) else unquote(match[1])


def filesystem(url: str) -> tuple[Any, str]:
    """The fsspec file system of a URL, and the path within it.  Raises InputError if it is unavailable."""
    try:
        fsspec: Any = import_module("fsspec")  # an extra; most logs are local files
    except ImportError:
        raise InputError(
            f"{url}: reading URLs needs the extra `urls` (fsspec is missing): `pip install '.[urls]'` in a checkout of"
            " CrystalPerf; or copy the log to this machine"
        ) from None
    try:
        system, path = fsspec.core.url_to_fs(url)
    except (ImportError, ValueError, OSError) as error:
        raise InputError(f"{url}: cannot be opened ({error})") from error
    return system, path


def _opened_path(path: str) -> IO[bytes]:
    """The stored bytes of a file.  Raises InputError for folders, devices, pipes and sockets."""
    if is_url(path):
        system, inner = filesystem(path)
        stream: IO[bytes] = system.open(inner, "rb")
        return stream if getattr(stream, "size", 0) is not None else _copied(stream, path)
    status = os.stat(path)
    mode = status.st_mode
    if not stat.S_ISREG(mode):
        what = "a folder" if stat.S_ISDIR(mode) else "a device, pipe or socket"
        remedy = Remedy("give it as standard input") if stat.S_ISFIFO(mode) else None
        raise InputError(f"{path}: is {what}, not a regular file", remedy)
    if status.st_size == 0:  # also the kernel's files, whose reads may wait for ever
        return io.BytesIO()
    return open(path, "rb")


def _copied(stream: IO[bytes], url: str) -> IO[bytes]:
    """A local copy of a stream without a size, which cannot seek: its start is needed twice."""
    copy = TemporaryFile()  # noqa: SIM115 - its reader closes it
    with stream:
        while piece := stream.read(1 << 20):
            copy.write(piece)
            if copy.tell() > _MAX_COPIED_BYTES:
                copy.close()
                raise InputError(
                    f"{url}: sends more than {_MAX_COPIED_BYTES >> 30} GiB; download the log and name the file"
                )
    copy.seek(0)
    return copy


# Lines ------------------------------------------------------------------------------------------------------------


def _part_batches(part: Part, source: IO[bytes], problems: Problems) -> Iterator[Batch]:
    counted = _Counted(source)
    pending: list[bytes] = []
    pending_size, dropped, number = 0, 0, 1
    try:
        for piece in _decompressed(counted):
            if not pending_size and piece.isspace():  # a bomb of blank lines would be a list of millions
                number += piece.count(b"\n")
                continue
            first = piece.find(b"\n")
            if first < 0:
                pending.append(piece)
                pending_size += len(piece)
                if pending_size > LONGEST_LINE:
                    pending, dropped = _cut_to_ends(pending, dropped)
                    pending_size = sum(map(len, pending))
                continue
            pending.append(piece[:first])
            if dropped:
                _add_overlong(problems, part, number, dropped + sum(map(len, pending)))
            line, last = b"".join(pending), piece.rfind(b"\n")
            if number == 1:
                line = line.removeprefix(b"\xef\xbb\xbf")
            batch = Batch(part, number, line, piece)
            pending, pending_size, dropped = [piece[last + 1 :]], len(piece) - last - 1, 0
            yield batch
            number += batch.count
    except DamagedStream as error:
        note(problems, error, part.name, f"line {number}")
        if isinstance(error, BoundReached):
            return
    tail = b"".join(pending)
    if dropped:
        _add_overlong(problems, part, number, dropped + len(tail))
    elif tail.strip():
        if _is_json(tail):
            yield Batch(part, number, tail)
        else:
            meaning = "the file ends within a line, which was left out; more lines may be missing"
            problems.add("truncated_line", "data loss", part.name, f"line {number}", meaning)


def _cut_to_ends(pieces: list[bytes], dropped: int) -> tuple[list[bytes], int]:
    """The first and the last bytes of a line, and the total number of dropped bytes between them."""
    before = sum(map(len, pieces))
    start = b""
    for piece in pieces:
        start += piece[: _CUT_HEAD - len(start)]
        if len(start) == _CUT_HEAD:
            break
    end = b""
    for piece in reversed(pieces):
        end = piece[-(_CUT_TAIL - len(end)) :] + end
        if len(end) >= _CUT_TAIL:
            break
    return [start, end], dropped + before - len(start) - len(end)


def _add_overlong(problems: Problems, part: Part, number: int, length: int) -> None:
    meaning = f"a line of {length >> 20} MiB was too long to keep; most of its event is missing"
    problems.add("overlong_line", "data loss", part.name, f"line {number}", meaning)


def _is_json(text: bytes) -> bool:
    try:
        msgspec.json.decode(text, type=msgspec.Raw)
    except (msgspec.MsgspecError, RecursionError):
        return False
    return True


# Containers -------------------------------------------------------------------------------------------------------


class _Counted:
    """A binary source with peek() that meters the bytes read from it."""

    def __init__(self, source: IO[bytes]) -> None:
        self._source = source
        self._ahead = b""
        self.meter = Meter(getattr(source, "stored_bytes", None))

    def peek(self, size: int) -> bytes:
        while len(self._ahead) < size:
            more = self._taken(size - len(self._ahead))
            if not more:
                break
            self._ahead += more
        return self._ahead[:size]

    def read(self, size: int) -> bytes:
        if self._ahead:
            piece, self._ahead = self._ahead[:size], self._ahead[size:]
        else:
            piece = self._taken(size)
        self.meter.taken_bytes += len(piece)
        return piece

    def _taken(self, size: int) -> bytes:
        try:
            return self._source.read(size)
        except _ZIP_ERRORS as error:  # a member of a zip archive
            raise DamagedStream(f"is damaged ({error})") from error

    def exactly(self, size: int) -> bytes:
        """Exactly `size` bytes.  Raises DamagedStream if the source ends before."""
        pieces: list[bytes] = []
        while size:
            piece = self.read(min(size, _PIECE))
            if not piece:
                raise DamagedStream("ends within a block")
            pieces.append(piece)
            size -= len(piece)
        return b"".join(pieces)


def _decompressed(source: _Counted) -> Iterator[bytes]:
    """The unpacked bytes in pieces of at most PIECE_BYTES.  Raises DamagedStream, and BoundReached."""
    for text in _codec(source.peek(8))(source):
        for start in range(0, len(text), PIECE_BYTES):
            piece = text if len(text) <= PIECE_BYTES else text[start : start + PIECE_BYTES]
            source.meter.given(len(piece))
            yield piece


def _codec(magic: bytes) -> Callable[[_Counted], Iterator[bytes]]:
    if magic.startswith(zstandard.FRAME_HEADER) or _ZSTD_SKIPPABLE.match(magic):
        return _zstd
    if magic.startswith(b"\x1f\x8b"):
        return _gzip
    if magic == _LZ4_MAGIC:
        return _lz4
    if magic == _XERIAL_MAGIC:
        return _snappy
    if magic.startswith((b"ZV\x00", b"ZV\x01")):
        return _lzf
    return _plain


def _plain(source: _Counted) -> Iterator[bytes]:
    while piece := source.read(_PIECE):
        yield piece


def _zstd(source: _Counted) -> Iterator[bytes]:
    """Decompress zstd frame by frame: only the end of a frame shows whether the stream is complete."""
    factory = zstandard.ZstdDecompressor(max_window_size=1 << 27)
    frame, between = factory.decompressobj(), True
    while piece := source.read(_ZSTD_PIECE):
        while piece:
            try:
                text = frame.decompress(piece)
            except zstandard.ZstdError as error:
                raise DamagedStream(f"is damaged ({error})") from error
            between = frame.eof
            piece = b""
            if frame.eof:
                piece, frame = frame.unused_data, factory.decompressobj()
                source.meter.member()
            yield text
    if not between:
        raise DamagedStream("ends within a frame")


def _gzip(source: _Counted) -> Iterator[bytes]:
    member, between = zlib.decompressobj(31), True
    while piece := source.read(_PIECE):
        while piece:
            try:
                text = member.decompress(piece, _PIECE)
            except zlib.error as error:
                if between:  # bytes after the last member are padding, as for gzip itself
                    return
                raise DamagedStream(f"is damaged ({error})") from error
            between = member.eof
            piece = member.unconsumed_tail
            if member.eof:
                piece, member = member.unused_data, zlib.decompressobj(31)
                source.meter.member()
            if text:
                yield text
    if not between:
        raise DamagedStream("ends before its end mark")


def _lz4(source: _Counted) -> Iterator[bytes]:
    """Blocks of lz4-java's LZ4BlockOutputStream: magic, method, packed size, size, checksum, then the block.

    A block of size 0 ends a stream; another stream may follow.  Checksums are not verified: a damaged block shows
    in the lines.
    """
    ended = False
    while start := source.read(1):
        header = start + source.exactly(20)
        if header[:8] != _LZ4_MAGIC:
            raise DamagedStream("is damaged (a block does not start where it should)")
        packed, size = (int.from_bytes(header[place : place + 4], "little") for place in (9, 13))
        ended = size == 0
        yield from _block(source, packed, size, _lz4_block if header[8] & 0xF0 == 0x20 else None)
    if not ended:
        raise DamagedStream("ends without its end mark")


def _snappy(source: _Counted) -> Iterator[bytes]:
    """Blocks of snappy-java's SnappyOutputStream: a header, then size and raw snappy, repeated.

    Streams have no end mark, so a cut between two blocks is undetectable.
    """
    source.exactly(16)
    while start := source.read(1):
        word = start + source.exactly(3)
        if word == _XERIAL_MAGIC[:4]:  # another stream was appended
            source.exactly(12)
            continue
        yield from _block(source, int.from_bytes(word, "big"), None, _snappy_block)


def _lzf(source: _Counted) -> Iterator[bytes]:
    """Chunks of compress-lzf: 'ZV', type, packed size, and the size if the type is packed."""
    while start := source.read(1):
        header = start + source.exactly(4)
        if header[:2] != b"ZV" or header[2] > 1:
            raise DamagedStream("is damaged (a chunk does not start where it should)")
        packed = int.from_bytes(header[3:5], "big")
        if header[2] == 0:
            yield source.exactly(packed)
        else:
            size = int.from_bytes(source.exactly(2), "big")
            yield from _block(source, packed, size, _lzf_block)


def _block(
    source: _Counted, packed: int, size: int | None, unpack: Callable[[bytes, int | None], bytes] | None
) -> Iterator[bytes]:
    if max(packed, size or 0) > _LARGEST_BLOCK:
        raise DamagedStream("is damaged (a block has an impossible size)")
    source.meter.member()
    data = source.exactly(packed)
    try:
        text = unpack(data, size) if unpack else data
    except (cramjam.DecompressionError, IndexError, ValueError) as error:
        raise DamagedStream(f"is damaged ({error})") from error
    if size is not None and len(text) != size:
        raise DamagedStream("is damaged (a block does not have the size in its header)")
    if text:
        yield text


def _lz4_block(data: bytes, size: int | None) -> bytes:
    return bytes(cramjam.lz4.decompress_block(data, output_len=size))


def _snappy_block(data: bytes, _: int | None) -> bytes:
    if cramjam.snappy.decompress_raw_len(data) > _LARGEST_BLOCK:
        raise ValueError("a block has an impossible size")
    return bytes(cramjam.snappy.decompress_raw(data))


def _lzf_block(data: bytes, size: int | None) -> bytes:
    """LibLZF: a control byte below 32 starts that many + 1 literals, any other copies from the output so far."""
    out = bytearray()
    place, end = 0, len(data)
    while place < end:
        control = data[place]
        place += 1
        if control < 32:
            out += data[place : place + control + 1]
            place += control + 1
            continue
        length = control >> 5
        if length == 7:
            length += data[place]
            place += 1
        start = len(out) - ((control & 31) << 8 | data[place]) - 1
        place += 1
        if start < 0:
            raise ValueError("a chunk refers to data before its start")
        length += 2
        copied = out[start : start + length]
        while len(copied) < length:  # the copy overlaps its own output: a repetition
            copied += copied[: length - len(copied)]
        out += copied
    return bytes(out)
