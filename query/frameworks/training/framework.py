"""What frameworks of training have in common as a Framework: devices, steps, operators that run in order."""

from __future__ import annotations

from typing import Any

from query.frameworks import Framework, Vocabulary, plural
from query.frameworks.training import devices, operators, rules, servers, worlds


def of_training(*, name: str, title: str, log_hint: str, process: str = "process", **own: Any) -> Framework:
    """The framework of that name; `own` is what it has of its own: recognise, gather, read, setup, perhaps rules.

    `process` is its word for one of the processes that train together.
    """
    processes = plural(process)
    own.setdefault("rules", rules.RULES)
    return Framework(
        name=name,
        title=title,
        raw=operators.raw_tables,
        vocabulary=Vocabulary(
            worker="device",
            lane="lane",
            group="stretch",
            unit="operator",
            coordinator="runtime",
            scope="step",
            scopes=("step",),
            settings={processes: "workers", "processes": "workers", "ranks": "workers", "lanes": "cores"},
            exchanged="gradients",
            upstream="the next batch of input",
            log=f"a trace of {title}",
            log_hint=log_hint,
        ),
        operators=operators.OPERATORS,
        configured=worlds.configured,
        replan=worlds.replan,
        steady=servers.steady,
        expand=devices.expanded,
        attended=lambda _name, _properties: False,
        unasked=frozenset(["cores", "memory"]),
        in_order=True,
        excerpt=True,
        resolution_ms=0.002,
        **own,
    )
