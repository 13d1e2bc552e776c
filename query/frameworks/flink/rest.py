"""A client of a JobManager's REST interface, and the types of its pages."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from crystalperf.indexes.errors import InputError
from crystalperf.query.inputs.rest import Server
from crystalperf.query.trace.records import shortened

NOT_FLINK = "responds, but not like a JobManager; give the address of the JobManager's web page"

MAX_VERTICES = 2_000
MAX_PARALLELISM = 1 << 15
"""Flink's own maximum."""

MAX_SUBTASKS = 1 << 16
"""Maximum subtasks of all vertices."""

Id = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{32}$")]


class JobVertex(msgspec.Struct):
    """A vertex on a job's page."""

    id: Id
    parallelism: Annotated[int, msgspec.Meta(le=MAX_PARALLELISM)] = 1


class Job(msgspec.Struct):
    """A job's own page."""

    vertices: Annotated[list[JobVertex], msgspec.Meta(max_length=MAX_VERTICES)]
    state: str = ""


class ListedJob(msgspec.Struct, rename={"start_ms": "start-time"}):
    """A job in the list of jobs."""

    jid: str = ""
    name: str | None = None
    state: str = ""
    start_ms: float | None = None


class Jobs(msgspec.Struct):
    jobs: list[ListedJob] = []


class Subtask(msgspec.Struct):
    """A subtask on the page of its vertex."""

    subtask: Annotated[int, msgspec.Meta(ge=0, lt=MAX_PARALLELISM)] = 0
    attempt: Annotated[int, msgspec.Meta(ge=0, lt=1 << 31)] = 0


class Vertex(msgspec.Struct):
    """The page of a vertex."""

    subtasks: Annotated[list[Subtask], msgspec.Meta(max_length=MAX_PARALLELISM)] = []


class Attempt(msgspec.Struct):
    """The page of an attempt."""

    status: str = ""


class Capacity(msgspec.Struct, rename={"cores": "cpuCores", "managed_bytes": "managedMemory"}):
    cores: float | None = None
    managed_bytes: float | None = None


class TaskManager(msgspec.Struct, rename={"slots": "slotsNumber", "stated": "totalResource"}):
    """A TaskManager in the list of them."""

    id: str
    slots: float | None = None
    hardware: Capacity | None = None
    stated: Capacity | None = None


class TaskManagers(msgspec.Struct):
    taskmanagers: Annotated[list[TaskManager], msgspec.Meta(max_length=10_000)] = []


class Overview(msgspec.Struct, rename={"version": "flink-version"}):
    """The page of the cluster."""

    version: str | None = None


class Metric(msgspec.Struct):
    """A metric in a list: its name, and its value or sum, which Flink writes as text or as a number."""

    id: str
    value: Any = None
    sum: Any = None


class Rest(Server):
    """A JobManager, by the address of its web page."""

    def text(self, page: str) -> str:
        """The text of a page.  Raises InputError if it does not exist or the server does not respond."""
        return self.fetched(page).decode("utf-8", "replace")

    def job(self, page: str) -> tuple[str, Job]:
        """The page of a job, as text and typed.  Raises InputError, also for more subtasks than MAX_SUBTASKS."""
        text = self.fetched(page)
        found = self.as_type(page, text, Job)
        if sum(each.parallelism for each in found.vertices) > MAX_SUBTASKS:
            raise self.unlike(page, f"the job has more than {MAX_SUBTASKS} subtasks")
        return text.decode("utf-8", "replace"), found

    def unlike(self, page: str, why: str) -> InputError:
        """The error for a page of another shape."""
        return InputError(f"{self.address}{page}: {NOT_FLINK} ({why})")

    def silent(self, reason: str) -> InputError:
        """The error for a server that does not respond."""
        return InputError(
            f"{self.address}: no JobManager responds there ({shortened(reason)}); give the address of its web page"
        )
