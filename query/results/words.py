"""The terms in which an answer is written: its framework's for what ran, its resources' for devices."""

from __future__ import annotations

from dataclasses import dataclass, field

from crystalperf.indexes.resources import Resource
from crystalperf.query.trace.vocabulary import Vocabulary


@dataclass(frozen=True)
class Words:
    """What a sentence needs to know of a run besides the value that it is about.

    framework   its name in crystalperf.query.inputs.registry, for kinds that only it has; empty for none
    vocabulary  what it calls a unit, a group, a lane, a worker
    resources   what the run's resources are called
    """

    framework: str = ""
    vocabulary: Vocabulary = field(default_factory=Vocabulary)
    resources: tuple[Resource, ...] = ()

    def device(self, resource: str) -> str:
        """The device of a resource within a sentence, with an article where it needs one: the CPU, disk."""
        found = next(each for each in self.resources if each.name == resource)
        return f"the {found.device}" if found.unit == "speed" else found.device

    def device_name(self, resource: str) -> str:
        """The device of a resource without an article: CPU, disk."""
        return next(each.device for each in self.resources if each.name == resource)
