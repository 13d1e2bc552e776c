"""The common parts of frameworks that train models, as a Framework: devices, steps, operators in program order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING

from crystalperf.query.frameworks import Frames, Framework, Planner, Reader, Setup
from crystalperf.query.frameworks.ml.training import (
    batches,
    comparing,
    devices,
    exchanged,
    operator_times,
    rules,
    scenarios,
    sentences,
    servers,
    tunable,
)
from crystalperf.query.inputs.containers import LogFile
from crystalperf.query.inputs.files import Application, Head, LogPart
from crystalperf.query.trace.contract import Trace
from crystalperf.query.trace.records import Problems
from crystalperf.query.trace.vocabulary import Vocabulary, plural

if TYPE_CHECKING:
    import duckdb

    from crystalperf.query.execution.execution import Execution
    from crystalperf.query.results.answers import Efficiency

PLANNER = Planner(
    configured=scenarios.configured,
    replan=scenarios.replan,
    shown_workers=scenarios.shown_workers,
    growth=batches.growth,
    steady=servers.steady,
    exchange=exchanged.exchange,
    other_bound=scenarios.other_bound,
    settings=devices.SETTINGS,
    expand=devices.expanded,
    excluded_settings=lambda _properties: ("cores", "memory", devices.LATENCY.setting, *devices.SETTINGS),
)


def _efficiency(connection: duckdb.DuckDBPyConnection, execution: Execution) -> Sequence[Efficiency]:
    """See efficiency.of_kernels, which is imported only for a run."""
    found: Sequence[Efficiency] = import_module(f"{__package__}.efficiency").of_kernels(connection, execution)
    return found


_ADVISOR = replace(rules.RULES, sentences=sentences.SENTENCES, efficiency=_efficiency, tunable=tunable.of_settings())


def of_training(
    *,
    name: str,
    title: str,
    log_hint: str,
    recognise: Callable[[Head], LogPart | None],
    gather: Callable[[Sequence[LogPart], Problems], list[Application]],
    setup: Setup,
    process: str = "process",
) -> Framework:
    """The framework of that name; its package has a module `trace` with the reader.

    `process` is its word for one of the processes that train together.
    """
    processes = plural(process)
    return Framework(
        name=name,
        title=title,
        reader=Reader(
            recognise=recognise,
            read=_read_by(f"crystalperf.query.frameworks.ml.{name}.trace"),
            gather=gather,
            frames=Frames(operators=operator_times.OPERATORS),
            raw=operator_times.raw_tables,
            interactive=lambda _name, _properties: False,
            in_order=True,
            excerpt=True,
            has_upstream_waits=False,
            resolution_ms=0.002,
        ),
        vocabulary=Vocabulary(
            worker="device",
            slot="lane",
            stage="segment",
            task="operator",
            driver="runtime",
            scope="step",
            scopes=("step",),
            settings={
                processes: "workers",
                "processes": "workers",
                "ranks": "workers",
                "lanes": "cores",
                "batch": "input",
                **{each: each for each in devices.WORDS},
                "operators": "tasks",
            },
            exchanged_data="gradients",
            upstream="the next batch of input",
            log=f"a trace of {title}",
            log_hint=log_hint,
        ),
        planner=PLANNER,
        comparer=comparing.COMPARER,
        advisor=replace(_ADVISOR, setup=setup),
    )


def _read_by(module: str) -> Callable[[LogFile], Trace]:
    """A module's read(), imported only for a trace: runs of other frameworks need only the framework's name."""

    def read(log: LogFile) -> Trace:
        found: Trace = import_module(module).read(log)
        return found

    return read
