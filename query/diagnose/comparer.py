"""The extension point of a framework's package for comparing runs: the settings and operators that matter."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal

Effect = Literal["plan", "tasks", "memory", "slots", "compute", "none"]
"""The effect of a setting.

plan     other operators, or another order of them
tasks    another number of tasks for the same data
memory   more or less memory for tasks
slots    another number of slots, or another use of them
compute  another cost of the same work, such as a codec
none     no effect on times
"""


@dataclass(frozen=True)
class Comparer:
    """A framework's part in comparing runs.  All of it is optional.

    settings   the effects of settings by key, or by the beginning of keys that ends with a dot; others have no known
               effect, and come last
    adapters   names of operators that a plan has or lacks by the size of the data, without other work
    measured   whether the other properties of a run are measurements of its log, not settings
    """

    settings: Mapping[str, tuple[Effect, ...]] = field(default_factory=dict)
    adapters: Collection[str] = ()
    measured: bool = False

    def is_setting(self, key: str) -> bool:
        """Whether a property of a run is a setting."""
        return not self.measured or bool(self.effects(key))

    def effects(self, key: str) -> tuple[Effect, ...]:
        """The effects of a setting; empty if none is known."""
        if key in self.settings:
            return self.settings[key]
        return next(
            (found for known, found in self.settings.items() if known.endswith(".") and key.startswith(known)), ()
        )
