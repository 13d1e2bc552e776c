"""Reads the columns behind the plots of a Bokeh page, and the stacks behind Dask's icicle plots.

Bokeh 3 nests its models; earlier versions have a list of references.  The code handles both in the same way.  A column
is a list, or the base64 text of an array's bytes, which Bokeh 3 compresses.
"""

from __future__ import annotations

import base64
import html
import json
import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Source = dict[str, list[Any]]
"""Columns by name."""

Frame = tuple[str, str, int]
"""File, function, line."""

_DOCUMENT = re.compile(rb'<script[^>]*type="application/json"[^>]*>(.*?)</script>', re.S)
_STREAM = frozenset(["start", "duration", "key", "name", "worker", "worker_thread"])
_ICICLE = frozenset(["left", "right", "bottom", "filename", "line", "line_number", "name"])
_LARGEST_COLUMN = 1 << 28  # bytes
_DTYPES = re.compile(r"[<>]?(?:u?int\d+|float\d+|[iuf]\d)")


@dataclass
class Page:
    """The content of a Dask page: rectangles of the task stream, icicle plots by title of the tab, the summary."""

    stream: Source | None = None
    icicles: dict[str, Source] = field(default_factory=dict)
    summary: dict[str, str] = field(default_factory=dict)


def read(text: bytes) -> Page | None:
    """The page; None if it has no readable Bokeh document."""
    found = _DOCUMENT.search(text)
    if found is None:
        return None
    try:
        document = json.loads(found[1])
    except (ValueError, RecursionError):
        return None
    page = Page()
    by_id: dict[str, Any] = {}
    for each in _models(document):
        by_id.setdefault(str(each.get("id")), each)
    for title, each in _sources(document, by_id):
        if each.keys() >= _STREAM and page.stream is None:
            page.stream = each
        elif each.keys() >= _ICICLE:
            page.icicles.setdefault(title, each)
    for each in _models(document):
        words = _attributes(each).get("text")
        if isinstance(words, str) and "Dask Performance Report" in words:
            page.summary.update(re.findall(r"(?:<li>|<h2>)\s*([\w. ]+?): ([^<]+?)\s*<", html.unescape(words)))
    return page


def stacks(icicle: Mapping[str, list[Any]]) -> list[tuple[tuple[Frame, ...], float]]:
    """Stacks, the root first, each with its share of all samples.

    Dask does not draw functions without callees, so the innermost function of every sample is missing.  A sample that
    ends at the root was in Dask's own call of a native function.
    """
    count = len(icicle["left"])
    width = [float(icicle["right"][row]) - float(icicle["left"][row]) for row in range(count)]
    below, own = list(width), [-1] * count
    above: list[int] = []
    for row in range(count):  # depth-first from the root: callers before callees
        del above[int(icicle["bottom"][row]) :]
        own[row] = above[-1] if above else -1
        if above:
            below[above[-1]] -= width[row]
        above.append(row)
    frames = [
        (str(icicle["filename"][row]), html.unescape(str(icicle["name"][row])), int(icicle["line_number"][row] or 0))
        for row in range(count)
    ]
    found = []
    for row in range(count):
        if below[row] > 1e-6:
            path, at = [], row
            while at > 0:
                path.append(frames[at])
                at = own[at]
            found.append((tuple(reversed(path)), below[row]))
    return found


def _models(value: Any) -> Iterator[dict[str, Any]]:
    """Every model of a document."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            if "id" in each and "attributes" in each:
                yield each
            waiting += each.values()
        elif isinstance(each, list):
            waiting += each


def _attributes(model: Mapping[str, Any]) -> Mapping[str, Any]:
    found = model.get("attributes")
    return found if isinstance(found, dict) else {}


def _sources(document: Any, by_id: Mapping[str, Any]) -> Iterator[tuple[str, Source]]:
    """The data sources, each with the title of its tab; those in tabs first."""
    tabs = [each for each in _models(document) if {"title", "child"} <= _attributes(each).keys()]
    seen: set[str] = set()
    for title, start in [*((_attributes(each)["title"], _attributes(each)["child"]) for each in tabs), ("", document)]:
        waiting = [start]
        while waiting:
            each = waiting.pop()
            if isinstance(each, list):
                waiting += each
            elif isinstance(each, dict):
                key = str(each.get("id", ""))
                if "id" in each and "attributes" not in each:  # a reference to a model
                    each = by_id.get(key, {})
                if key in seen:
                    continue
                if "id" in each:
                    seen.add(key)
                if "ColumnDataSource" in (each.get("name"), each.get("type")):
                    yield str(title), _columns(_attributes(each).get("data"))
                else:
                    waiting += each.values()


def _columns(data: Any) -> Source:
    if isinstance(data, dict) and data.get("type") == "map":
        data = dict(data.get("entries", []))
    return {str(name): _column(each) for name, each in data.items()} if isinstance(data, dict) else {}


def _column(value: Any) -> list[Any]:
    if isinstance(value, list):
        return value
    if not isinstance(value, dict):
        return []
    packed, dtype = value.get("__ndarray__") or value.get("array"), str(value.get("dtype"))
    if isinstance(packed, dict):
        packed = packed.get("data")
    if isinstance(packed, list):
        return packed
    if not isinstance(packed, str) or not _DTYPES.fullmatch(dtype):
        return []
    stored = base64.b64decode(packed)
    if stored[:2] == b"\x1f\x8b":
        stored = zlib.decompressobj(31).decompress(stored, _LARGEST_COLUMN)
    values: list[Any] = np.frombuffer(stored, dtype=np.dtype(dtype)).tolist()
    return values
