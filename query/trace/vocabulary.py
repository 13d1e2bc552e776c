"""The vocabulary of a framework, and the kinds of its errors: basic values that all packages may import."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Literal

from crystalperf.indexes.frozen import frozen

SettingUnit = Literal["count", "speed", "bytes", "bytes per second", "times", "seconds", "choice"]
"""The unit of a what-if setting."""

Exhausted = Literal["container", "heap", "device", "delegate", "killed"]
"""The thing that ran out of memory.

container   the limit of a worker and all its processes
heap        the memory that its process manages itself
device      the memory of a device such as a GPU
delegate    the memory of a process that computes for tasks
killed      a worker was killed from outside, as happens at its container's limit; the log does not state the reason
"""


def plural(noun: str) -> str:
    """`workers`, `queries`, `processes`, `vertices`."""
    if noun.endswith("ex"):
        return f"{noun[:-2]}ices"
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        return f"{noun[:-1]}ies"
    return f"{noun}{'es' if noun.endswith(('s', 'x', 'ch', 'sh')) else 's'}"


def either(words: Sequence[str]) -> str:
    """`a log`, `a log or a trace`, `a log, a trace or a timeline`."""
    return " or ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


def with_article(noun: str) -> str:
    """`a worker`, `an operator`."""
    return f"{'an' if noun[:1] in 'aeiou' else 'a'} {noun}"


@frozen
class Vocabulary:
    """A framework's words for worker, slot, stage, task, driver and scope of the trace contract.

    `scopes` are its kinds of scopes, the one that users know best first.  `settings` are its words for the settings of
    a what-if; the first word of a setting is shown.  `exchanged_data` is the data that tasks read from each other;
    `upstream` is what they wait for while others work, tasks of other stages if it is empty; `delegate` is a process
    that computes for tasks, if the framework has such processes; `driver_work` is what the driver does while no
    task runs; `log` names its log, with the article, and `log_hint` says where users find it.
    """

    worker: str = "worker"
    slot: str = "slot"
    stage: str = "stage"
    task: str = "task"
    driver: str = "driver"
    driver_work: str = ""
    scope: str = "scope"
    scopes: tuple[str, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    exchanged_data: str = "data that tasks read of each other"
    upstream: str = ""
    delegate: str = ""
    log: str = "a log"
    log_hint: str = ""

    @property
    def workers(self) -> str:
        return plural(self.worker)

    @property
    def slots(self) -> str:
        return plural(self.slot)

    @property
    def stages(self) -> str:
        return plural(self.stage)

    @property
    def tasks(self) -> str:
        return plural(self.task)

    @property
    def counted(self) -> str:
        """The things that the setting of workers counts: for a training its processes, which may have more devices."""
        word = self.word_of("workers")
        return self.workers if word.casefold() in ("workers", self.workers.casefold()) else word

    def word_of(self, setting: str) -> str:
        """The framework's word for a setting."""
        return next((word for word, key in self.settings.items() if key == setting), setting)
