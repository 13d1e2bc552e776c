"""Numbers the distinct stacks of all recordings of a run, and finds the attributed frame of each."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import duckdb
import numpy as np
from numpy.typing import NDArray

from crystalperf.indexes.resources import CPU, resources
from crystalperf.query import sql
from crystalperf.query.attribution.code.names import CODEC_CALLS, FILE_CALLS, SOCKET_CALLS, WAITS_FOR_PEERS, bounded
from crystalperf.query.attribution.code.resolve import Indexes, resolve
from crystalperf.query.inputs.frames import OperatorFrame, Role
from crystalperf.query.inputs.reader import ReadableFramework
from crystalperf.query.trace.plugins import entries
from crystalperf.query.trace.records import Ints, objects

if TYPE_CHECKING:
    from crystalperf.query.recordings import jfr

_FRAME_BYTES = np.dtype(np.int32).itemsize
_LAST_LINE = np.iinfo(np.int32).max


NO_FRAME = ("", "unknown", 0)
"""The frame of a stack without frames."""


@dataclass
class NumberedStacks:
    """Distinct frames and stacks, numbered from 0 in order of appearance."""

    framework: ReadableFramework
    frames: dict[tuple[str, str, int], int] = field(default_factory=dict)
    roles: list[Role | None] = field(default_factory=list)
    operators: list[OperatorFrame | None] = field(default_factory=list)
    stacks: dict[bytes, int] = field(default_factory=dict)
    truncated: list[bool] = field(default_factory=list)
    _kept: tuple[Ints, NDArray[np.int32]] | None = None

    def add(self, recording: jfr.Recording) -> Ints:
        """Add a recording's stacks; returns this table's number of each of them, (stacks of the recording,)."""
        names = recording.frames
        owners, methods = map(bounded, names.owners()), map(bounded, names.methods())
        keys = zip(owners, methods, np.maximum(names.line, 0).tolist(), strict=True)
        own = np.array([self._frame(key) for key in keys], dtype=np.int32)
        numbers = np.empty(len(recording.stacks), dtype=np.int64)
        for stack in range(len(recording.stacks)):
            frames: NDArray[np.int32] = own[recording.stacks.frames(stack)]
            if not len(frames):  # the JVM may record a stack without frames, and each stack has one
                frames = np.array([self._frame(NO_FRAME)], dtype=np.int32)
            numbers[stack] = self._stack(frames, truncated=bool(recording.stacks.truncated[stack]))
        return numbers

    def add_stacks(self, stacks: Iterable[Sequence[tuple[str, str, int]]]) -> Ints:
        """Add stacks of (class or file, name, line), leaf first; returns the number of each, (stacks,)."""
        numbers = []
        for stack in stacks:
            own = [
                self._frame((bounded(owner), bounded(name), min(max(line, 0), _LAST_LINE)))
                for owner, name, line in stack or (NO_FRAME,)
            ]
            numbers.append(self._stack(np.array(own, dtype=np.int32), truncated=False))
        return np.array(numbers, dtype=np.int64)

    def add_functions(self, functions: Sequence[tuple[str, str, int] | None]) -> Ints:
        """Add functions, (class or file, name, line), each as a stack of one frame; their numbers, -1 for None."""
        known: dict[tuple[str, str, int] | None, int] = {None: -1}
        for each in dict.fromkeys(functions):
            if each is not None:
                owner, name, line = each
                frame = self._frame((bounded(owner), bounded(name), min(max(line, 0), _LAST_LINE)))
                known[each] = self._stack(np.array([frame], dtype=np.int32), truncated=False)
        return np.array([known[each] for each in functions], dtype=np.int64)

    def has_role(self, *roles: Role) -> NDArray[np.bool_]:
        """Which stacks contain a frame of one of the roles, (stacks,)."""
        chosen = np.array([role in roles for role in self.roles], dtype=bool)
        stack = np.repeat(np.arange(len(self.stacks)), self.lengths())
        return np.bincount(stack[chosen[self.flat()]], minlength=len(self.stacks)) > 0

    def lengths(self) -> Ints:
        """The number of frames of each stack, (stacks,)."""
        return self._columns()[0]

    def flat(self) -> NDArray[np.int32]:
        """The frames of all stacks, one stack after the other, leaves first, (sum of lengths,)."""
        return self._columns()[1]

    def _columns(self) -> tuple[Ints, NDArray[np.int32]]:
        """lengths() and flat(), kept until a stack is added: each recording asks for them several times."""
        if self._kept is None or len(self._kept[0]) != len(self.stacks):
            lengths = np.array([len(key) // _FRAME_BYTES for key in self.stacks], dtype=np.int64)
            self._kept = lengths, np.frombuffer(b"".join(self.stacks), dtype=np.int32)
        return self._kept

    def _stack(self, frames: NDArray[np.int32], *, truncated: bool) -> int:
        """The number of a stack, leaf first; `truncated` is stored only for a new stack."""
        number = self.stacks.setdefault(frames.tobytes(), len(self.stacks))
        if number == len(self.truncated):
            self.truncated.append(truncated)
        return number

    def _frame(self, key: tuple[str, str, int]) -> int:
        number = self.frames.get(key)
        if number is None:
            number = self.frames[key] = len(self.frames)
            self.roles.append(self._role(key[0], key[1]))
            operators = self.framework.reader.frames.operators
            self.operators.append(None if operators is None else operators.of_frame(key[0], key[1]))
        return number

    def _role(self, class_name: str, method: str) -> Role | None:
        """The role of a frame by the framework, else by the annotators of other packages."""
        own = self.framework.reader.frames.annotate(class_name, method)
        if own is not None:
            return own
        annotated = (annotate(class_name, method) for annotate in entries("annotators").values())
        return next((role for role in annotated if role is not None), None)

    def operator(self, key: bytes) -> tuple[str | None, int | None]:
        """The kind of operator that a stack's frames name nearest its leaf, and the generated code it is in."""
        kind: str | None = None
        weak: str | None = None
        for frame in _frames(key).tolist():
            named = self.operators[frame]
            if named is None:
                continue
            if named.weak:
                weak = weak or named.kind
                continue
            kind = kind or named.kind
            if named.pipeline is not None:
                return kind, named.pipeline
        return kind or weak, None


