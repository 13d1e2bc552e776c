"""The 90 % range of a step on an accelerator: what is not known about its host, its loaders and its device.

Each term is a factor on one part of the step, e^(± term).  The step is computed again with either end of each term, so
a term counts where its part limits the step: a host that is 20 % slower changes nothing while the accelerator limits
the step, and changes it by 20 % where the host does.  The changes are independent errors of the logarithm: their
squares add up on each side.

The host has two terms.  Its speed differs from second to second: an answer compares the traced seconds with the median
of three timed ones, and the spread of such blocks within a run is known from many runs.  The other is the profiler's
cost: it is a share of the events, so it is large for a trace with stacks and small for a light one.

Each other term is the root mean square of the errors of answers that its part limits.  All are times Student's quantile
for 90 % of as many answers.  They come from eight trainings on an H100 and an H200, each with shapes and stacks
(docs/training.md), and the host's from even kinds alone; `python -m lab.score.gpu DIR --terms` fits them again.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from crystalperf.indexes.frozen import frozen
from crystalperf.query.execution.execution import Ends
from crystalperf.query.execution.scenario import SPEED, Scenario
from crystalperf.query.frameworks.ml.training.devices import GPU, HBM, HOST, LATENCY

RETIMED = "busy_ms"
"""The property of runs whose step was computed without the profiler (untraced.py): ranges are calibrated on these."""

HOST_TERM = "host_term"
"""The property with the term of a run's host."""


@frozen
class Terms:
    """Half widths of ln(actual / predicted); `_slope` is per unit of |ln(new / recorded)| of what changes."""

    host: float
    """The host's time, on the recorded machine: its speed differs from second to second."""
    cost: float
    """The profiler's cost to the host for an event, as a share of a launch; not a logarithm (untraced.EVENT_SHARE)."""
    other_host: float
    """The same on another machine, whose CPU is not known."""
    loaders: float
    """The time of loader processes for a batch."""
    other_loaders: float
    device: float
    """Kernels on the recorded device."""
    memory_slope: float
    """Kernels on a device with another bandwidth."""
    other_slope: float
    """Kernels on a device with other arithmetic or latency; no pair of devices has checked it."""
    batch_slope: float
    """Kernels with another batch."""


BATCH = "input"
_SLOPES = {HBM.setting: "memory_slope", GPU.setting: "other_slope", LATENCY.setting: "other_slope"}
"""By setting of an accelerator the term of its change."""

FITTED = Terms(
    host=0.13, cost=0.37, other_host=0.67, loaders=0.40, other_loaders=0.56,
    device=0.02, memory_slope=0.10, other_slope=0.25, batch_slope=0.19,
)  # fmt: skip


def ends(scenario: Scenario, loaders: str | None, host: float) -> Iterator[Ends]:
    """For each term the scenarios of its two ends.

    `host` is the term of the run's host: its speed and what the profiler cost it.  `loaders` is the setting of loader
    processes, None if they do not limit the steps.  If they do, the batch is a part of their term, and the host counts
    only where they get faster.
    """
    terms = FITTED
    moved = scenario.choice(HOST) is not None
    far = {each: abs(math.log(scenario.ratio(each))) for each in (*_SLOPES, BATCH)}
    if loaders is None or scenario.ratio(BATCH) < scenario.ratio(loaders):
        yield _both("host", scenario, {SPEED: terms.other_host if moved else host})
    if loaders is not None:
        own = terms.other_loaders if moved else terms.loaders
        yield _both("loaders", scenario, {loaders: math.hypot(own, terms.batch_slope * far[BATCH])})
        return
    yield _both("device", scenario, dict.fromkeys(_SLOPES, terms.device))
    if far[BATCH] > 0:
        yield _both("batch", scenario, {BATCH: terms.batch_slope * far[BATCH]})
    for setting, name in _SLOPES.items():
        if far[setting] > 0:
            yield _both(setting, scenario, {setting: getattr(terms, name) * far[setting]})


def _both(name: str, scenario: Scenario, factors: dict[str, float]) -> Ends:
    low, high = (
        replace(
            scenario,
            ratios={**scenario.ratios}
            | {key: scenario.ratio(key) * math.exp(sign * term) for key, term in factors.items()},
        )
        for sign in (1.0, -1.0)
    )
    return Ends(name, low, high)
