"""Everything CrystalPerf knows of PyTorch.

files.py        which files are traces, and which of them make one run
kineto.py       a trace to threads and streams; names.py: what names in it tell
operators.py    the outermost operators of a thread, with where they were called
trace.py        those of all ranks to the trace that every framework hands over, put together in lanes.py
threads.py      what threads did between their operators; waits.py: when they waited for accelerators,
                or (queue.py) for room in the queue of launches; python.py: what their Python did
first_uses.py   launches that load a kernel
streams.py      what accelerators ran; launches.py: what it waited for
collectives.py  collectives, and clocks by them; steps.py: steps, and accelerators that get behind
rules.py        findings that only it has
setup.py        what a program needs so that it leaves traces
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import duckdb

from crystalperf.query.frameworks.ml.pytorch import files, sentences, setup
from crystalperf.query.frameworks.ml.training.devices import GPU
from crystalperf.query.frameworks.ml.training.framework import of_training

if TYPE_CHECKING:
    from crystalperf.query.diagnose.group_statistics import Detail
    from crystalperf.query.execution.execution import Execution
    from crystalperf.query.results.findings import Finding
    from crystalperf.query.results.remarks import Remark


def _findings(connection: duckdb.DuckDBPyConnection, details: Sequence[Detail]) -> list[Finding]:
    """What rules.findings says; they name what readers find, and are imported where there is a trace."""
    from crystalperf.query.frameworks.ml.pytorch import rules

    return rules.findings(connection, details)


def _other_causes(connection: duckdb.DuckDBPyConnection, execution: Execution) -> Mapping[str, Remark]:
    """What rules.other_causes says."""
    from crystalperf.query.frameworks.ml.pytorch import rules

    return rules.other_causes(connection, execution)


_TRAINING = of_training(
    name="pytorch",
    title="PyTorch",
    process="rank",
    log_hint="give what export_chrome_trace wrote, of all ranks",
    recognise=files.recognise,
    gather=files.gather,
    setup=setup.SETUP,
)
PYTORCH = replace(
    _TRAINING,
    planner=replace(
        _TRAINING.planner,
        checked_settings=lambda run: () if GPU.name in run.names else {"input"},  # batches on CPUs (docs/training.md)
    ),
    advisor=replace(_TRAINING.advisor, findings=_findings, other_causes=_other_causes, sentences=sentences.SENTENCES),
)
