"""In whose words a run's findings are told: its framework's for what ran, its resources' for devices."""

from __future__ import annotations

from dataclasses import dataclass, field

from crystalperf.indexes.resources import Resource
from crystalperf.query.frameworks import Advisor, Vocabulary
from crystalperf.query.model.execution import Execution


@dataclass(frozen=True)
class Terms:
    """What a rule needs of a run to be told in its own words; `rules` is what its framework knows to advise."""

    words: Vocabulary
    resources: tuple[Resource, ...]
    rules: Advisor = field(default_factory=Advisor)

    def device(self, name: str) -> str:
        """What a reader calls the device of a resource, within a sentence: the CPU, disk."""
        device = next(each for each in self.resources if each.name == name)
        return f"the {device.device}" if device.unit == "speed" else device.device

    def name(self, name: str) -> str:
        """The same without an article: CPU, disk."""
        return next(each.device for each in self.resources if each.name == name)

    def advice(self, rule: str, neutral: str) -> str:
        """What the framework advises for a rule's findings, else what holds of any."""
        return self.rules.advice.get(rule, neutral)


def terms_of(execution: Execution) -> Terms:
    """The terms of a run."""
    framework = execution.framework
    return Terms(framework.vocabulary, execution.resources, framework.advisor or Advisor())
