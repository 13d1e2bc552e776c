"""Sentences about data missing from a log."""

from __future__ import annotations

from crystalperf.query.results import missing
from crystalperf.query.results.words import Words
from crystalperf.query.text.sentences import CORE
from crystalperf.query.trace.amounts import counted


@CORE.of(missing.UnendedTasks)
def unended_tasks(found: missing.UnendedTasks, words: Words) -> str:
    vocabulary = words.vocabulary
    where = counted(found.stages, vocabulary.stage) if found.stage is None else found.stage
    have = "has" if found.lost == 1 else "have"
    return f"{found.lost} of {found.total} {vocabulary.tasks} of {where} {have} no end in the log"


@CORE.of(missing.UnreadParts)
def unread_parts(found: missing.UnreadParts, _words: Words) -> str:
    problems = ", ".join(f"{each.problem.replace('_', ' ')} ({each.count})" for each in found.parts)
    return f"parts of the log are missing: {problems}"


@CORE.of(missing.UnannouncedWorkers)
def unannounced_workers(found: missing.UnannouncedWorkers, words: Words) -> str:
    return f"the log does not record when {counted(found.workers, words.vocabulary.worker)} started"
