"""The suites as data: workloads, resources and their order.

A suite is a list of sweeps; a sweep is one workload with fixed parameters and axes. Its configurations are the
Cartesian product of the axes in their order, the last axis fastest. They are numbered from 0 through all sweeps of a
suite. Predictions start from the baseline of a sweep, which is never scored. Even configurations are the tuning set,
odd ones the test set, which is only scored.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lab.errors import LabError
from lab.runs.cluster import ClusterConfig
from lab.units import parse_bit_rate, parse_byte_rate, parse_size

Knobs = Mapping[str, Any]

ROLES = ("even", "odd")
"""Tuning set and test set, which is only scored."""

# Plans stay the same under other resources: joins are shuffled, whatever the size of their inputs.
_SHUFFLED = {"spark.sql.autoBroadcastJoinThreshold": "-1"}
# The share of the heap (less 300 MB) that sorts may use; small, so that sorts spill although the JVM has enough heap.
_SMALL_MEMORY = {"spark.memory.fraction": "0.25"}


@dataclass(frozen=True)
class Axis:
    """One axis of a sweep: each value is a set of parameters that change together (names: see ``cluster_config``)."""

    name: str
    values: tuple[Knobs, ...]
    base: int


@dataclass(frozen=True)
class Sweep:
    """One workload under the product of some axes.

    Attributes:
        workload: name in ``lab.runs.workloads``.
        scale_factor: size of its data.
        knobs: parameters that are the same in all configurations.
        axes: parameters that change; each names its baseline value by position.
        spark_conf: Spark settings of all configurations.
    """

    workload: str
    scale_factor: float
    knobs: Knobs
    axes: tuple[Axis, ...]
    spark_conf: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Suite:
    """Sweeps that are run and scored together."""

    name: str
    what: str
    sweeps: tuple[Sweep, ...]


@dataclass(frozen=True)
class Configuration:
    """One point of a suite.

    Attributes:
        number: position in the suite, from 0.
        sweep: position of its sweep in the suite.
        knobs: all parameters, the sweep's own and those of its axes.
        is_base: whether it is its sweep's baseline.
        changed: the parameters in which it differs from its baseline, with their values.
    """

    number: int
    sweep: int
    workload: str
    scale_factor: float
    knobs: dict[str, Any]
    spark_conf: dict[str, str]
    is_base: bool
    changed: dict[str, Any]

    @property
    def role(self) -> str:
        """``base`` (baseline), ``even`` (tuning set) or ``odd`` (test set)."""
        return "base" if self.is_base else ROLES[self.number % 2]


def axis(knob: str, *values: Any, base: int) -> Axis:
    """An axis of one parameter."""
    return Axis(knob, tuple({knob: value} for value in values), base)


def changes(*values: Knobs) -> Axis:
    """An axis whose first value is the unchanged baseline, and whose others are single changes of it."""
    return Axis("change", ({}, *values), 0)


def configurations(suite: Suite) -> list[Configuration]:
    """All configurations of a suite, in order."""
    found: list[Configuration] = []
    for position, sweep in enumerate(suite.sweeps):
        base: dict[str, Any] = dict(sweep.knobs)
        for one in sweep.axes:
            base |= one.values[one.base]
        for chosen in itertools.product(*(range(len(one.values)) for one in sweep.axes)):
            knobs = dict(sweep.knobs)
            for one, value in zip(sweep.axes, chosen, strict=True):
                knobs |= one.values[value]
            found.append(
                Configuration(
                    number=len(found),
                    sweep=position,
                    workload=sweep.workload,
                    scale_factor=sweep.scale_factor,
                    knobs=knobs,
                    spark_conf=dict(sweep.spark_conf),
                    is_base=all(one.base == value for one, value in zip(sweep.axes, chosen, strict=True)),
                    changed={name: value for name, value in knobs.items() if base.get(name) != value},
                )
            )
    return found


def cluster_config(knobs: Knobs) -> ClusterConfig:
    """The cluster of some parameters: workers, slots, slot_cpu_cores, memory (heap of an executor, "1g"), network
    ("30Mbps"), disk ("8MB/s"), storage."""
    known = {"workers", "slots", "slot_cpu_cores", "memory", "network", "disk", "storage"}
    if unknown := sorted(set(knobs) - known):
        raise LabError(f"'{unknown[0]}' is not a parameter of the lab; choose among {', '.join(sorted(known))}.")
    network = knobs.get("network", "unlimited")
    return ClusterConfig(
        workers=knobs.get("workers", 2),
        slots=knobs.get("slots", 2),
        slot_cpu_cores=knobs.get("slot_cpu_cores", SLOT_CPU_CORES),
        executor_memory_bytes=parse_size(knobs.get("memory", "1g")),
        namespaces=True,
        network_bps=None if network == "unlimited" else parse_bit_rate(network),
        disk_bytes_per_s=parse_byte_rate(knobs["disk"]) if "disk" in knobs else None,
        storage=knobs.get("storage", "local"),
    )


# Two workers of four slots of 0.2 core are 1.6 cores, which a machine of two cores can provide.
SLOT_CPU_CORES = 0.2
_REMOTE = {"storage": "hdfs"}

SUITES: dict[str, Suite] = {
    suite.name: suite
    for suite in (
        Suite(
            "q6",
            "TPC-H q6 (after Fig 5): slots × memory × network, input from HDFS",
            (
                Sweep(
                    "q6",
                    1,
                    _REMOTE | {"slot_cpu_cores": 0.1},
                    (
                        axis("slots", 1, 2, 4, base=1),
                        axis("memory", "512m", "1g", "2g", base=1),
                        axis("network", "15Mbps", "30Mbps", "120Mbps", base=1),
                    ),
                ),
            ),
        ),
        Suite(
            "q9",
            "TPC-H q9 (after Fig 5): slots × memory × network, input from HDFS, joins shuffled",
            (
                Sweep(
                    "q9",
                    0.25,
                    _REMOTE,
                    (
                        axis("slots", 1, 2, 4, base=1),
                        axis("memory", "512m", "768m", "1536m", base=1),
                        axis("network", "15Mbps", "40Mbps", "160Mbps", base=1),
                    ),
                    _SHUFFLED | _SMALL_MEMORY,
                ),
            ),
        ),
        Suite(
            "disk",
            "three queries whose workers read from local disks with limited rates",
            (
                Sweep("q6", 1, {}, (axis("disk", "1MB/s", "2MB/s", "4MB/s", "8MB/s", "32MB/s", base=2),)),
                Sweep("q9", 0.5, {}, (axis("disk", "1MB/s", "3MB/s", "12MB/s", base=1),), _SHUFFLED),
                Sweep("q18", 0.5, {}, (axis("disk", "1MB/s", "3MB/s", "12MB/s", base=1),), _SHUFFLED),
            ),
        ),
        Suite(
            "bdb",
            "Big Data Benchmark, queries 1 to 4, disk rate halved (after Fig 8)",
            tuple(
                Sweep(f"bdb{query}", 0.5, {}, (axis("disk", half, disk, base=1),), conf)
                for query, disk, half, conf in (
                    (1, "0.5MB/s", "0.25MB/s", {}),
                    (2, "8MB/s", "4MB/s", {}),
                    (3, "8MB/s", "4MB/s", _SHUFFLED),
                    (4, "4MB/s", "2MB/s", {}),
                )
            ),
        ),
        Suite(
            "gzip-text",
            "case study of §7.5: decoding of compressed text, cores doubled",
            (Sweep("gzip-text", 1, {}, (axis("slots", 1, 2, 4, base=1),)),),
        ),
        Suite(
            "speed",
            "four jobs at half, one and a half, and twice the CPU time for each slot",
            tuple(
                Sweep(name, scale, {}, (axis("slot_cpu_cores", 0.1, 0.2, 0.3, 0.4, base=1),), conf)
                for name, scale, conf in (
                    ("q6", 1, {}),
                    ("q9", 1, _SHUFFLED),
                    ("gzip-text", 1, {}),
                    ("udf", 0.5, {}),
                )
            ),
        ),
        Suite(
            "kinds",
            "one job of each kind, and two or three changes of its resources",
            (
                Sweep("q6", 1, {"disk": "8MB/s"}, (changes({"slots": 4}, {"disk": "2MB/s"}),)),
                Sweep("q18", 0.5, {"network": "30Mbps"}, (changes({"slots": 4}, {"network": "10Mbps"}),), _SHUFFLED),
                Sweep("skew", 0.5, {"network": "50Mbps"}, (changes({"slots": 4}, {"network": "15Mbps"}),)),
                Sweep(
                    "spill",
                    0.5,
                    {"memory": "512m"},
                    (changes({"memory": "2g"}, {"memory": "1g"}, {"slots": 1}),),
                    _SMALL_MEMORY,
                ),
                Sweep("driver", 1, {}, (changes({"slots": 4}, {"slots": 1}),)),
                Sweep("udf", 0.5, {}, (changes({"slots": 4}, {"slots": 1}),)),
            ),
        ),
        Suite(
            "fresh",
            "five jobs that no other suite has; all configurations are only for scoring",
            (
                Sweep("q1", 1, {}, (changes({"slots": 1}, {"slots": 4, "slot_cpu_cores": 0.1}),)),
                Sweep(
                    "q3",
                    0.5,
                    _REMOTE | {"network": "40Mbps"},
                    (changes({"network": "15Mbps"}, {"slots": 4}, {"slots": 1, "network": "120Mbps"}),),
                    _SHUFFLED,
                ),
                Sweep("q21", 0.5, {"disk": "6MB/s"}, (changes({"disk": "2MB/s"}, {"slot_cpu_cores": 0.4}),), _SHUFFLED),
                Sweep("kmeans", 0.5, {}, (changes({"slots": 4}, {"slot_cpu_cores": 0.1}),)),
                Sweep(
                    "partitioned",
                    0.25,
                    _REMOTE | {"network": "60Mbps"},
                    (changes({"network": "20Mbps"}, {"slots": 4}),),
                ),
            ),
        ),
        Suite(
            "blind",
            "four more jobs, run after the last change of the model; all configurations are only for scoring",
            (
                Sweep(
                    "q5",
                    0.5,
                    _REMOTE | {"network": "40Mbps"},
                    (changes({"slots": 4}, {"network": "15Mbps", "slots": 1}),),
                    _SHUFFLED,
                ),
                Sweep("q12", 1, {"disk": "8MB/s"}, (changes({"disk": "3MB/s"}, {"slots": 1}),), _SHUFFLED),
                Sweep("q13", 1, {}, (changes({"slots": 1}, {"slot_cpu_cores": 0.35}),), _SHUFFLED),
                Sweep("sorted", 0.5, {"network": "50Mbps"}, (changes({"slots": 4}, {"network": "150Mbps"}),)),
            ),
        ),
    )
}


def find_suite(name: str) -> Suite:
    """The suite of that name."""
    try:
        return SUITES[name]
    except KeyError:
        raise LabError(f"There is no suite '{name}'; choose one of {', '.join(SUITES)}.") from None
