"""Recommendations for Spark: settings and code changes that shorten a run, each with its old and new value.

There is a module per subject; recommendations.py has the kinds.  Numbers of partitions come from the run's own slots
and bytes.  A setting is named only if it determined the tasks: spark.sql.shuffle.partitions if a stage has as many
tasks, the rules of query.frameworks.spark.partitions for scans.
"""

from __future__ import annotations

import duckdb

from crystalperf.query.diagnose.stage_statistics import Diagnosis
from crystalperf.query.execution.execution import Execution
from crystalperf.query.frameworks.spark import results, streaming
from crystalperf.query.frameworks.spark.advise import executors, files, memory, partitions, rows
from crystalperf.query.frameworks.spark.advise.executors import resized as resized
from crystalperf.query.frameworks.spark.advise.stages import Stages
from crystalperf.query.frameworks.spark.rules import most_slots
from crystalperf.query.results.recommendations import Candidate


def candidates(connection: duckdb.DuckDBPyConnection, execution: Execution, diagnosis: Diagnosis) -> list[Candidate]:
    """Candidates for recommendations, unordered."""
    properties, debug = execution.properties, diagnosis.debug
    on_path = Stages([each for each in diagnosis.details if each.facts.path_ms > 0], diagnosis.stages)
    listing = partitions.listing_stages(connection)
    every = list(partitions.cuts(on_path, most_slots(connection, properties)))
    streamed = streaming.stages_of_streams(connection)
    cuts = [each for each in every if each.detail.facts.id not in listing]
    return [
        *executors.stopped(debug),
        *memory.exhausted(execution, debug),
        *files.schemas(on_path.details),
        *partitions.shuffles(properties, cuts),
        *files.scans(properties, [each for each in cuts if each.detail.facts.id not in streamed]),
        *files.unsplit(properties, on_path),
        *executors.locality(properties, on_path),
        *partitions.collections(cuts),
        *partitions.listings(properties, [each for each in every if each.detail.facts.id in listing]),
        *rows.skew(properties, on_path),
        *rows.windows(on_path),
        *memory.short(execution, on_path.details, debug),
        *results.candidates(connection, on_path.details, debug),
        *rows.python(on_path.details, debug),
        *executors.late(execution, debug),
        *executors.missing(execution, debug),
    ]
