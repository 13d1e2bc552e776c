"""Small files that are expensive to read, and what reading each costs.

    python -m lab.damage.bombs                     make all, analyze each, print a table
    python -m lab.damage.bombs --make FOLDER       only make them
    python -m lab.damage.bombs --of CHECKOUT       analyze them with another checkout

Each starts as a Spark log does; the rest is made to unpack to much, or to be slow to decode.  A case ends after
`--seconds`.
"""

from __future__ import annotations

import argparse
import gzip
import io
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path

import cramjam
import zstandard

from crystalperf.query.trace.wire import BYTES, VARINT
from lab.damage.messages import Field, encoded
from lab.damage.sources import ROOT

START = (
    b'{"Event":"SparkListenerLogStart","Spark Version":"4.0.1"}\n'
    b'{"Event":"SparkListenerApplicationStart","App Name":"x","App ID":"app-1","Timestamp":1,"User":"r"}\n'
)
_BLOCK = 32 << 20
_MIB = 1 << 20


def lz4(text: bytes) -> bytes:
    """One block of lz4-java's stream, with its end."""
    packed = bytes(cramjam.lz4.compress_block(text, store_size=False))
    sizes = len(packed).to_bytes(4, "little") + len(text).to_bytes(4, "little")
    return b"LZ4Block\x26" + sizes + bytes(4) + packed


def snappy(text: bytes) -> bytes:
    """One block of snappy-java's stream."""
    packed = bytes(cramjam.snappy.compress_raw(text))
    return len(packed).to_bytes(4, "big") + packed


