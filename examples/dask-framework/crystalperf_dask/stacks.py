"""What Dask's profiler saw of the tasks' threads, as shares of their time by resource.

It looks at threads that compute every 10 ms, whether they run or wait, and keeps Python's frames only; the innermost of
each sample is missing in a report.  So the last frame is that of the function whose callee waits or computes: in native
code or in Python itself, which goes by the library.  Which task it was the report does not say; where a frame of the
user's own code has the name of a prefix, as functions of delayed have, it is taken to be of those.
"""

from __future__ import annotations

import html
import re
from collections import defaultdict
from collections.abc import Iterable

from crystalperf.plugin import Resource
from crystalperf_dask.page import Frame, Source, stacks

SERVICE = Resource("service", "remote service", "service", "speed", shared_by="nobody")
"""Servers that tasks' own code asks.  A report has neither bytes nor what the server took, so waiting for one is not
the network's time: a faster network need not shorten it."""

PYTHON = Resource("python", "Python interpreter", "cpu_speed", "speed", shared_by="worker")
"""Computing in Python itself, of which only one thread of a process does any at a time."""

_NATIVE = re.compile(
    r"/(numpy|pandas|pyarrow|scipy|sklearn|numba|polars|xgboost|lightgbm|torch|cudf|cupy|zarr|numcodecs|h5py|rasterio"
    r"|PIL|cv2)/"
)
"""Libraries whose functions compute in native code, as a rule beside other threads.  Dask itself is none: what its
last frame called was a function of the user's."""

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
    """By prefix, the share of its samples on each resource, `other` for waiting; '' has those of no prefix."""
    named = set(prefixes)
    found: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    waits = _waiting_lines(icicle)
    for frames, share in stacks(icicle):
        kind = "cpu" if not frames else "other" if frames[-1] in waits else _kind(frames[-1])
        # What no prefix has the name of is of tasks whose prefix no stack has.
        claimed = {function for file, function, _ in frames if not _LIBRARY.search(file)} & named
        for prefix in claimed or {""}:
            found[prefix][kind] += share
    return {prefix: {kind: each / sum(of.values()) for kind, each in of.items()} for prefix, of in found.items()}


def _kind(leaf: Frame) -> str:
    found = next((kind for kind, pattern in _LEAVES if re.search(pattern, leaf[0])), None)
    return found or ("cpu" if _NATIVE.search(leaf[0]) else PYTHON.name)


def _waiting_lines(icicle: Source) -> set[Frame]:
    """Frames at a line whose text sleeps or waits."""
    columns = (icicle[each] for each in ("filename", "name", "line_number", "line"))
    return {
        (str(file), html.unescape(str(name)), int(number or 0))
        for file, name, number, line in zip(*columns, strict=True)
        if _SLEEPS.search(str(line))
    }
