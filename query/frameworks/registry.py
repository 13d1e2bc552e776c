"""The registry of installed frameworks, each in full."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import TypedDict

from crystalperf.query.frameworks import Framework
from crystalperf.query.inputs.registry import find, installed

Amount = str | int | float
"""The value of a setting: `2x` (a ratio), `4`, `8GB`, `none`."""


class Settings(TypedDict, total=False):
    """The settings that Run.predict() and Run.sweep() take as keywords, for editors and type checkers.

    All others are written as text: names with a dot (`predict("device.gpu=2x")`) and those of other packages.
    """

    # every framework
    workers: Amount
    cores: Amount
    memory: Amount
    cpu_speed: Amount
    disk: Amount
    network: Amount
    input: Amount
    tasks: Amount
    skew: Amount
    scheduler: Amount
    # streams
    rate: Amount
    trigger: Amount
    # Spark
    executors: Amount
    partitions: Amount
    # Flink
    taskmanagers: Amount
    slots: Amount
    parallelism: Amount
    # trainings
    processes: Amount
    ranks: Amount
    lanes: Amount
    batch: Amount
    operators: Amount
    device: Amount
    precision: Amount


def frameworks() -> MutableMapping[str, Framework]:
    """All known frameworks by name."""
    return installed()


def get(name: str) -> Framework:
    """A framework by name.  Raises InputError if no framework has that name."""
    found: Framework = find(name)
    return found
