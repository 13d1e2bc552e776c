"""The numbers of JSON lines of one kind as rows of float64.

line_rows.c reads them, many times faster than a decoder that makes objects.  It is compiled when CrystalPerf is
installed with a C compiler; without it there are no rows, and the caller decodes all lines.  It leaves every line to
the caller that is not plain JSON as a program writes it, so rows have what a decoder would give.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from crystalperf.query.inputs.containers import Batch
from crystalperf.query.trace.records import Floats, Ints

_COMPILED = "crystalperf.query.inputs._line_rows"
_compiled = import_module(_COMPILED) if find_spec(_COMPILED) else None


class Kind(IntEnum):
    """The kinds of fields; line_rows.c has the same numbers."""

    NUMBER = 0
    TEXT = 1
    """Its code in a mapping from bytes to codes, which may make codes for new texts."""
    BOOL = 2
    OBJECT = 3
    EXACTLY = 4
    """One of some texts, in no column; lines with any other text are left to the caller."""
    AMONG = 5
    """Whether the text is one of some."""


class Field(NamedTuple):
    """A field of an object that is read: its column, or the object's place in the description."""

    name: bytes
    kind: Kind
    column: int = 0
    required: bool = False
    texts: Mapping[bytes, int] | tuple[bytes, ...] | None = None


class LineRows(NamedTuple):
    """The lines that begin with `prefix`, and their fields that are read.

    `objects` has for each object the value of columns whose field it lacks, and its fields; the first is the line's.
    `template` is a row without any field.  Lines like `pattern`, texts with a number between two, are listed apart.
    """

    prefix: bytes
    pattern: tuple[bytes, ...]
    objects: tuple[tuple[float, tuple[Field, ...]], ...]
    template: Floats


class Rows(NamedTuple):
    """The lines of a batch.

    `values` (rows, columns) can be written to; `positions` (rows,) count the lines of the batch from 0.  `like` are
    lines like the pattern: last number, position, begin, end; `others` all other lines that are not empty: position,
    row, begin, end.  A line that was left to the caller has its row, which is the template, and others have -1.
    """

    values: Floats
    positions: Ints
    like: list[list[int]]
    others: list[list[int]]


def is_compiled() -> bool:
    """Whether there are rows at all."""
    return _compiled is not None


def scan(batch: Batch, described: LineRows) -> Rows:
    """The lines of a batch; only if is_compiled()."""
    found: Sequence[Any] = _compiled.scan(batch.first, batch.piece, *described[:3], described.template)  # type: ignore[union-attr]
    values, positions, like, others, count = found
    batch.__dict__["count"] = count  # so that nothing counts them again
    columns = len(described.template)
    return Rows(
        np.frombuffer(values).reshape(-1, columns),
        np.frombuffer(positions, dtype=np.int64),
        *(np.frombuffer(each, dtype=np.int64).reshape(-1, 4).tolist() for each in (like, others)),
    )


def line_of(batch: Batch, begin: int, end: int) -> bytes:
    """A line of a batch from its place in Rows."""
    return batch.first if begin < 0 else batch.piece[begin:end]  # type: ignore[index]
