"""Polling of a running job's metrics, of which its cluster stores no history."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from crystalperf.indexes.errors import InputError
from crystalperf.indexes.regex import regex
from crystalperf.query.frameworks.flink import series
from crystalperf.query.frameworks.flink.rest import Job, Metric, Overview, Rest, TaskManagers

LONGEST_LIST = 3000
"""Maximum characters of metric names in one request: Flink accepts no request line of more than 4096."""

LATENCY_EVERY = 10
"""Samples per sample of latencies and of all operators: the histograms of the former hold the last 128 markers, and
names are long."""

LETS_THROUGH = 0.9
"""An operator that emitted at least this share of its records, and not yet all, may hold records for a while."""

MAX_OPERATORS = 32
"""Maximum operators in each sample, over all vertices: of those that may hold records, the ones that hold most."""

FLUSH_EVERY = 10
"""Lines per write."""

_LATENCY = regex(
    r"(?:\d+\.)?latency\.source_id\.(?P<source>[0-9a-f]+)(?:\.source_subtask_index\.\d+)?"
    r"\.operator_id\.(?P<operator>[0-9a-f]+)\.operator_subtask_index\.(?P<index>\d+)\.(?P<what>latency_\w+)"
)

_OPERATOR = regex(r"(?P<operator>[^.]+)\.numRecordsIn")
"""Flink's name of an operator's counter, summed over subtasks; in the operator's name, _ replaces other characters."""


class Poll:
    """Samples of one job's metrics, appended to a file."""

    def __init__(self, rest: Rest, job: str, page: Job, path: Path) -> None:
        """`page` is the job's own; `path` the file.  Raises InputError if the cluster does not respond."""
        self._rest, self._job, self._path = rest, job, path
        self._vertices, self._workers = _vertices(page), _workers(rest)
        self._lines: list[bytes] = []
        self._sampled = 0
        self._holding: dict[str, list[str]] = {}
        self._version: str | None = None
        with suppress(InputError):
            self._version = rest.decoded("/overview", Overview).version
        self._begin = self._beginning()

    def _beginning(self) -> bytes:
        return series.beginning(self._job, self._version, [each for each, _ in self._vertices], self._workers)

    def follow(self, page: Job) -> None:
        """Continue with the current subtasks of the job's own page, in a new segment if they changed."""
        self._continue(_vertices(page) or self._vertices, self._workers)

    def follow_workers(self) -> None:
        """Continue with the current TaskManagers, in a new segment if they changed."""
        self._continue(self._vertices, _workers(self._rest) or self._workers)

    def _continue(self, vertices: list[tuple[str, int]], workers: dict[str, dict[str, Any]]) -> None:
        if vertices == self._vertices and workers.keys() == self._workers.keys():
            return
        self._vertices, self._workers = vertices, workers
        self._begin = self._beginning()
        self._holding = {}

    def sample(self, now_ms: int) -> None:
        """Take one sample.  Raises InputError if the cluster does not respond."""
        vertices = [self._subtasks(vertex, parallelism) for vertex, parallelism in self._vertices]
        workers = {each: self._worker(each) for each in self._workers}
        operators = {vertex: self._operators(vertex, names) for vertex, names in self._holding.items()}
        latencies = {}
        if self._sampled % LATENCY_EVERY == 0:
            latencies = self._latencies()
            self._find_holding()
        self._sampled += 1
        if any(value is not None for subtasks in vertices for values in subtasks for value in values):
            self._lines += [self._begin] if self._begin else []
            self._begin = b""
            self._lines.append(series.sample_line(now_ms, vertices, workers, latencies, operators))

    def flush(self, least: int = 1) -> None:
        """Write the pending lines if they are at least `least`.  Raises InputError if the file cannot be written."""
        if len(self._lines) < least:
            return
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            series.append(self._path, self._lines)
        except OSError as error:
            raise InputError(f"{self._path}: cannot be written ({error.strerror})") from error
        self._lines = []

    def _subtasks(self, vertex: str, parallelism: int) -> list[list[float | None]]:
        names = [f"{index}.{name}" for index in range(parallelism) for name in series.COLUMNS.values()]
        found = self._values(f"/jobs/{self._job}/vertices/{vertex}/metrics", names)
        return [[found.get(f"{index}.{name}") for name in series.COLUMNS.values()] for index in range(parallelism)]

    def _worker(self, worker: str) -> list[float | None]:
        with suppress(InputError):  # it may be gone while others still run
            found = self._values(f"/taskmanagers/{quote(worker, safe='')}/metrics", list(series.WORKER.values()))
            return [found.get(name) for name in series.WORKER.values()]
        return []

    def _operators(self, vertex: str, names: Sequence[str]) -> dict[str, list[float | None]]:
        """Records in and out of operators of a vertex, summed over its subtasks."""
        wanted = [f"{name}.{counter}" for name in names for counter in series.OPERATOR.values()]
        page, found = f"/jobs/{self._job}/vertices/{vertex}/subtasks/metrics", dict[str, float | None]()
        with suppress(InputError):  # optional: a sample is valid without it
            for some in _lists(wanted):
                for each in _listed(self._rest, f"{page}?get={some}&agg=sum"):
                    found[each.id] = _number(each.sum)
        return {
            name: [found.get(f"{name}.{counter}") for counter in series.OPERATOR.values()]
            for name in names
            if f"{name}.{series.OPERATOR['records_out']}" in found
        }

    def _find_holding(self) -> None:
        """Add the operators that may hold records to those that are sampled each time.

        Few samples catch a burst of records that an operator holds for a few milliseconds.  So an operator that holds
        none now is added too, up to the maximum.
        """
        held: dict[tuple[str, str], float] = {}
        for vertex, _ in self._vertices:
            page = f"/jobs/{self._job}/vertices/{vertex}/subtasks/metrics"
            with suppress(InputError):
                ids = (each.id for each in _listed(self._rest, page))
                names = [match["operator"] for each in ids if (match := _OPERATOR.fullmatch(each))]
                for name, (taken, given) in self._operators(vertex, names).items():
                    if taken and given is not None and LETS_THROUGH * taken <= given <= taken:
                        held[vertex, name] = taken - given
        known = {(vertex, name) for vertex, names in self._holding.items() for name in names}
        others = sorted(held.keys() - known, key=lambda each: (-held[each], each))
        for vertex, name in others[: MAX_OPERATORS - len(known)]:
            self._holding.setdefault(vertex, []).append(name)

    def _latencies(self) -> dict[str, list[float | None]]:
        found: dict[str, dict[str, float | None]] = {}
        pages = [f"/jobs/{self._job}/vertices/{vertex}/metrics" for vertex, _ in self._vertices]
        for page in [f"/jobs/{self._job}/metrics", *pages]:
            known = [each.id for each in _listed(self._rest, page)]
            wanted = [
                each for each in known if (match := _LATENCY.fullmatch(each)) and match["what"] in series.LATENCIES
            ]
            for name, value in self._values(page, wanted).items():
                match = _LATENCY.fullmatch(name)
                assert match is not None
                found.setdefault(f"{match['source']}.{match['operator']}.{match['index']}", {})[match["what"]] = value
        return {key: [values.get(what) for what in series.LATENCIES] for key, values in found.items()}

    def _values(self, page: str, names: Sequence[str]) -> dict[str, float | None]:
        found: dict[str, float | None] = {}
        for some in _lists(names):
            for each in _listed(self._rest, f"{page}?get={some}"):
                found[each.id] = _number(each.value)
        return found


