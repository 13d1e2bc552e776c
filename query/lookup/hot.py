"""Hot functions: sampled time of functions on a run's critical path, by their names in stacks."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from crystalperf.indexes.errors import NoAnswerError
from crystalperf.indexes.frozen import frozen
from crystalperf.indexes.regex import regex

if TYPE_CHECKING:
    from crystalperf.query.run import Run

_STACKS = """
    WITH times AS (
        SELECT stack_id, stage_id, sum(weight_ms) AS time_ms
        FROM samples JOIN tasks USING (task_id)
        WHERE weight_ms > 0 AND list_contains(?, stage_id)
        GROUP BY ALL
    )
    SELECT frames, list(stage_id ORDER BY stage_id), list(time_ms ORDER BY stage_id)
    FROM times JOIN stacks USING (stack_id)
    GROUP BY stack_id, frames
    ORDER BY stack_id
"""

_LINE = regex(r":\d+$")
_MADE = regex(r"\$?\$anonfun\$|\$\$anon\$\d+|\$\d+(?=$|\.)|\$lambda\$|\$+$")
"""Parts of names that compilers generate: for closures and anonymous classes."""


@frozen
class Heat:
    """Task time of samples with a function in their stack, in ms; its share of all time sampled on the path; and the
    stages, the most time first."""

    time_ms: float
    share: float
    stages: tuple[str, ...]


@frozen
class HotPath:
    """Functions in the stages on a run's critical path, by plain_name()."""

    functions: dict[str, Heat]
    sampled_ms: float

    def heat(self, qualified_name: str) -> Heat | None:
        """The heat of a function; None if no sample on the path has it."""
        return self.functions.get(plain_name(qualified_name))


def hot_path(run: Run) -> HotPath:
    """The functions on a run's critical path.  Raises NoAnswerError for a run without samples."""
    on_path = sorted({each.id for each in run.debug().critical_path})
    with run.reading() as connection:  # a long run has more stacks than sql() returns
        found = connection.execute(_STACKS, [on_path]).fetchall()
    if not found:
        raise NoAnswerError(f"{run.path.stem}: has no samples on its critical path, so its hot functions are unknown")
    times: dict[str, float] = defaultdict(float)
    stages: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    whole_ms = 0.0
    for frames, of_stages, times_ms in found:
        whole_ms += sum(times_ms)
        for name in {plain_name(_LINE.sub("", frame)) for frame in frames}:
            times[name] += sum(times_ms)
            for stage, time_ms in zip(of_stages, times_ms, strict=True):
                stages[name][stage] += time_ms
    functions = {
        name: Heat(ms, ms / whole_ms, tuple(sorted(stages[name], key=lambda each: -stages[name][each])))
        for name, ms in times.items()
    }
    return HotPath(functions, whole_ms)


def plain_name(name: str) -> str:
    """A function's name in a form common to source and stacks: nested types by dots, without compilers' additions.

    A closure counts for its enclosing function, an object for the class of its name.
    """
    plain = _MADE.sub(".", name.replace(".<lambda>", "")).replace("$", ".")
    return ".".join(each for each in plain.split(".") if each and each not in ("<anonymous>", "<lambda>"))
