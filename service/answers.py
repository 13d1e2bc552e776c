"""Cache of computed answers: in memory up to a size, and frequent ones on disk.

The key of an answer, which is also its ETag, covers the version of the run file (inode, size, modification time) and
the code that computes answers.  So an answer never changes.
"""

from __future__ import annotations

import gzip
import json
import shutil
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

import zstandard

from crystalperf.indexes.code_hash import code_hash
from crystalperf.indexes.temporary import building_folder
from crystalperf.service.catalog import Entry

_MAX_DISK_BYTES = 4 << 20
"""Maximum size of an answer on disk."""


@dataclass
class Answer:
    """An answer as the bytes of its JSON, plain or compressed."""

    etag: str
    packed: bytes
    """Compressed with Zstandard."""
    zipped: bytes = b""
    size: int = field(init=False)

    def __post_init__(self) -> None:
        self.size = 2 * len(self.packed)  # with the size of the gzip copy

    def body(self, encoding: str) -> bytes:
        """The answer in an encoding: zstd, gzip or identity."""
        if encoding == "zstd":
            return self.packed
        if encoding == "gzip":
            self.zipped = self.zipped or gzip.compress(self._plain(), 4, mtime=0)
            return self.zipped
        return self._plain()

    def _plain(self) -> bytes:
        return zstandard.ZstdDecompressor().decompress(self.packed)


def packed(content: bytes) -> bytes:
    """The content, compressed with Zstandard."""
    return zstandard.ZstdCompressor(level=3).compress(content)


def key(run: Entry, question: str, facts: object) -> str:
    """The cache key of an answer, 32 hex digits."""
    code = code_hash("crystalperf.indexes", "crystalperf.query", "crystalperf.report", "crystalperf.service")
    text = json.dumps([code, run.name, run.version, question, facts], sort_keys=True)
    return sha256(text.encode()).hexdigest()[:32]


class Answers:
    """The cached answers; those on disk are in `folder`."""

    def __init__(self, folder: Path, most_bytes: int) -> None:
        self._folder = folder
        self._most_bytes = most_bytes
        self._cached: OrderedDict[str, Answer] = OrderedDict()
        self._bytes = 0

    async def get(
        self, run: Entry, question: str, facts: object, work_out: Callable[[], Awaitable[bytes]], *, keep: bool = False
    ) -> Answer:
        """The cached answer, or the one that `work_out` computes; `keep` also stores it on disk."""
        name = key(run, question, facts)
        if (cached := self._cached.get(name)) is not None:
            self._cached.move_to_end(name)
            return cached
        content = self._read(run, name) if keep else None
        if content is None:
            content = packed(await work_out())
            if keep:
                self._write(run, name, content)
        return self._keep(name, content)

    def remembered(self, facts: object, make: Callable[[], bytes]) -> Answer:
        """An answer that is quick to make from memory, such as a list; cached in memory by `facts`."""
        name = sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:32]
        if (cached := self._cached.get(name)) is not None:
            self._cached.move_to_end(name)
            return cached
        return self._keep(name, packed(make()))

    def put(self, run: Entry, question: str, facts: object, content: bytes) -> None:
        """Store an answer on disk that was computed together with another one."""
        self._write(run, key(run, question, facts), packed(content))

    def find(self, run: Entry, question: str, facts: object) -> bytes | None:
        """The JSON of an answer on disk; None if it is missing."""
        content = self._read(run, key(run, question, facts))
        return None if content is None else zstandard.ZstdDecompressor().decompress(content)

    def forget(self, run: str) -> None:
        """Remove the answers about a run that was deleted or replaced."""
        shutil.rmtree(self._folder / run, ignore_errors=True)

    def forget_others(self, runs: Collection[str]) -> None:
        """Remove the answers about all runs but these."""
        with suppress(OSError):
            for each in self._folder.iterdir():
                if each.name not in runs:
                    shutil.rmtree(each, ignore_errors=True)

    def _keep(self, name: str, content: bytes) -> Answer:
        answer = Answer(name, content)
        if (same := self._cached.pop(name, None)) is not None:  # of a concurrent request
            self._bytes -= same.size
        self._cached[name] = answer
        self._bytes += answer.size
        while self._bytes > self._most_bytes and len(self._cached) > 1:
            _, old = self._cached.popitem(last=False)
            self._bytes -= old.size
        return answer

    def _read(self, run: Entry, name: str) -> bytes | None:
        """A compressed answer on disk; None if it is missing or incomplete, as after a power failure."""
        try:
            content = (self._folder / run.name / f"{name}.json.zst").read_bytes()
            zstandard.ZstdDecompressor().decompress(content)
        except (OSError, zstandard.ZstdError):
            return None
        return content

    def _write(self, run: Entry, name: str, content: bytes) -> None:
        """Write an answer to disk.  Errors are ignored: with a full disk the answer is computed again."""
        if len(content) > _MAX_DISK_BYTES:
            return
        place = self._folder / run.name / f"{name}.json.zst"
        with suppress(OSError), building_folder(place) as folder:
            (folder / "answer").write_bytes(content)
            (folder / "answer").replace(place)
