"""Errors of Spark and its cluster managers: the line with the cause, and the kind of failure.

Texts: org.apache.spark.TaskEndReason and scheduler.ExecutorLossReason, DAGScheduler and TaskSetManager for jobs and
stages, YarnAllocator and ExecutorPodsLifecycleManager for containers, Spark 1.3 to 4.1.
"""

from __future__ import annotations

import json
import re

from crystalperf.indexes.regex import regex
from crystalperf.query.trace.records import shortened
from crystalperf.query.trace.vocabulary import Exhausted

_MAX_READ = 1 << 18  # characters of one error, stacks and all
_MAX_READ_OF_LOSS = 4000

_LOST_TASK = regex(r"Lost task \S{1,40} in stage \S{1,40} \(TID \d{1,18}(?:, [^)\n]*)?\)(?: \([^)\n]*\))?: ")
_LOST_EXECUTOR = regex(r"ExecutorLostFailure(?: \([^)\n]*\)(?: Reason)?)?: ")
_TRACEBACK = regex(r"\bTraceback \(most recent call last\):\n(?:[ \t][^\n]*\n|\n){0,5000}(?=\S)([^\n]*)")
_CALLED = regex(r"\bPy4JJavaError: An error occurred while calling \S{1,200}$")
_THROWN = regex(r"\s{0,10}\n: ")
_FETCHING = regex(r"[\w.]{0,80}\bFetchFailedException\b")
_CAUSED_BY = regex(r"^Caused by: ([^\n]*(?:\n(?!\s+at |\s*\.{3} |Caused by:)[^\n]*)?)", re.MULTILINE)
_PACKAGE = regex(r"^(?:[\w$-]+\.)+(?=[A-Z_$])")
_BARE_CLASS = regex(r"[\w.$-]*")
_NEXT_SENTENCE = regex(r"(?<=[\w\])}'\"`])\.\s+(?=[A-Z\[])")
_PARAMETER = regex(r"<(\w+)>")
_SQLSTATE = regex(r"[. ]*\bSQLSTATE: ?\w{5}$")
_MIN_INFORMATIVE = 12  # characters of a first sentence
# The rest of an executor's loss reason is advice, or the whole output of its process.
_REST_OF_LOSS = regex(
    r" ?\.? ?(Diagnostics:|Driver stacktrace:|Possible causes:|Consider (boosting|increasing)|The API gave the"
    r"|Check driver logs).*"
)

_RELEASED = regex(
    r"exited from explicit termination request|^executor killed by driver|^executor idle|dynamic allocation"
    r"|finished decommissioning|decommission.*(spark )?scale down|^application (finished|ended|killed|stopped)"
    r"|^driver (stopped|requested)|sparkcontext (was )?(shut ?down|stopped)",
    re.IGNORECASE,
)
_CALLED_OFF = regex(
    r"cancelled part of cancelled job (group|tag)|cancelled by (the )?(user|request)|killed via the web ui"
    r"|was stopped\b|^(\w+\.)*InterruptedException\b",
    re.IGNORECASE,
)
_CONTAINER = regex(
    r"exceeding .{0,20}memory limits|OOMKilled|beyond (the )?'?(physical|virtual)'? memory", re.IGNORECASE
)
_KILLED = regex(r"(exit (code|status)(:| is)? ?|exited with (exit )?code )137\b", re.IGNORECASE)
_HEAP = regex(
    r"\bOutOfMemoryError\b(?!: (Direct buffer|unable to create))|SparkOutOfMemoryError|Java heap space"
    r"|GC overhead limit|(exit (code|status)(:| is)? ?|exited with code )52\b",
    re.IGNORECASE,
)
_DEVICE = regex(
    r"\bGpu\w*OOM\b|GPU OutOfMemory|RMM.{0,40}out.of.memory|CudaException.{0,80}out of memory|bad_alloc.{0,80}CUDA"
)
_PYTHON = regex(r"(?:^|[\s.:'\"])(?:_Array|Arrow)?MemoryError\b")
"""Python's own exception, that of numpy (_ArrayMemoryError) and that of Arrow, in a Python worker."""


