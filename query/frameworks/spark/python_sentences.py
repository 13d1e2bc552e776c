"""The sentences on Python workers: the parts of their time, and recommendations on the functions of users."""

from __future__ import annotations

from crystalperf.indexes.resources import known
from crystalperf.query.frameworks.spark import plan_sentences, remarks
from crystalperf.query.frameworks.spark.recommendations import (
    LessPythonMemory,
    OfPython,
    ProfilePython,
    ReusePythonWorkers,
    RewritePython,
    SendFewerColumns,
    SpeedUpPython,
    UseArrow,
)
from crystalperf.query.frameworks.spark.sentences import setting_lines
from crystalperf.query.results.sentences import Sentences
from crystalperf.query.results.words import Words
from crystalperf.query.text.figures import percent
from crystalperf.query.text.recommendations import setting_text
from crystalperf.query.trace.amounts import counted, lasting, volume

SENTENCES = Sentences(base=plan_sentences.SENTENCES)

_REST_OF_CALLS = "serialization, waiting and the profiler itself"
"""The time that a profile of calls does not split."""

DUMP = 'spark.profile.dump("profiles", type="perf")'


@SENTENCES.of(remarks.PythonTime)
def python_time(found: remarks.PythonTime, _words: Words) -> str:
    parts = found.parts_ms
    named = [
        (parts.user, f"user code{_hottest(found)}"),
        (parts.serialization, "serialization"),
        (parts.start, "starting workers"),
        (parts.jvm, "the JVM"),
        (parts.wait, "waiting" if parts.serialization is not None else _REST_OF_CALLS),
    ]
    shown = [f"{percent(ms, parts.whole)} {what}" for ms, what in named if ms and ms >= 0.005 * parts.whole]
    others = f"; the view spark_python has {counted(found.others, 'more stage')}" if found.others else ""
    return f"Python workers of {found.stage} ({lasting(parts.whole)} of task time): {', '.join(shown)}{others}"


def _hottest(found: remarks.PythonTime) -> str:
    if found.function is None:
        return ""
    where = f", {found.where}" if found.where else ""
    return f" (most in `{found.function}`{where}{_uses(found)})"


def _uses(found: remarks.PythonTime) -> str:
    """The resources with a noticeable share in the user's code, by the labels of indexes."""
    device = {each.name: each.device for each in known()}
    shown = [
        f"{percent(each.share, 1.0)} {device.get(each.resource, each.resource)}"
        for each in found.user_uses
        if each.share >= 0.05
    ]
    return f"; by indexes, user code is {', '.join(shown)}" if shown else ""


@SENTENCES.of(remarks.PythonMemory)
def python_memory(found: remarks.PythonMemory, _words: Words) -> str:
    where = f", most at {found.where}" if found.where else ""
    limit = f"; its limit is {volume(found.limit_bytes)}" if found.limit_bytes else ""
    return (
        f"Memory of a Python worker of {found.stage} in `{found.function}`: {volume(found.start_bytes)} at the start,"
        f" at most {volume(found.most_bytes)} (means of {counted(found.calls, 'call')}){where}"
        f" (+{volume(found.grown_bytes * found.calls)} in all calls){limit}"
    )


def _share(found: OfPython) -> str:
    return f"{percent(found.share, 1.0)} of the task time of {found.stage} ({found.name})"


@SENTENCES.of(SpeedUpPython)
def speed_up_python(found: SpeedUpPython, _words: Words) -> str:
    where = f" ({found.where})" if found.where else ""
    how = ", or replace it with Spark SQL functions" if found.vectorizes else ""
    return f"Make `{found.function}`{where} faster{how}: user code takes {_share(found)}"


@SENTENCES.of(RewritePython)
def rewrite_python(found: RewritePython, _words: Words) -> str:
    what = f"`{found.function}`" if found.function else "the Python function"
    return (
        f"Replace {what} with Spark SQL functions, or make it a pandas_udf: it takes one row at a time, and"
        f" serialization takes {_share(found)}"
    )


@SENTENCES.of(UseArrow)
def use_arrow(found: UseArrow, _words: Words) -> str:
    return f"{setting_text(found.settings[0])}: by pickle, serialization takes {_share(found)}"


@SENTENCES.lines(UseArrow)
def use_arrow_lines(found: UseArrow, words: Words) -> tuple[str, ...]:
    return (*setting_lines(found, words), "# or for one function: @udf(returnType=…, useArrow=True)")


@SENTENCES.of(SendFewerColumns)
def send_fewer_columns(found: SendFewerColumns, _words: Words) -> str:
    sent = f" of {volume(found.sent_bytes)}" if found.sent_bytes else ""
    return f"Select only the columns that the Python function uses: serialization{sent} takes {_share(found)}"


@SENTENCES.lines(SendFewerColumns)
def select_columns(_found: SendFewerColumns, _words: Words) -> tuple[str, ...]:
    return ('df = df.select("key", "value")  # before applyInPandas, mapInPandas …',)


@SENTENCES.of(LessPythonMemory)
def less_python_memory(found: LessPythonMemory, _words: Words) -> str:
    where = f" ({found.where})" if found.where else ""
    how = ", or send it fewer rows at a time" if found.settings else ""
    how = ", or make its groups smaller" if found.by_groups else how
    return (
        f"Use less memory in `{found.function}`{where}{how}: {counted(found.calls, 'call')} added"
        f" {volume(found.grown_bytes * found.calls)} to Python workers, which then had {volume(found.most_bytes)} on"
        " average"
    )


@SENTENCES.lines(LessPythonMemory)
def less_python_memory_lines(found: LessPythonMemory, words: Words) -> tuple[str, ...]:
    return setting_lines(found, words)


@SENTENCES.of(ReusePythonWorkers)
def reuse_python_workers(found: ReusePythonWorkers, _words: Words) -> str:
    return f"{setting_text(found.settings[0])}: starting Python workers takes {_share(found)}"


@SENTENCES.lines(ProfilePython)
def profile_lines(found: ProfilePython, words: Words) -> tuple[str, ...]:
    """The setting, and for a profiler of sessions the call that writes the profiles."""
    lines = setting_lines(found, words)
    return (*lines, f"{DUMP}  # at the end") if any(each.after == "perf" for each in found.settings) else lines
