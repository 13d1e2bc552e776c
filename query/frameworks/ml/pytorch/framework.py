"""PyTorch as a Framework."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import duckdb

from crystalperf.query.frameworks.ml.pytorch import files, loaders, sentences, setup
from crystalperf.query.frameworks.ml.training.framework import of_training
from crystalperf.query.frameworks.ml.training.tunable import of_settings

if TYPE_CHECKING:
    from crystalperf.query.diagnose.stage_statistics import StageStats
    from crystalperf.query.execution.execution import Execution
    from crystalperf.query.results.answers import NamedPart, PathItem
    from crystalperf.query.results.findings import Finding
    from crystalperf.query.results.remarks import Remark


def _findings(connection: duckdb.DuckDBPyConnection, details: Sequence[StageStats]) -> list[Finding]:
    """See rules.findings; rules imports modules of the reader, so it is imported only for a trace."""
    from crystalperf.query.frameworks.ml.pytorch import rules

    return rules.findings(connection, details)


def _other_causes(connection: duckdb.DuckDBPyConnection, execution: Execution) -> Mapping[str, Remark]:
    """See rules.other_causes."""
    from crystalperf.query.frameworks.ml.pytorch import rules

    return rules.other_causes(connection, execution)


def _named_parts(
    connection: duckdb.DuckDBPyConnection, execution: Execution, path: Sequence[PathItem]
) -> Sequence[NamedPart]:
    """See rules.named_parts."""
    from crystalperf.query.frameworks.ml.pytorch import rules

    return rules.named_parts(connection, execution, path)


_TRAINING = of_training(
    name="pytorch",
    title="PyTorch",
    process="rank",
    log_hint="give the files that export_chrome_trace wrote, those of all ranks",
    recognise=files.recognise,
    gather=files.gather,
    setup=setup.SETUP,
)
PYTORCH = replace(
    _TRAINING,
    planner=replace(
        _TRAINING.planner,
        settings=loaders.SETTINGS,
        replan=loaders.replan,
        other_bound=loaders.other_bound,
        ends=loaders.ends,
        checked_settings=loaders.checked,
    ),
    advisor=replace(
        _TRAINING.advisor,
        findings=_findings,
        other_causes=_other_causes,
        named_parts=_named_parts,
        sentences=sentences.SENTENCES,
        tunable=of_settings(((loaders.LOADERS, "num_workers of the DataLoader"),)),
    ),
)
