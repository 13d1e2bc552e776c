"""Configurations of Flink to run and to predict: each workload's baseline, and changes of it.

They are numbered from 0 over all workloads.  Even ones are the tuning set, odd ones the test set, which is only scored.
The baseline of a workload is never scored; predictions start from its recorded runs.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from lab.flink.cluster import FlinkConfig
from lab.flink.runs import FlinkRun
from lab.flink.workloads import Workload

MBIT = 1_000_000


@dataclass(frozen=True)
class Configuration:
    """One point of the suite; `changed` are settings of `crystalperf predict` with their values."""

    number: int
    workload: str
    changed: Mapping[str, Any]
    run: FlinkRun
    asks: tuple[str, ...]

    @property
    def is_base(self) -> bool:
        return not self.changed

    @property
    def role(self) -> str:
        return "base" if self.is_base else ("even", "odd")[self.number % 2]

    @property
    def name(self) -> str:
        return f"{self.number:03d}-{self.workload}"


_CLUSTER = FlinkConfig(task_managers=2, slots=2, cpu_cores=0.7, network_bps=100 * MBIT, namespaces=True)
_BASES: dict[str, Workload] = {
    "ads": Workload("ads", rate=6000, work=4),
    "words": Workload("words", rate=3000, chaining=False),
    "rocks": Workload("rocks", rate=4000, work=3),
    "skew": Workload("skew", rate=8000, work=4),
    "async": Workload("async", rate=3000),
    "full": Workload("ads", work=4, records=5_000_000),
    "join": Workload("join", parallelism=4, records=4_000_000),
    "full-words": Workload("words", records=5_500_000, chaining=False),
    "full-rocks": Workload("rocks", work=3, records=4_000_000),
    "full-skew": Workload("skew", work=4, records=6_000_000),
}
_AXES: dict[str, dict[str, tuple[Any, ...]]] = {
    "ads": {"rate": (3000, 6000, 12_000, 24_000), "parallelism": (2, 4), "network": (25, 100), "cpu": (0.35, 0.7)},
    "words": {"rate": (1500, 3000, 6000), "parallelism": (2, 4), "cpu": (0.35, 0.7)},
    "rocks": {"rate": (2000, 4000, 8000), "parallelism": (2, 4), "cpu": (0.35, 0.7)},
    "skew": {"rate": (4000, 8000, 16_000), "parallelism": (2, 4)},
    "async": {"rate": (1500, 3000, 6000), "parallelism": (2, 4)},
    "full": {"parallelism": (1, 2, 4), "cpu": (0.35, 0.7)},
    "join": {"parallelism": (2, 4), "cpu": (0.35, 0.7), "network": (25, 100, 2000)},
    "full-words": {"parallelism": (2, 4), "cpu": (0.35, 0.7), "network": (50, 100)},
    "full-rocks": {"parallelism": (2, 4), "cpu": (0.35, 0.7), "network": (50, 100)},
    "full-skew": {"parallelism": (2, 4), "cpu": (0.35, 0.7), "network": (50, 100)},
}


def configurations() -> list[Configuration]:
    """All of them, in order; the product of each workload's axes."""
    found: list[Configuration] = []
    for name, base in _BASES.items():
        axes = _AXES[name]
        for values in itertools.product(*axes.values()):
            knobs = dict(zip(axes, values, strict=True))
            run, usual = _run(base, knobs), _usual(base)
            changed = {key: value for key, value in knobs.items() if value != usual[key]}
            found.append(Configuration(len(found), name, changed, run, _asks(changed)))
    return found


def _usual(base: Workload) -> dict[str, Any]:
    return {"rate": base.rate, "parallelism": base.parallelism, "network": 100, "cpu": 0.7}


def _run(base: Workload, knobs: Mapping[str, Any]) -> FlinkRun:
    workload = replace(base, **{key: knobs[key] for key in ("rate", "parallelism") if key in knobs})
    cluster = replace(
        _CLUSTER,
        slots=max(2, -(-workload.parallelism // 2)),
        cpu_cores=knobs.get("cpu", 0.7),
        network_bps=knobs.get("network", 100) * MBIT,
    )
    return FlinkRun(workload, cluster)


def _asks(changed: Mapping[str, Any]) -> tuple[str, ...]:
    """The arguments of `crystalperf predict`, from the baseline run."""
    asks = []
    for key, value in changed.items():
        if key == "cpu":
            asks.append(f"cpu_speed={value / 0.7:g}x")
        elif key == "network":
            asks.append(f"network={value}Mbps")
        else:
            asks.append(f"{key}={value}")
    return tuple(asks)
