"""Reader of flame graphs that Flink's web interface shows, as its REST interface returns them for one vertex.

    {"endTimestamp": 1700000000000, "data": {"name": "root", "value": 100, "children": [{"name":
        "java.lang.Thread.run:829", "value": 100, "children": [...]}]}}

The value of a node is its number of samples, those of its children included.  Neither the job nor the vertex is named.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from crystalperf.indexes.errors import InputError
from crystalperf.indexes.regex import regex
from crystalperf.query.inputs.containers import Part, head, pieces
from crystalperf.query.trace.records import Problems

_BEGIN = regex(rb'\s*\{\s*"(?:endTimestamp"\s*:\s*-?\d+\s*,\s*"data|data)"\s*:\s*\{\s*"name"\s*:\s*"root"')
_MAX_BYTES = 64 << 20
_MAX_DEPTH = 2048


class _Node(msgspec.Struct):
    name: str = ""
    value: float = 0.0
    children: list[_Node] | None = None


class _Page(msgspec.Struct):
    data: _Node


def is_flame_graph(text: bytes) -> bool:
    """Whether a file with this beginning is a flame graph of Flink."""
    return _BEGIN.match(text) is not None


def read(path: str, problems: Problems) -> list[tuple[tuple[str, ...], float]] | None:
    """The stacks of a flame graph, the root first, and how many samples each has; None for any other file.

    Raises InputError if it is damaged.
    """
    if not is_flame_graph(head(Part(path), 4096)):
        return None
    text = bytearray()
    for piece in pieces(Part(path), problems):
        text += piece
        if len(text) > _MAX_BYTES:
            raise InputError(f"{path}: a flame graph of more than {_MAX_BYTES >> 20} MiB")
    try:
        page = msgspec.json.decode(bytes(text), type=_Page)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{path}: not a complete flame graph ({error}); save it again") from error
    return list(_stacks(page.data))


def _stacks(root: _Node) -> Iterator[tuple[tuple[str, ...], float]]:
    """The stacks below the root, each with the samples that have no deeper frame."""
    left: list[tuple[_Node, Sequence[str]]] = [(each, ()) for each in root.children or ()]
    while left:
        node, above = left.pop()
        stack = (*above, node.name)[-_MAX_DEPTH:]
        below = node.children or []
        own = node.value - sum(each.value for each in below)
        if own > 0:
            yield stack, own
        left += [(each, stack) for each in below]