def add_frames(connection: duckdb.DuckDBPyConnection, table: NumberedStacks) -> None:
    """Make the temporary table `frames` of the distinct frames, (frame_id, class_name, method, line, role)."""
    keys = list(table.frames)
    columns = {  # noqa: F841 (read by DuckDB)
        "frame_id": np.arange(len(keys), dtype=np.int32),
        "class_name": objects([key[0] for key in keys]),
        "method": objects([key[1] for key in keys]),
        "line": np.array([key[2] for key in keys], dtype=np.int32),
        "role": objects(list(table.roles)),
    }
    connection.execute("CREATE TEMP TABLE frames AS SELECT * REPLACE (role::VARCHAR AS role) FROM columns")


def decide(
    connection: duckdb.DuckDBPyConnection,
    table: NumberedStacks,
    indexes: Indexes,
    other_version: Collection[str],
    libraries: Collection[str],
    names: Sequence[str],
) -> None:
    """Fill the run's `stacks` table: frames, the attributed one and its vector.  Drops the table of `add_frames`.

    The framework's own `indexes` are first.  `other_version` names those of another version than the one that ran,
    `libraries` those of libraries, which count only for stacks that no other index knows; `names` are the run's
    resources.
    """
    if not table.stacks:
        connection.execute("DROP TABLE frames")
        return
    prepare(connection, table, indexes, other_version, libraries, names)
    lengths = table.lengths()
    operators = [table.operator(key) for key in table.stacks]
    cut = {  # noqa: F841
        "stack_id": np.arange(len(lengths), dtype=np.int32),
        "truncated": np.array(table.truncated, dtype=bool),
        "operator": objects([kind for kind, _ in operators]),
        "pipeline": np.array([-1 if pipeline is None else pipeline for _, pipeline in operators], dtype=np.int64),
    }
    connection.execute(sql.text("keep_stacks").format(decided=attributed_frames(names)))
    connection.execute("DROP TABLE frames; DROP TABLE stack_frames; DROP TABLE resolved")


