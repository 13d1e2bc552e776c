"""The stages of a run that Python workers computed for, and the functions that their plans name."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from crystalperf.query.frameworks.spark.udfs import RUNS_PYTHON, SCALAR_UDF, numbered_functions
from crystalperf.query.trace.contract import Trace
from crystalperf.query.trace.records import Floats, uses_of

_LEAST_SHARE = 0.05
"""The part of a stage's waiting that may be serialization even if its functions explain all of it."""


@dataclass
class PythonStage:
    """A stage whose tasks had Python workers.

    functions  names of functions in its plan, with the ids of their results; empty for an RDD
    operators  names of its plan's operators that run Python
    waited_ms  by executor, the time of its tasks that is not the JVM's CPU time: a worker may have worked then
    given_ms   by executor, the part of that for which profiles have been attributed
    """

    stage_id: str
    functions: Mapping[str, frozenset[int]]
    operators: frozenset[str]
    waited_ms: dict[str, float]
    launch_ms: Floats
    finish_ms: Floats
    given_ms: dict[str, float] = field(default_factory=dict)

    @property
    def pickles(self) -> bool:
        """Whether rows may cross as pickle: those of an RDD, and of functions that take one row."""
        return not self.operators or any(SCALAR_UDF in each for each in self.operators)

    @property
    def uses_arrow(self) -> bool:
        return any(SCALAR_UDF not in each for each in self.operators)

    def weight_ms(self, workers: Collection[str] | None, left: bool) -> float:
        """Time for which its workers may have worked on some executors, None for all; with `left` only the part to
        which nothing is attributed yet."""
        found = 0.0
        for worker, waited in self.waited_ms.items():
            if workers is None or worker in workers:
                given = self.given_ms.get(worker, 0.0) if left else 0.0
                found += max(waited - given, _LEAST_SHARE * waited)
        return found


def python_stages(trace: Trace) -> list[PythonStage]:
    """The stages of a run with Python workers that ran tasks, in the order of the trace."""
    plans = _plans(trace)
    stage_of = np.asarray(trace.tasks["stage_id"], dtype=object)
    workers = np.asarray(trace.tasks["worker_id"], dtype=object)
    launch, finish = (np.asarray(trace.tasks[name], dtype=np.float64) for name in ("launch_ms", "finish_ms"))
    own = _known(trace.tasks.get("own_ms"), finish - launch)
    waited = np.maximum(own - _known(trace.tasks.get("own_cpu_ms"), np.zeros(len(own))), 0.0)
    found = []
    for stage_id, uses in zip(trace.stages["stage_id"].tolist(), trace.stages["io_kinds"].tolist(), strict=True):
        operators, functions = plans.get(stage_id, (set(), {}))
        if not (operators or "python" in uses_of(uses)):
            continue
        rows = np.flatnonzero(stage_of == stage_id)
        if not len(rows):
            continue
        by_worker: dict[str, float] = {}
        for row in rows.tolist():
            by_worker[str(workers[row])] = by_worker.get(str(workers[row]), 0.0) + max(float(waited[row]), 1e-3)
        named = {name: frozenset(ids) for name, ids in functions.items()}
        found.append(PythonStage(stage_id, named, frozenset(operators), by_worker, launch[rows], finish[rows]))
    return found


def _plans(trace: Trace) -> dict[str, tuple[set[str], dict[str, set[int]]]]:
    """By stage, the names of the operators that run Python, and their functions with the ids of their results."""
    columns = [trace.operators.get(name, ()) for name in ("scope_id", "node_id", "name", "detail")]
    running = {
        (scope, int(node)): (name, detail or "")
        for scope, node, name, detail in zip(*map(_listed, columns), strict=True)
        if RUNS_PYTHON.search(name)
    }
    found: dict[str, tuple[set[str], dict[str, set[int]]]] = {}
    keys = [trace.operator_stages.get(name, ()) for name in ("stage_id", "scope_id", "node_id")]
    for stage_id, scope, node in zip(*map(_listed, keys), strict=True):
        if (operator := running.get((scope, int(node)))) is not None:
            operators, functions = found.setdefault(stage_id, (set(), {}))
            operators.add(operator[0])
            for name, number in numbered_functions(operator[1]):
                functions.setdefault(name, set()).add(number)
    return found


def with_result(number: int, stages: Sequence[PythonStage]) -> list[PythonStage]:
    """The stages whose plans have the function with the result of this id.

    A long list of arguments is cut off in plans, before the id.  If no plan has it, it is of the only such stage.
    """
    exact = [each for each in stages if any(number in ids for ids in each.functions.values())]
    unknown = [each for each in stages if each.operators and not each.functions]
    return exact or (unknown if len(unknown) == 1 else [])


def _listed(column: Any) -> Sequence[Any]:
    return column.tolist() if hasattr(column, "tolist") else list(column)


def _known(column: Any, otherwise: Floats) -> Floats:
    """A column of times, with others where they are unknown."""
    if column is None:
        return otherwise
    values = np.ma.asarray(column, dtype=np.float64)
    filled: Floats = np.where(np.ma.getmaskarray(values), otherwise, np.ma.getdata(values))
    return np.where(np.isfinite(filled), filled, otherwise)


def sharing(
    stages: Sequence[PythonStage],
    workers: Collection[str] | None,
    functions: Collection[str],
    arrow: bool | None,
    times_ms: Floats | None = None,
) -> tuple[list[tuple[PythonStage, float]], str]:
    """The stages that a stack may be of, with the share of each, and how they are known.

    `functions` are the user's functions in it.  A stack with one that a plan names is of the stages with that plan, one
    without is of those whose rows cross in its way, Arrow or pickle.  Of these, its times show the stages that ran; if
    it has none, or no task ran at these, it is shared out by the time that tasks waited.
    """
    here = [each for each in stages if workers is None or set(each.waited_ms) & set(workers)]
    chosen, how = _candidates(here, functions, arrow)
    if len(chosen) > 1 and times_ms is not None:
        each_runs = np.array([running([each], times_ms) for each in chosen])
        whole = each_runs.sum(axis=0)
        if whole.any():
            shares = (each_runs[:, whole > 0] / whole[whole > 0]).mean(axis=1)
            return [(each, share) for each, share in zip(chosen, shares.tolist(), strict=True) if share > 0], "time"
    weights = [each.weight_ms(workers, left=not functions) for each in chosen]
    total = sum(weights)
    return [(each, weight / total) for each, weight in zip(chosen, weights, strict=True)] if total > 0 else [], how


def _candidates(
    here: Sequence[PythonStage], functions: Collection[str], arrow: bool | None
) -> tuple[Sequence[PythonStage], str]:
    """The stages that a stack without a time may be of, and how they are known."""
    if len(here) == 1:
        return here, "only stage"
    if functions:
        exact = [each for each in here if set(functions) & set(each.functions)]
        chosen, how = (exact, "function") if exact else ([each for each in here if not each.functions], "operator")
    else:
        chosen = [each for each in here if arrow is None or (each.uses_arrow if arrow else each.pickles)]
        how = "operator"
    return (chosen, how) if 0 < len(chosen) < len(here) else (here, "share")


def running(stages: Sequence[PythonStage], times_ms: Floats) -> Floats:
    """The number of tasks of stages that run at each time."""
    found = np.zeros(len(times_ms))
    for each in stages:
        found += np.searchsorted(np.sort(each.launch_ms), times_ms, side="right")
        found -= np.searchsorted(np.sort(each.finish_ms), times_ms, side="left")
    return found
