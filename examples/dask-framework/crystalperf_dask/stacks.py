"""Attributes samples of Dask's profiler to resources, as shares of the tasks' time.

The profiler samples threads of tasks every 10 ms, running or waiting, and keeps only Python frames.  A report lacks the
innermost frame of each sample.  So the last frame is a function whose callee waits or computes, in native code or in
Python; its library decides which.  The report does not have the task of a sample.  If a frame of the user's own code
has the name of a prefix, as delayed functions have, the sample counts for that prefix.
"""

from __future__ import annotations

import html
import re
from collections import defaultdict
from collections.abc import Iterable

from crystalperf.plugin import Resource
from crystalperf_dask.page import Frame, Source, stacks

SERVICE = Resource("service", "remote service", "service", "speed", shared_by="nobody")
"""Servers that the tasks' own code calls.  A report has neither the bytes nor the server's time, so waiting for a
server does not count as network time: a faster network may not shorten it."""

PYTHON = Resource("python", "Python interpreter", "cpu_speed", "speed", shared_by="worker")
"""Computing in Python itself, which only one thread of a process can do at a time."""

_NATIVE = re.compile(
    r"/(numpy|pandas|pyarrow|scipy|sklearn|numba|polars|xgboost|lightgbm|torch|cudf|cupy|zarr|numcodecs|h5py|rasterio"
    r"|PIL|cv2)/"
)
"""Libraries whose functions compute in native code, usually in parallel with other threads.  Dask is not one of them:
if its frame is the last, it called a function of the user."""

_HTTP = "urllib3|requests|httpx|httpcore|aiohttp|s3fs|gcsfs|adlfs|botocore|google/cloud"
_DASK_WAITS = "lock|event|semaphore|queues|variable|utils|worker_client|client"
_LEAVES = (
    (SERVICE.name, rf"/(socket|ssl|selectors)\.py$|/http/client\.py$|/({_HTTP})/"),
    ("other", rf"/(threading|queue|subprocess)\.py$|/distributed/({_DASK_WAITS})\.py$"),
    ("disk", r"/(shutil|tempfile|zipfile|tarfile)\.py$|/fsspec/implementations/local\.py$|/shuffle/_disk\.py$"),
)
_LIBRARY = re.compile(r"/lib/python\d|/(site|dist)-packages/|^<")
_SLEEPS = re.compile(r"\bsleep\(|\.(wait|acquire|join|result)\(")


def shares(icicle: Source, prefixes: Iterable[str]) -> dict[str, dict[str, float]]:
    """By prefix, the share of its samples on each resource, `other` for waiting; '' has samples without a prefix."""
    named = set(prefixes)
    found: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    waits = _waiting_lines(icicle)
    for frames, share in stacks(icicle):
        kind = "cpu" if not frames else "other" if frames[-1] in waits else _kind(frames[-1])
        # Samples without a known prefix belong to the prefixes that occur in no stack.
        claimed = {function for file, function, _ in frames if not _LIBRARY.search(file)} & named
        for prefix in claimed or {""}:
            found[prefix][kind] += share
    return {prefix: {kind: each / sum(of.values()) for kind, each in of.items()} for prefix, of in found.items()}


def _kind(leaf: Frame) -> str:
    found = next((kind for kind, pattern in _LEAVES if re.search(pattern, leaf[0])), None)
    return found or ("cpu" if _NATIVE.search(leaf[0]) else PYTHON.name)


def _waiting_lines(icicle: Source) -> set[Frame]:
    """Whether the frame's line sleeps or waits, by its text."""
    columns = (icicle[each] for each in ("filename", "name", "line_number", "line"))
    return {
        (str(file), html.unescape(str(name)), int(number or 0))
        for file, name, number, line in zip(*columns, strict=True)
        if _SLEEPS.search(str(line))
    }
