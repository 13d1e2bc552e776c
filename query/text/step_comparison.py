"""Sentences of the parts that only runs of repeated steps have."""

from __future__ import annotations

from crystalperf.query.results import step_parts as results
from crystalperf.query.results.words import Words
from crystalperf.query.text.comparison import operator_words
from crystalperf.query.text.figures import TimeUnit
from crystalperf.query.text.sentences import CORE
from crystalperf.query.trace.amounts import volume


def _instead(before_ms: float, after_ms: float) -> str:
    """Two times of a step."""
    unit = TimeUnit("ms", 1.0, 2 if max(before_ms, after_ms) < 20 else 1)
    return f"{unit.text(after_ms)} instead of {unit.text(before_ms)}"


@CORE.of(results.ChangedBatch)
def changed_batch(part: results.ChangedBatch, _words: Words) -> str:
    word = "larger" if part.after > part.before else "smaller"
    return f"{word} batch: {part.after:.0f} instead of {part.before:.0f} examples"


@CORE.of(results.ChangedAccelerator)
def changed_accelerator(part: results.ChangedAccelerator, _words: Words) -> str:
    return f"{part.after} instead of {part.before}: kernels take {_instead(part.before_ms, part.after_ms)}"


@CORE.of(results.ChangedPrecision)
def changed_precision(part: results.ChangedPrecision, _words: Words) -> str:
    times = _instead(part.before_ms, part.after_ms)
    return f"{part.after} numbers instead of {part.before}: kernels take {times}"


@CORE.of(results.KernelTime)
def kernel_time(part: results.KernelTime, _words: Words) -> str:
    return f"kernels of the same work: {_instead(part.before_ms, part.after_ms)}"


@CORE.of(results.ChangedOperators)
def changed_operators(part: results.ChangedOperators, _words: Words) -> str:
    operators = operator_words([each for each in part.operators if not (each.before and each.after)], count=False)
    often = operator_words([each for each in part.operators if each.before and each.after], count=False)
    facts = [each for each in (operators, often.replace("added:", "more:").replace("gone:", "fewer:")) if each]
    return ", ".join(("other operators", "; ".join(facts))) if facts else "other operators"


@CORE.of(results.ChangedShapes)
def changed_shapes(part: results.ChangedShapes, _words: Words) -> str:
    return f"kernels of the same number with {part.ratio:.2f} times the work: other shapes"


@CORE.of(results.HostTime)
def host_time(part: results.HostTime, words: Words) -> str:
    return f"threads of {words.vocabulary.counted}, for the same operators: {_instead(part.before_ms, part.after_ms)}"


@CORE.of(results.Communication)
def communication(part: results.Communication, _words: Words) -> str:
    facts = [f"exchanges with other processes, not hidden: {_instead(part.before_ms, part.after_ms)}"]
    if part.before_bytes and part.after_bytes:
        facts.append(f"{volume(part.after_bytes)} instead of {volume(part.before_bytes)}")
    if part.before_processes and part.after_processes and part.before_processes != part.after_processes:
        facts.append(f"{part.after_processes:.0f} instead of {part.before_processes:.0f} processes")
    return "; ".join(facts)


@CORE.of(results.LoaderWait)
def loader_wait(part: results.LoaderWait, _words: Words) -> str:
    return f"waiting for the next batch of input: {_instead(part.before_ms, part.after_ms)}"


@CORE.of(results.Copies)
def copies(part: results.Copies, _words: Words) -> str:
    return f"copies between process and accelerator: {_instead(part.before_ms, part.after_ms)}"


@CORE.of(results.Overlap)
def overlap(part: results.Overlap, _words: Words) -> str:
    word = "less" if part.ms > 0 else "more"
    return f"{word} work at the same time; all operators together take {_instead(part.before_ms, part.after_ms)}"
