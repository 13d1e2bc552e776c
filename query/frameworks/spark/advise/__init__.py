"""Recommendations for Spark: settings and code changes that shorten a run, each with its old and new value.

There is a module per subject; recommendations.py has the kinds.  Numbers of partitions come from the run's own slots
and bytes.  A setting is named only if it determined the tasks: spark.sql.shuffle.partitions if a stage has as many
tasks, the rules of query.frameworks.spark.partitions for scans.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import duckdb

from crystalperf.query.diagnose.stage_statistics import Diagnosis
from crystalperf.query.execution.execution import Execution
from crystalperf.query.frameworks.spark import results, streaming
from crystalperf.query.frameworks.spark.advise import (
    engines,
    executors,
    files,
    joins,
    memory,
    pairs,
    partitions,
    python,
    repeated,
    rows,
    scans,
)
from crystalperf.query.frameworks.spark.advise.executors import resized as resized
from crystalperf.query.frameworks.spark.advise.stages import Stages
from crystalperf.query.frameworks.spark.plans import plans_of
from crystalperf.query.frameworks.spark.rules import most_slots, program_call
from crystalperf.query.frameworks.spark.storage import listing_stages
from crystalperf.query.results.recommendations import Candidate, SetBy


def candidates(connection: duckdb.DuckDBPyConnection, execution: Execution, diagnosis: Diagnosis) -> list[Candidate]:
    """Candidates for recommendations, unordered; their settings say what set them in this run."""
    set_by = dict(connection.execute("SELECT name, set_by FROM spark_settings").fetchall())
    return [with_sources(each, set_by) for each in _candidates(connection, execution, diagnosis)]


def with_sources(candidate: Candidate, set_by: Mapping[str, SetBy]) -> Candidate:
    """A candidate whose settings have what set them."""
    found = candidate.recommendation
    if not any(each.name in set_by for each in found.settings):
        return candidate
    settings = tuple(replace(each, set_by=set_by.get(each.name, "")) for each in found.settings)
    return replace(candidate, recommendation=replace(found, settings=settings))


def _candidates(connection: duckdb.DuckDBPyConnection, execution: Execution, diagnosis: Diagnosis) -> list[Candidate]:
    properties, debug = execution.properties, diagnosis.debug
    on_path = Stages([each for each in diagnosis.details if each.facts.path_ms > 0], diagnosis.stages)
    listing = listing_stages(connection)
    every = list(partitions.cuts(on_path, most_slots(connection, properties)))
    streamed = streaming.stages_of_streams(connection)
    called = [each for each in every if program_call(each.detail) is not None and each.cost.kind == "idle-slots"]
    cuts = [each for each in every if each.detail.facts.id not in listing and each not in called]
    return [
        *executors.stopped(debug),
        *python.exhausted(connection, execution, diagnosis.details, debug),
        *memory.exhausted(execution, debug),
        *files.schemas(on_path.details, listing),
        *partitions.in_program(called),
        *partitions.shuffles(properties, cuts),
        *files.scans(properties, [each for each in cuts if each.detail.facts.id not in streamed]),
        *files.larger(properties, on_path, listing | streamed),
        *files.unsplit(properties, on_path),
        *executors.locality(properties, on_path),
        *partitions.collections(cuts),
        *partitions.listings(properties, [each for each in every if each.detail.facts.id in listing]),
        *_of_plans(connection, execution, diagnosis),
        *engines.candidates(connection, on_path.details, properties),
        *rows.skew(properties, on_path),
        *rows.windows(on_path),
        *memory.short(execution, on_path.details, debug),
        *memory.right_size(connection, execution, debug),
        *results.candidates(connection, on_path.details, debug),
        *python.candidates(connection, execution, on_path.details, debug),
        *executors.late(execution, debug),
        *executors.missing(execution, debug),
    ]


def _of_plans(connection: duckdb.DuckDBPyConnection, execution: Execution, diagnosis: Diagnosis) -> Iterator[Candidate]:
    """Changes of the plans of queries that have stages on the critical path."""
    details = {each.facts.id: each for each in diagnosis.details}
    scopes = {each.facts.scope for each in diagnosis.details if each.facts.scope and each.facts.path_ms > 0}
    plans = plans_of(connection, sorted(scopes))
    yield from joins.candidates(execution, plans, details)
    yield from pairs.candidates(plans, details)
    yield from repeated.candidates(execution, plans, details)
    yield from scans.candidates(plans, details)
