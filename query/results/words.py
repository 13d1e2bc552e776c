"""The terms of an answer's sentences: the framework's vocabulary, and the names of devices."""

from __future__ import annotations

from dataclasses import field

from crystalperf.indexes.frozen import frozen
from crystalperf.indexes.resources import Resource
from crystalperf.query.trace.vocabulary import Vocabulary


@frozen
class Words:
    """The context of a run that a sentence needs besides its value.

    framework   its name in crystalperf.query.inputs.registry, for kinds that only it has; empty for none
    vocabulary  the framework's words for task, stage, slot, worker and so on
    resources   the run's resources, with the names of their devices
    """

    framework: str = ""
    vocabulary: Vocabulary = field(default_factory=Vocabulary)
    resources: tuple[Resource, ...] = ()

    def device(self, resource: str) -> str:
        """The device of a resource within a sentence, with an article if it needs one: the CPU, disk."""
        found = next(each for each in self.resources if each.name == resource)
        return f"the {found.device}" if found.unit == "speed" else found.device

    def device_name(self, resource: str) -> str:
        """The device of a resource without an article: CPU, disk."""
        return next(each.device for each in self.resources if each.name == resource)