def packed_lines(line: bytes, size: int) -> bytes:
    return START + line * ((size - len(START)) // len(line))


def _lz4_block() -> bytes:
    return lz4(packed_lines(b"ab\n", _BLOCK)) + lz4(b"")


def _lz4_empty() -> bytes:
    return lz4(START) + b"".join([b"LZ4Block\x16" + bytes(12)] * 50_000)


def _gzip_ratio() -> bytes:
    """Random letters between repetitions, so that the ratio stays below the one of zeros."""
    line = b'{"Event":"x%07d"' + b" " * 6000 + b"}\n"
    packer, found = zlib.compressobj(9, zlib.DEFLATED, 31), []
    for number in range(200_000):
        found.append(packer.compress((line % number) if number else START))
    return b"".join([*found, packer.flush()])


def _gzip_lines() -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    block = b"ab\n" * _MIB
    return b"".join([packer.compress(START), *(packer.compress(block) for _ in range(300)), packer.flush()])


def _gzip_members() -> bytes:
    return gzip.compress(START) + gzip.compress(b"") * 200_000


def _zstd_frames() -> bytes:
    pack = zstandard.ZstdCompressor().compress
    return pack(START) + pack(b"") * 400_000


def _snappy_block() -> bytes:
    block = snappy(b"ab\n" * (_BLOCK // 3))
    return b"\x82SNAPPY\x00" + (1).to_bytes(4, "big") * 2 + snappy(START) + block * 4


def _lzf_chunks() -> bytes:
    chunk = b"\x01ab" + b"\xe0\xf7\x01" * 240  # two letters, then copies of 256 bytes from two before
    begin = b"ZV\x00" + len(START).to_bytes(2, "big") + START
    size = 2 + 240 * 256
    return begin + (b"ZV\x01" + len(chunk).to_bytes(2, "big") + size.to_bytes(2, "big") + chunk) * 3000


def _zipped(text: Callable[[zipfile.ZipFile], None]) -> bytes:
    stored = io.BytesIO()
    with zipfile.ZipFile(stored, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        text(archive)
    return stored.getvalue()


def _zip_bomb() -> bytes:
    def fill(archive: zipfile.ZipFile) -> None:
        with archive.open("log", "w") as member:
            member.write(START)
            for _ in range(1500):
                member.write(b'{"Event":"x"}\n' * (_MIB // 14))

    return _zipped(fill)


def _zip_lines() -> bytes:
    return _zipped(lambda archive: archive.writestr("log", packed_lines(b"ab\n", 96 << 20)))


def _zip_name() -> bytes:
    data = _zipped(lambda archive: archive.writestr("l\u00f6g", START))
    return data.replace("l\u00f6g".encode(), b"l\xff\xfeg")


def _zip_lzma() -> bytes:
    stored = io.BytesIO()
    with zipfile.ZipFile(stored, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("log", START * 100)
    return stored.getvalue().replace(b"\x09\x04\x05\x00", b"\x09\x04\x00\x00")


def xplane(planes: int) -> bytes:
    """An XSpace with planes of devices, each with one stream and one kernel, all at one time."""
    found: list[Field] = []
    for number in range(planes):
        event = encoded([(1, VARINT, 1), (3, VARINT, 50_000_000)])
        line = encoded([(2, BYTES, b"Stream #1"), (3, VARINT, 1), (4, BYTES, event)])
        kernel = encoded([(1, VARINT, 1), (2, BYTES, encoded([(1, VARINT, 1), (2, BYTES, b"k")]))])
        name = b"/device:GPU:%d" % number
        found.append((1, BYTES, encoded([(2, BYTES, name), (3, BYTES, line), (4, BYTES, kernel)])))
    return encoded(found)


_TRACE = b'{"schemaVersion":1,"deviceProperties":[],"traceEvents":['


def _list() -> bytes:
    """A job's start with a list of 22 million empty lists."""
    return START + b'{"Event":"SparkListenerJobStart","Job ID":[' + b"[]," * (64 * _MIB // 3) + b"[]]}\n"


def _pages() -> bytes:
    """An archive of Flink with 22 million empty pages."""
    return b'{"archive":[{"path":"/jobs/overview","json":"{}"},' + b"{}," * (64 * _MIB // 3) + b"{}]}"


def _events(text: bytes) -> bytes:
    return _TRACE + text * (48 * _MIB // len(text)) + b"{}]}"


BOMBS: dict[str, Callable[[], bytes]] = {
    "lz4-block": _lz4_block,
    "lz4-empty-blocks": _lz4_empty,
    "gzip-ratio": _gzip_ratio,
    "gzip-lines": _gzip_lines,
    "gzip-empty-members": _gzip_members,
    "zstd-empty-frames": _zstd_frames,
    "snappy-blocks": _snappy_block,
    "lzf-chunks": _lzf_chunks,
    "zip-bomb": _zip_bomb,
    "zip-lines": _zip_lines,
    "zip-name": _zip_name,
    "zip-lzma": _zip_lzma,
    "list-of-lists": _list,
    "empty-pages.json": _pages,
    "nested-events.json": lambda: _events(b'{"a":[{},'),
    "damaged-events.json": lambda: _events(b'{"ph":X},'),
    "escapes.json": lambda: _TRACE + b'"' + b"\\u0061" * (8 * _MIB) + b'"]}',
    "planes.xplane.pb": lambda: xplane(1000),
    "planes-4000.xplane.pb": lambda: xplane(4000),
}
"""By name, the function that makes the file."""


def folders(place: Path) -> dict[str, Path]:
    """Folders with links that do not end: to themselves, and to files of the kernel."""
    itself, kernel = place / "links-to-itself", place / "links-to-the-kernel"
    for each in (itself, kernel):
        each.mkdir()
        (each / "log").write_bytes(START)
    for name in ("a", "b"):
        (itself / name).symlink_to(".", target_is_directory=True)
    for number, target in enumerate(("/proc/kmsg", "/dev/zero", "/sys/kernel/tracing/trace_pipe", "/proc/self/mem")):
        (kernel / f"k{number}").symlink_to(target)
    return {each.name: each for each in (itself, kernel)}


def make(place: Path, only: str | None = None) -> dict[str, Path]:
    """Write all of them, or only one, below a folder; returns them by name."""
    found = {}
    for name, content in BOMBS.items():
        if only in (None, name):
            found[name] = place / name
            found[name].write_bytes(content())
    if only is None or only not in BOMBS:
        found |= {name: path for name, path in folders(place).items() if only in (None, name)}
    return found


def cost(command: Sequence[str | Path], checkout: Path, home: Path, longest_s: float) -> tuple[float, int, int, str]:
    """Elapsed s, peak MiB, exit code and last line of a command; code 124 if it took longer."""
    environment = {**os.environ, "PYTHONPATH": str(checkout), "CRYSTALPERF_HOME": str(home), "NO_COLOR": "1"}
    begin = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", "crystalperf", *map(str, command)],
        env=environment, cwd=home, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        text, code = process.communicate(timeout=longest_s)[0], process.returncode
    except subprocess.TimeoutExpired:
        process.kill()
        text, code = process.communicate()[0], 124
    lines = text.decode(errors="replace").strip().splitlines() or [""]
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10
    return time.monotonic() - begin, peak, code, lines[-1] if code else "an answer"


def _one(arguments: argparse.Namespace, name: str, path: Path) -> None:
    """Print the row of one case, in a process of its own, because a peak of children never falls."""
    process = os.fork()
    if process:
        os.waitpid(process, 0)
        return
    with tempfile.TemporaryDirectory() as home:
        command: list[str | Path] = ["analyze", path]
        if name == "links-to-itself":
            command = ["fleet", "build", f"{path}/**", "-o", f"{home}/f"]
        took_s, peak, code, line = cost(command, arguments.of, Path(home), arguments.seconds)
    size = 0 if path.is_dir() else path.stat().st_size
    print(
        f"| {name} | {size >> 10} | {took_s:.1f} | {peak} | {code} | {line.replace(str(path), name)[:160]} |",
        flush=True,
    )
    os._exit(0)


def main(given: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m lab.damage.bombs", description=__doc__.split("\n")[0])
    parser.add_argument("--make", type=Path, metavar="FOLDER", help="only make the files")
    parser.add_argument("--of", type=Path, default=ROOT, metavar="CHECKOUT", help="the checkout that reads them")
    parser.add_argument("--only", choices=[*BOMBS, "links-to-itself", "links-to-the-kernel"])
    parser.add_argument("--seconds", type=float, default=200.0, help="after which a command is killed (default 200)")
    arguments = parser.parse_args(given)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # `timeout` would leave the files behind
    if arguments.make:
        arguments.make.mkdir(parents=True, exist_ok=True)
        make(arguments.make)
        return 0
    with tempfile.TemporaryDirectory() as place:
        print("| input | KiB | seconds | MiB | exit | answer |\n|---|---:|---:|---:|---:|---|", flush=True)
        for name, path in make(Path(place), arguments.only).items():
            _one(arguments, name, path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
