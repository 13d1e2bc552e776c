"""The child process that answers queries about runs and indexes, one at a time; the service ends it on a timeout.

The service starts it as `python -m crystalperf.service.query_process`, isolated.  It turns the core's answers into
JSON, so that all interfaces agree.  A few runs stay open, so that further queries about them are quick.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from crystalperf.indexes.children import end_with_parent, error_report
from crystalperf.indexes.errors import InputError, NoAnswerError
from crystalperf.query.advise.verdict import bottleneck_of
from crystalperf.query.lookup.frames import resolve_frames
from crystalperf.query.lookup.functions import Wanted, explain, find, indexes_at_hand, known_names, of_name
from crystalperf.query.page.comparison import without_paths
from crystalperf.query.results.answers import Verdict
from crystalperf.query.run import Other, Run, compare, comparison_page
from crystalperf.query.text.answers import bottleneck_sentence, measure_word, saving_text
from crystalperf.query.text.as_json import as_json
from crystalperf.query.text.figures import time_unit
from crystalperf.query.text.sentences import text_of
from crystalperf.service.framing import framed, read
from crystalperf.service.overview import overview as overview_of

KEPT_RUNS = 3
"""Runs that stay open; each holds its execution in memory."""

ADDRESS_BYTES = 12 << 30
"""Limit of the address space, most of which is never touched; a query that needs more ends with an error."""

Answer = Any


@lru_cache(maxsize=KEPT_RUNS)
def _run(path: str, _version: tuple[int, ...]) -> Run:
    return Run(Path(path))


def _opened(path: str) -> Run:
    status = os.stat(path)
    return _run(path, (status.st_ino, status.st_size, status.st_mtime_ns))


def header(run: str) -> Answer:
    """The header of a run: its application, framework, machines and settings."""
    return as_json(_opened(run).header())


def verdict(run: str) -> Answer:
    """The JSON of `analyze --json`, with the run's name instead of its path on this machine."""
    return as_json(_verdict(run))


def _verdict(run: str) -> Verdict:
    return replace(_opened(run).verdict(), run=Path(run).stem)


def debug(run: str, scope: str) -> Answer:
    """The JSON of `debug --json`."""
    return as_json(_opened(run).debug(scope))


def predict(
    run: str, settings: list[str], recorded: list[str], scope: str, replan: bool, predictor: str | None
) -> Answer:
    """The JSON of `predict --json`."""
    opened = _opened(run)
    if predictor == "all":
        return as_json(opened.predictions(settings, recorded=recorded, scope=scope, replan=replan))
    return as_json(opened.what_if(settings, recorded=recorded, scope=scope, replan=replan, predictor=predictor))


def overview(run: str) -> Answer:
    """The data of a run's page."""
    return overview_of(_opened(run).verdict())


def summary(run: str) -> Answer:
    """The row of a run in a list, and the answers that were computed for it."""
    given = _verdict(run)
    found, known, unit = given.debug, given.header, time_unit(given.debug.runtime_ms)
    bottleneck = bottleneck_of(found)
    first = given.recommendations[0] if given.recommendations else None
    row = {
        "app_id": known.app_id,
        "app_name": known.name,
        "framework": known.framework,
        "framework_title": known.framework_title,
        "framework_version": known.framework_version,
        "status": None if found.outcome is None else found.outcome.status,
        "complete": known.complete,
        "workers": known.workers,
        "has_samples": known.has_samples,
        "duration_ms": round(known.duration_ms, 3),
        "runtime_ms": round(found.runtime_ms, 3),
        "measure": measure_word(known.measure),
        "bottleneck": bottleneck.name,
        "bottleneck_ms": round(bottleneck.time_ms, 3),
        "resource_ms": {name: round(ms, 3) for name, ms in found.resource_ms.items()},
        "sentence": bottleneck_sentence(bottleneck, found, known.resources, unit),
        "advice": None if first is None else text_of(first, found.words),
        "advice_gain": None if first is None else saving_text(first.saving, unit),
        "advice_gain_ms": None if first is None or first.saving.ms is None else round(first.saving.ms, 3),
    }
    facts = {"verdict": as_json(given), "debug": as_json(found), "header": as_json(known)}
    return {"row": row, "overview": overview_of(given), **facts}


