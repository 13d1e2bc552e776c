"""What frameworks of training have in common as a Framework: devices, steps, operators that run in order."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from crystalperf.query.frameworks import Framework, Vocabulary, plural
from crystalperf.query.frameworks.training import absent, batches, devices, operators, rules, sentences, servers, worlds
from crystalperf.query.inputs.containers import LogFile
from crystalperf.query.model.trace import Trace


def of_training(*, name: str, title: str, log_hint: str, process: str = "process", **own: Any) -> Framework:
    """The framework of that name; `own` is what it has of its own: recognise, gather, setup, perhaps rules.

    Its package has a module `trace` that reads.  `process` is its word for one of the processes that train together.
    """
    processes = plural(process)
    own.setdefault("rules", rules.RULES)
    own.setdefault("sentences", sentences.SENTENCES)
    return Framework(
        name=name,
        title=title,
        read=_reader(f"crystalperf.query.frameworks.{name}.trace"),
        raw=operators.raw_tables,
        vocabulary=Vocabulary(
            worker="device",
            lane="lane",
            group="stretch",
            unit="operator",
            coordinator="runtime",
            scope="step",
            scopes=("step",),
            settings={
                processes: "workers",
                "processes": "workers",
                "ranks": "workers",
                "lanes": "cores",
                "batch": "input",
            },
            exchanged="gradients",
            upstream="the next batch of input",
            log=f"a trace of {title}",
            log_hint=log_hint,
        ),
        operators=operators.OPERATORS,
        configured=worlds.configured,
        replan=worlds.replan,
        growth=batches.growth,
        steady=servers.steady,
        unsure=absent.unsure,
        expand=devices.expanded,
        attended=lambda _name, _properties: False,
        unasked=lambda _properties: ("cores", "memory"),
        in_order=True,
        excerpt=True,
        tells_upstream=False,
        resolution_ms=0.002,
        **own,
    )


def _reader(module: str) -> Callable[[LogFile], Trace]:
    """A module's read(), imported where there is a trace: a run of any framework asks all others for their names."""

    def read(log: LogFile) -> Trace:
        found: Trace = import_module(module).read(log)
        return found

    return read
