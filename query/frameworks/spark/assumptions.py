"""Kinds of assumptions of Spark alone."""

from __future__ import annotations

from typing import ClassVar

from crystalperf.indexes.frozen import frozen
from crystalperf.query.results.assumptions import Assumption


@frozen
class StagesNotReplanned(Assumption):
    """Stages keep their recorded tasks, as the user requested; `slots_only` is whether only slots change."""

    kind: ClassVar[str] = "stages-not-replanned"
    slots_only: bool


@frozen
class SamePlan(Assumption):
    """Spark would plan the same tasks; `slots_only` is whether only slots change."""

    kind: ClassVar[str] = "same-plan"
    slots_only: bool


@frozen
class StagesReplanned(Assumption):
    """Spark would replan so many stages; `slots_only` is whether only slots change."""

    kind: ClassVar[str] = "stages-replanned"
    stages: int
    tasks: int
    planned_tasks: int
    slots_only: bool


@frozen
class FilesPerPartition(Assumption):
    """A task writes a shuffle file for each partition."""

    kind: ClassVar[str] = "files-per-partition"


@frozen
class LargeKeyKept(Assumption):
    """These stages, by their ids, keep their tasks, because one reads far more than most and may have one key."""

    kind: ClassVar[str] = "large-key-kept"
    stages: tuple[str, ...]


@frozen
class CpuTimeMissing(Assumption):
    """The log has no CPU time of tasks, only Spark's timings, of which `garbage_ms` is garbage collection."""

    kind: ClassVar[str] = "cpu-time-missing"
    garbage_ms: float


@frozen
class PythonCounted(Assumption):
    """Waiting for a Python worker counts as CPU time."""

    kind: ClassVar[str] = "python-counted"


@frozen
class CheckpointRenewed(Assumption):
    """A stateful query starts from a new checkpoint, because a checkpoint fixes the number of partitions."""

    kind: ClassVar[str] = "checkpoint-renewed"


@frozen
class ProfilesScaled(Assumption):
    """The executors of resource profiles of the program change like all others; `stage` runs on such executors."""

    kind: ClassVar[str] = "profiles-scaled"
    stage: str


@frozen
class ServiceKept(Assumption):
    """A remote shuffle service, by its name, is as fast as recorded."""

    kind: ClassVar[str] = "service-kept"
    service: str