def report(run: str, live: dict[str, str] | None) -> Answer:
    """The page of a run."""
    from crystalperf.service.reports import page

    return page(_opened(run), live)


def comparison(run: str, before: list[str], after: list[str], scope: str) -> Answer:
    """The JSON of `compare --json`, with names of runs instead of their paths; `run` is the first of them."""
    with _comparing():
        return as_json(without_paths(compare(_named(before), _named(after), scope=scope)))


def comparison_report(run: str, before: list[str], after: list[str], scope: str) -> Answer:
    """The page of a comparison."""
    from crystalperf.service.reports import comparison as page

    with _comparing():
        return page(comparison_page(_named(before), _named(after), scope=scope))


def _named(paths: list[str]) -> list[Other]:
    """The runs of a side by their names."""
    return [Other(Path(each).stem, _opened(each)) for each in paths]


@contextmanager
def _comparing() -> Iterator[None]:
    """Report runs that cannot be compared: there is no answer, although every run exists."""
    try:
        yield
    except InputError as error:
        raise NoAnswerError(str(error)) from error


def indexes() -> Answer:
    """The JSON of `index list --json`, without paths of this machine."""
    return [{key: value for key, value in each.items() if key != "path"} for each in indexes_at_hand()[0]]


def functions(index: str, filters: Mapping[str, str], limit: int, offset: int) -> Answer:
    """Functions of one index."""
    rows, total = find(index, Wanted(**filters), limit=limit, offset=offset)
    return {"functions": rows, "total": total, "offset": offset, "limit": limit}


def function(name: str, indexes: list[str], why: bool) -> Answer:
    """The JSON of `index show --json`; with `why` the evidence, but for the words, which need the indexer."""

    def explained(connection: Any, _: str, found: list[dict[str, Any]]) -> None:
        if why:
            explain(connection, found)

    return of_name(name, indexes, why=explained)[0]


def resolve(frames: list[str], indexes: list[str]) -> Answer:
    """The JSON of `index resolve --json`."""
    return resolve_frames(frames, indexes or known_names())


def table(columns: list[str], rows: list[list[Any]], form: str) -> bytes:
    """Rows as an Arrow stream or as a Parquet file."""
    import io

    try:
        import pyarrow as arrow
        from pyarrow import ipc, parquet
    except ImportError as error:
        raise NoAnswerError(f"{form} needs the package pyarrow, which is not installed; use CSV or JSON") from error
    lists = [[row[position] for row in rows] for position in range(len(columns))]
    made = arrow.table(dict(zip(columns, lists, strict=True)))
    sink = io.BytesIO()
    if form == "arrow":
        with ipc.new_stream(sink, made.schema) as writer:
            writer.write_table(made)
    else:
        parquet.write_table(made, sink, compression="zstd")
    return sink.getvalue()


QUESTIONS: Mapping[str, Callable[..., Answer]] = {
    each.__name__: each
    for each in (
        header,
        verdict,
        overview,
        debug,
        predict,
        summary,
        report,
        comparison,
        comparison_report,
        indexes,
        functions,
        function,
        resolve,
        table,
    )
}


def answer(question: str, facts: Mapping[str, Any]) -> tuple[str, bytes]:
    """The message with the answer or the error."""
    try:
        found = QUESTIONS[question](**facts)
    except FileNotFoundError:
        problem = error_report(InputError("the run was deleted"))
    except MemoryError:
        problem = error_report(NoAnswerError("the query exceeded its memory limit"))
    except Exception as error:  # bugs too: other queries need the process
        problem = error_report(error)
    else:
        return "A", found if isinstance(found, bytes) else json.dumps(found, allow_nan=False).encode()
    return "E", json.dumps(problem).encode()


def serve() -> None:
    """Answer the queries on stdin until it ends."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    end_with_parent()
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_BYTES, ADDRESS_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    gc.freeze()
    while (message := read(sys.stdin.buffer)) is not None:
        request = json.loads(message[1])
        answers.write(framed(*answer(request["question"], request["facts"])))
        answers.flush()


if __name__ == "__main__":
    serve()