def prepare(
    connection: duckdb.DuckDBPyConnection,
    table: NumberedStacks,
    indexes: Indexes,
    other_version: Collection[str],
    libraries: Collection[str],
    names: Sequence[str],
) -> None:
    """Make the tables that `attributed_frames` reads, after `add_frames`; the parameters are those of decide()."""
    connection.execute(
        """
        CREATE OR REPLACE TEMP TABLE frames AS
        SELECT *,
            CASE WHEN regexp_matches(name, ?) THEN 'net' WHEN regexp_matches(name, ?) THEN 'disk'
                WHEN regexp_matches(name, ?) THEN 'cpu' END AS device
        FROM (SELECT *, concat(class_name, '.', method) AS name FROM frames)
        """,
        [SOCKET_CALLS, FILE_CALLS, CODEC_CALLS],
    )
    lengths = table.lengths()
    stack_frames = {  # noqa: F841
        "stack_id": np.repeat(np.arange(len(lengths), dtype=np.int32), lengths),
        "depth": (np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)).astype(np.int32),
        "frame_id": table.flat(),
    }
    connection.execute("CREATE TEMP TABLE stack_frames AS SELECT * FROM stack_frames")
    _add_resolved(connection, indexes, other_version, names)
    if libraries:
        connection.execute(
            """
            UPDATE frames SET role = CASE WHEN waits THEN 'peer' ELSE 'library' END
            FROM (
                SELECT frames.frame_id AS id, regexp_matches(concat(class_name, '.', method), ?) AS waits, index_name
                FROM frames LEFT JOIN resolved USING (frame_id)
            )
            WHERE id = frame_id AND role IS NULL
                AND (list_contains(?::VARCHAR[], index_name) OR (waits AND index_name IS NULL))
            """,
            [WAITS_FOR_PEERS, list(libraries)],
        )


def _add_resolved(
    connection: duckdb.DuckDBPyConnection, indexes: Indexes, other_version: Collection[str], names: Sequence[str]
) -> None:
    """Make the table `resolved`: the resource vectors of frames with a known function.

    A native method has no source text to classify, so its caller's vector counts.
    """
    found = resolve(connection, "frames", indexes, other_version=other_version)
    if indexes.names:
        vectors = (
            f"SELECT frame_id, index_name, functions.symbol, {_vector(names)}"
            f" FROM {found} JOIN {indexes.functions} AS functions USING (turn, function_id) WHERE how <> 'native'"
        )
    else:  # the same columns without a row
        nothing = ", ".join(f"NULL::DOUBLE AS {name}" for name in names)
        vectors = f"SELECT NULL::INTEGER AS frame_id, '' AS index_name, NULL::VARCHAR AS symbol, {nothing} LIMIT 0"
    connection.execute(f"CREATE TEMP TABLE resolved AS {vectors}")


def _vector(names: Sequence[str]) -> str:
    """SQL: a function's shares; 0 for a resource that indexes do not have."""
    return ", ".join(f"functions.{name}" if name in resources() else f"0::FLOAT AS {name}" for name in names)


def _frames(key: bytes) -> NDArray[np.int32]:
    return np.frombuffer(key, dtype=np.int32)


def attributed_frames(names: Sequence[str]) -> str:
    """SQL: the query of query/sql/attributed_frames.sql for the resources of these names."""
    vector = ", ".join(
        f"CASE WHEN delegated.stack_id IS NOT NULL THEN {float(name == CPU)}"
        f" WHEN called.device IS NOT NULL THEN (called.device = '{name}')::DOUBLE ELSE resolved.{name} END AS {name}"
        for name in names
    )
    return sql.text("attributed_frames").format(vector=vector)
