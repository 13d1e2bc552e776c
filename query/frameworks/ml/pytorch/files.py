"""Recognition of traces of PyTorch's profiler, and of those that make one run.

Traces of one folder are one run if each is of another rank of the same scenario size.  A schedule that repeats writes a
trace for each cycle: each cycle is a run, and the newest is the default.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import replace

from crystalperf.indexes.regex import regex
from crystalperf.query.frameworks.ml.training.chrome import is_json
from crystalperf.query.frameworks.ml.training.files import application
from crystalperf.query.inputs.files import Application, Head, LogPart
from crystalperf.query.trace.records import Problems

_EVENTS = regex(rb'"traceEvents"\s*:')
_OURS = regex(
    rb'"(?:distributedInfo|deviceProperties|record_shapes)"\s*:|"aten::|"PyTorch Profiler|"ProfilerStep#'
    rb'|"cat"\s*:\s*"(?:cpu_op|user_annotation|cuda_runtime|kernel|python_function|Operator)"|"computeProperties"\s*:'
)
_NOT_OURS = regex(rb'"Ascend Hardware"|"async_npu"|"HostToDevice|"CANN"|"pid"\s*:\s*"(?:CPU|CUDA) functions"')
"""Lists of events that other profilers write under PyTorch's categories."""
_RANK = regex(rb'"distributedInfo"\s*:\s*\{[^{}]{0,400}?"rank"\s*:\s*(?P<rank>\d{1,7})')
_WORLD_SIZE = regex(rb'"distributedInfo"\s*:\s*\{[^{}]{0,400}?"world_size"\s*:\s*(?P<size>\d{1,7})')


SAYS_NOTHING = regex(r"(?:rank|trace|worker|profile|profiler|pytorch|torch)?[_-]?\d*\.", re.IGNORECASE)
"""File names that many trainings have."""


def recognise(head: Head) -> LogPart | None:
    """A trace of PyTorch's profiler, by its beginning."""
    text = head.text
    if not is_json(text) or _OURS.search(text) is None:
        return None
    if _EVENTS.search(text) is None and (text.lstrip()[:1] != b"[" or _NOT_OURS.search(text) is not None):
        return None
    facts: dict[str, int | None] = {}
    for name, pattern in (("rank", _RANK), ("size", _WORLD_SIZE)):
        found = pattern.search(text)
        if found is not None:
            facts[name] = int(found[1])
    return LogPart(head.part, head.folder, head.name, head.size, facts=facts)


def gather(parts: Sequence[LogPart], problems: Problems) -> list[Application]:
    """Traces of one folder, each of another rank, are one run; so are those of each cycle of the profiler's schedule.

    Any other trace is a run by itself.
    """
    alike: dict[tuple[str, object], list[LogPart]] = {}
    for each in parts:
        size = each.facts.get("size")
        alike.setdefault((each.folder, size if size else _without_numbers(each)), []).append(each)
    found = []
    for several in alike.values():
        cycles = _cycles(several)
        if len(cycles) == 1:
            found.append(application("pytorch", cycles[0]))
        elif cycles:
            found += _of_cycles(cycles, problems)
        else:
            found += [application("pytorch", [each]) for each in several]
    return _named_by_folder(found) if len(found) == 1 else found


def _named_by_folder(found: Sequence[Application]) -> list[Application]:
    """Runs whose file's name says nothing (`rank0.pt.trace.json.gz`) have the name of its folder."""
    named = []
    for each in found:
        folder, _, name = os.path.abspath(each.log.origin).rpartition("/")
        own = os.path.basename(folder)
        if own and len(each.log.parts) == 1 and SAYS_NOTHING.match(name):
            app_id = re.sub(r"[^\w.-]+", "-", own)
            each = replace(each, app_id=app_id, log=replace(each.log, app_id=app_id))
        named.append(each)
    return named


def _without_numbers(part: LogPart) -> str:
    return re.sub(r"\d+", "#", part.name)


def _natural(part: LogPart) -> tuple[str | int, ...]:
    """A sort key that orders names by the numbers in them."""
    return tuple(int(each) if each.isdigit() else each for each in re.split(r"(\d+)", part.name))


def _cycles(several: Sequence[LogPart]) -> list[list[LogPart]]:
    """The traces of each cycle, the oldest first, by rank; empty if they are not of one training.

    Traces of several cycles have the same name but for its numbers, and each rank has one of each cycle.
    """
    by_rank: dict[int | None, list[LogPart]] = {}
    for each in sorted(several, key=_natural):
        by_rank.setdefault(each.facts.get("rank"), []).append(each)
    count = {len(each) for each in by_rank.values()}
    if len(count) > 1 or (None in by_rank and len(by_rank) > 1):
        return []
    ranks = sorted(by_rank, key=lambda rank: rank or 0)
    if count != {1} and len({_without_numbers(each) for each in several}) > 1:
        return []
    return [[by_rank[rank][cycle] for rank in ranks] for cycle in range(count.pop())]


def _of_cycles(cycles: Sequence[Sequence[LogPart]], problems: Problems) -> list[Application]:
    """A run of each cycle, as attempts of one application, so that the newest is the default."""
    folder = cycles[0][0].folder
    app_id = re.sub(r"[^\w.-]+", "-", os.path.basename(folder.rstrip("/"))) or "training"
    newest = cycles[-1][0].name
    meaning = (
        f"the folder has {len(cycles)} cycles of one training: the newest is used ({newest}), and {app_id}/N selects"
        f" another, N from 1 to {len(cycles)}"
    )
    problems.add("several cycles", "data loss", folder, None, meaning)
    return [
        replace(application("pytorch", list(members)), app_id=app_id, attempt=str(number))
        for number, members in enumerate(cycles, 1)
    ]
