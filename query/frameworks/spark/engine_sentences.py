"""The sentences on engines that run Spark's operators: their share of the time, and what stayed on the JVM."""

from __future__ import annotations

from crystalperf.query.frameworks.spark import python_sentences, remarks
from crystalperf.query.frameworks.spark.recommendations import RunInEngine
from crystalperf.query.frameworks.spark.sentences import setting_lines
from crystalperf.query.results.sentences import Sentences
from crystalperf.query.results.words import Words
from crystalperf.query.text.figures import percent
from crystalperf.query.trace.amounts import counted, lasting, volume

SENTENCES = Sentences(base=python_sentences.SENTENCES)

_LISTED = 3


@SENTENCES.of(remarks.EngineUse)
def engine_use(found: remarks.EngineUse, _words: Words) -> str:
    rest_ms = found.task_ms - found.engine_ms - found.jvm_ms - found.conversion_ms
    named = [
        (found.engine_ms, f"in {found.engine}"),
        (found.jvm_ms, "in operators on the JVM"),
        (found.conversion_ms, "converting rows and columns"),
        (rest_ms, "starting tasks, or unknown"),
    ]
    shown = [f"{percent(ms, found.task_ms)} {what}" for ms, what in named if ms >= 0.005 * found.task_ms]
    more = f"; its operators spilled {volume(found.spilled_bytes)}" if found.spilled_bytes else ""
    if found.gpu_held_ms:
        more += (
            f"; tasks held a GPU for {lasting(found.gpu_held_ms)}, and waited {lasting(found.gpu_waited_ms)} for one"
        )
    return f"Time of tasks with {found.engine} ({lasting(found.task_ms)}): {', '.join(shown)}{more}"


@SENTENCES.of(RunInEngine)
def run_in_engine(found: RunInEngine, _words: Words) -> str:
    names = ", ".join(found.operators[:_LISTED])
    if len(found.operators) > _LISTED:
        names += f" and {len(found.operators) - _LISTED} more"
    share = percent(found.jvm_share + found.conversion_share, 1.0)
    conversions = ""
    if found.conversion_share >= 0.005:
        conversions = f", of which converting rows and columns {percent(found.conversion_share, 1.0)}"
    others = f"; {counted(found.others, 'more fallback')} like it" if found.others else ""
    cost = f"{share} of the task time of {found.stage} ({found.name}){conversions}{others}"
    if found.reason is None:
        where = "event log" if found.in_event_log else "driver's log"
        why = f"; the {where} says why with the setting below" if found.settings else ""
        return f"Find out why {found.engine} left {names} to the JVM: it takes {cost}{why}"
    return f"Change what keeps {names} on the JVM instead of {found.engine} ({found.reason}): it takes {cost}"


@SENTENCES.lines(RunInEngine)
def run_in_engine_lines(found: RunInEngine, words: Words) -> tuple[str, ...]:
    return setting_lines(found, words) if found.settings else ()