def cause(text: str | None) -> str | None:
    """The most informative line of an error, without stack, package and wrappers; None for a blank text.

    In a chain it is the last cause that has a message, in Python the exception that was raised first.
    """
    text = _message((text or "")[:_MAX_READ].strip())
    if not text:
        return None
    if lost := _LOST_TASK.search(text):
        text = text[lost.end() :]
    if gone := _LOST_EXECUTOR.match(text):
        return shortened(f"ExecutorLostFailure: {loss(text[gone.end() :])}")
    if raised := _TRACEBACK.search(text):
        # A call from Python to the JVM has only this, and on the next line the JVM's exception.
        thrown = _THROWN.match(text, raised.end()) if _CALLED.search(raised[1]) else None
        return cause(text[thrown.end() :]) if thrown else _one_sentence(raised[1])
    chain = [line for each in (text, *_CAUSED_BY.findall(text)) if (line := _first_line(each))]
    last, fetching = chain[-1], "FetchFailed: " if _FETCHING.match(chain[0]) else ""
    informative = [each for each in chain if not _BARE_CLASS.fullmatch(each)]
    if not informative or informative[-1] == last:
        return shortened(f"{fetching}{_one_sentence(last)}")
    return shortened(f"{fetching}{_one_sentence(informative[-1])} (caused by {_PACKAGE.sub('', last)})")


def _message(text: str) -> str:
    """The message of an error that Spark wrote as JSON, as for queries since 3.4 (SparkThrowableHelper); others
    unchanged.
    """
    if not text.startswith("{"):
        return text
    try:
        decoded = json.loads(text)
        parameters = decoded["messageParameters"]
        if decoded["errorClass"] == "LEGACY":
            return str(parameters["message"]).strip()
        template = str(decoded.get("messageTemplate") or ", ".join(f"{key}: <{key}>" for key in parameters))
        filled = _PARAMETER.sub(lambda each: str(parameters.get(each[1], each[0])), template)
        return f"[{decoded['errorClass']}] {filled}".strip()
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return text


def _first_line(text: str) -> str:
    """The first line, and the next one if the first is only an announcement."""
    first, _, rest = text.partition("\n")
    first, following = first.strip(), rest.partition("\n")[0].strip()
    return f"{first} {following}" if first.endswith(":") and not following.startswith("at ") else first


def _one_sentence(line: str) -> str | None:
    line = _SQLSTATE.sub("", _PACKAGE.sub("", line.strip()))
    for end in _NEXT_SENTENCE.finditer(line):
        if end.start() >= _MIN_INFORMATIVE:
            return shortened(line[: end.start()])
    return shortened(line)


def loss(reason: str) -> str | None:
    """Why an executor ended, without advice and its process' output, except for lines about its memory."""
    line = " ".join(reason[:_MAX_READ_OF_LOSS].split())
    short = _REST_OF_LOSS.sub("", line).rstrip(". ") or line
    memory = _CONTAINER.search(line) or _HEAP.search(line)
    return shortened(f"{short}: {memory[0]}" if memory and memory[0] not in short else short)


def was_released(reason: str | None) -> bool:
    """Whether an executor with this loss reason was released, as dynamic allocation does with idle ones."""
    return reason is not None and _RELEASED.search(reason) is not None


def was_cancelled(error: str) -> bool:
    """Whether a job or a query was ended on request: its stage was cancelled, its stream stopped."""
    return _CALLED_OFF.search(error) is not None


def exhausted_memory(text: str) -> Exhausted | None:
    """Which memory was exhausted, from an error or an executor's loss reason.

    52 is the exit code of an executor whose heap is full (SparkExitCode.OOM), 137 that of a killed process (SIGKILL):
    the kernel kills a container above its memory limit, but there are other causes.  A Python worker has a limit of its
    own with spark.executor.pyspark.memory.
    """
    if _CONTAINER.search(text):
        return "container"
    if _DEVICE.search(text):
        return "device"
    if _HEAP.search(text):
        return "heap"
    if _PYTHON.search(text):
        return "delegate"
    return "killed" if _KILLED.search(text) else None
