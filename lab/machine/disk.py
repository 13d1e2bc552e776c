"""Page cache control for the data, and a copy of the data for each node.

A disk rate limits only input: reads of a cgroup's own processes that miss the page cache. Shuffle and spill files are
written to the page cache (the kernel writes them back later, unaccounted under cgroup v1) and read from it while memory
suffices, so a disk rate does not limit them.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from lab.machine.host import cache_dir

_CHUNK_BYTES = 1 << 22


def data_files(paths: Iterable[Path]) -> list[Path]:
    """All files under files and folders, in order of their names."""
    found: list[Path] = []
    for path in paths:
        found += sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
    return found


def drop_pages(files: Iterable[Path]) -> None:
    """Drop files from the page cache; pages that another process has mapped stay."""
    for file in files:
        descriptor = os.open(file, os.O_RDONLY)
        try:
            os.fsync(descriptor)  # a page not yet written back would stay
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)


def warm_pages(files: Iterable[Path]) -> None:
    """Read files once, so that they are in the page cache."""
    for file in files:
        # HDFS removes the blocks of deleted files asynchronously.
        with contextlib.suppress(FileNotFoundError), file.open("rb", buffering=0) as stream:
            while stream.read(_CHUNK_BYTES):
                pass


def node_copy(data: Path, names: Iterable[str], node: str) -> Path:
    """A node's own copy of parts of a data set, created once in the cache.

    With one shared copy, pages that one node has read would be in the page cache for the others.
    """
    target = cache_dir() / "copies" / f"{data.parent.name}-{data.name}" / node
    target.mkdir(parents=True, exist_ok=True)
    for name in names:
        source, place = data / name, target / name
        if place.exists():
            continue
        partial = place.with_name(place.name + ".partial")
        if source.is_dir():
            shutil.rmtree(partial, ignore_errors=True)
            shutil.copytree(source, partial)
        else:
            shutil.copyfile(source, partial)
        partial.rename(place)
    return target
