"""What Flink would do with other slots: not known yet, so it is refused rather than guessed."""

from __future__ import annotations

from indexes.errors import NoAnswerError
from query.frameworks import Planned
from query.model.execution import Execution
from query.model.world import World


def replan(execution: Execution, world: World, _wanted: bool) -> Planned:
    """The run as it was.

    More slots alone change nothing for a job of a given parallelism, and with another parallelism vertices have other
    subtasks.  Raises NoAnswerError where other slots or TaskManagers are asked for.
    """
    for key in ("cores", "workers"):
        if world.ratio(key) != 1:
            word = execution.framework.vocabulary.word_of(key)
            raise NoAnswerError(
                f"{word}: a job of Flink keeps its parallelism, whatever slots there are; what another parallelism"
                " would do is not modelled yet"
            )
    if world.ratio("units") != 1:
        raise NoAnswerError("units: what another parallelism would do is not modelled yet")
    return Planned(execution)
