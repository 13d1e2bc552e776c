"""Recognition of traces of PyTorch's profiler, and of those that make one run.

Traces of one folder are one run if each is of another rank of the same scenario size.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from crystalperf.query.frameworks.ml.training.chrome import is_json
from crystalperf.query.frameworks.ml.training.files import application
from crystalperf.query.inputs.files import Application, Head, LogPart
from crystalperf.query.trace.records import Problems

_EVENTS = re.compile(rb'"traceEvents"\s*:')
_OURS = re.compile(
    rb'"(?:distributedInfo|deviceProperties|record_shapes)"\s*:|"aten::|"PyTorch Profiler|"ProfilerStep#'
    rb'|"cat"\s*:\s*"(?:cpu_op|user_annotation|cuda_runtime|kernel|python_function|Operator)"|"computeProperties"\s*:'
)
_NOT_OURS = re.compile(rb'"Ascend Hardware"|"async_npu"|"HostToDevice|"CANN"|"pid"\s*:\s*"(?:CPU|CUDA) functions"')
"""Lists of events that other profilers write under PyTorch's categories."""
_RANK = re.compile(rb'"distributedInfo"\s*:\s*\{[^{}]{0,400}?"rank"\s*:\s*(?P<rank>\d{1,7})')
_WORLD_SIZE = re.compile(rb'"distributedInfo"\s*:\s*\{[^{}]{0,400}?"world_size"\s*:\s*(?P<size>\d{1,7})')


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


def gather(parts: Sequence[LogPart], _problems: Problems) -> list[Application]:
    """Traces of one folder, each of another rank, are one run; any other trace is a run by itself."""
    alike: dict[tuple[str, object], list[LogPart]] = {}
    for each in parts:
        size = each.facts.get("size")
        alike.setdefault((each.folder, size if size else re.sub(r"\d+", "#", each.name)), []).append(each)
    found = []
    for several in alike.values():
        ranks = [each.facts.get("rank") for each in several]
        together = len(several) > 1 and None not in ranks and len(set(ranks)) == len(ranks)
        for members in [several] if together else [[each] for each in several]:
            ordered = sorted(members, key=lambda each: (each.facts.get("rank") or 0, each.name))
            found.append(application("pytorch", ordered))
    return found