def _lists(names: Sequence[str]) -> Iterator[str]:
    """The names separated by commas, in pieces that fit into a request."""
    some: list[str] = []
    length = 0
    for name in names:
        word = quote(name, safe=".")
        if some and length + len(word) > LONGEST_LIST:
            yield ",".join(some)
            some, length = [], 0
        some.append(word)
        length += len(word) + 1
    if some:
        yield ",".join(some)


def _listed(rest: Rest, page: str) -> list[Metric]:
    """The metrics on a page; none if it is of another shape.  Raises InputError if there is no page."""
    text = rest.fetched(page)
    with suppress(InputError):
        return rest.as_type(page, text, list[Metric])
    return []


def _number(value: object) -> float | None:
    """A number, which Flink writes as text; None for NaN, which means not yet measured."""
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
    if not math.isfinite(number):
        return None
    return int(number) if number == int(number) else round(number, 3)


def _vertices(page: Job) -> list[tuple[str, int]]:
    """The vertices of a job's page, each with its subtasks."""
    return [(each.id, max(each.parallelism, 1)) for each in page.vertices]


def _workers(rest: Rest) -> dict[str, dict[str, Any]]:
    """The TaskManagers with their slots, cores and memory."""
    with suppress(InputError):
        return {
            each.id: {
                "slots": each.slots,
                "cores": each.hardware and each.hardware.cores,
                "stated_cores": each.stated and each.stated.cores,
                "managed_bytes": each.hardware and each.hardware.managed_bytes,
            }
            for each in rest.decoded("/taskmanagers", TaskManagers).taskmanagers
        }
    return {}
