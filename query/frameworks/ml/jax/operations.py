"""Operations of a host thread in a JAX program, from its nested events.

    ynn_fusion.3                    an operator of XLA on the CPU, named after its HLO instruction
    PjitFunction(step)              JAX submits a compiled function
    ThunkExecutor::Execute          the runtime's own work
    $train.py:15 batch              a Python function, if the profiler traced these
    $api.py:2479 block_until_ready  waiting for submitted work

At each moment the innermost event is the thread's activity.  An event that waits is not an operator, whatever contains
it.  Time before the profiler had started, which may take seconds, or after it was stopped is the profiler's own.
"""

from __future__ import annotations

from collections.abc import Iterator

from crystalperf.indexes.regex import regex
from crystalperf.query.frameworks.ml.tensorflow.xplane import Line, Traced
from crystalperf.query.frameworks.ml.training.calls import device_of
from crystalperf.query.frameworks.ml.training.nesting import innermost
from crystalperf.query.frameworks.ml.training.program import Operation

_SHORTEST_MS = 0.05
"""Shorter Python functions count as a part of their callers."""

_MARK = regex(r"ThreadpoolListener::|end: |ThunkExecutor::Execute \(wait")
_WAITS = regex(
    r"block_until_ready|try_to_block|BlockHost|SequencingEvent|[Aa]wait|\b[Ww]ait|[Ss]ynchronize|WaitEvent"
    r"|\$\S*profiler\.py|_value$|__array__$|\b(?:sleep|acquire|recv|select|poll|join)$"
)
_PYTHON = regex(r"\$(?P<place>\S+) (?P<name>.+)")
_ON_CPU = regex(r"Thunk|Cpu|PjitFunction|Eigen|Execute|Enqueue|command_buffer::|Launch|XLA GPU module")
_STARTS, _STOPS = (regex(rf"\$\S*profiler\.py:\d+ {word}_trace") for word in ("start", "stop"))
_NUMBER = regex(r"\.\d+$")
_COLLECTIVE = regex(r"(?:all-(?:reduce|gather|to-all)|reduce-scatter|collective-)")
_INSTRUCTION = regex(r"[a-z][\w.-]*")
_XLA_THREAD = "tf_XLA"


def of_line(process: str, line: Line) -> Iterator[Operation]:
    """The operations of a thread in order of time, without overlap."""
    runs_xla = line.name.startswith(_XLA_THREAD)

    def is_operator(each: Traced) -> bool:  # the trace viewer's file does not record it
        return "hlo_op" in each.stats or (runs_xla and _INSTRUCTION.fullmatch(each.name) is not None)

    begun = max((each.end_ms for each in line.events if _STARTS.match(each.name)), default=float("-inf"))
    stopped = min((each.start_ms for each in line.events if _STOPS.match(each.name)), default=float("inf"))
    of_program = [each for each in line.events if _counts(each) and each.end_ms > begun and each.start_ms < stopped]
    for within, start_ms, end_ms in innermost(of_program, is_operator):
        each = within[-1]
        if end_ms <= start_ms or "step_num" in each.stats or _WAITS.search(each.name):
            continue
        if is_operator(each):
            operator, module = _NUMBER.sub("", each.name), each.stats.get("hlo_module")
            kind, likely = ("collective", "") if _COLLECTIVE.match(operator) else ("op", "cpu")
            yield Operation(
                process, start_ms, end_ms, operator, each.name, likely=likely, kind=kind, module=module
            )  # fmt: skip
        elif (python := _PYTHON.fullmatch(each.name)) is not None:
            name, place = python["name"], python["place"]
            on = device_of(place, name) or "cpu"  # the place of a C function is its module
            yield Operation(process, start_ms, end_ms, name, name, likely=on, kind="python", place=place)
        else:
            likely = "cpu" if _ON_CPU.search(each.name) else ""
            yield Operation(process, start_ms, end_ms, each.name, each.name, likely=likely, kind="runtime")


def _counts(each: Traced) -> bool:
    """Whether an event has a duration and is neither a mark nor a very short function."""
    length_ms = each.end_ms - each.start_ms
    if length_ms <= 0 or _MARK.match(each.name) is not None:
        return False
    return not each.name.startswith("$") or length_ms >= _SHORTEST_MS
