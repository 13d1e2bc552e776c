"""The memory of an accelerator: what held it at its peak, and what other batches would need."""

from __future__ import annotations

import pytest

from crystalperf.query.frameworks.ml.pytorch import memory
from crystalperf.query.frameworks.ml.pytorch.kineto import Allocation, Process, Ran, Thread
from crystalperf.query.frameworks.ml.training.memory import needed

THREAD = ("1", "1")


def process(*events: tuple[float, int, int], reserved: int = 2000, begins_with: int = 100) -> Process:
    """A step of 10 µs: forward to 4, backward from 4 to 8, then the optimizer.  Events are (moment, address, bytes)."""
    found = Process("0", header={"deviceProperties": [{"id": 0, "totalGlobalMem": 4000}]})
    found.label = "rank 0"
    found.threads[THREAD] = Thread(
        operators=[Ran(4, 8, "autograd::engine::evaluate_function: MmBackward0")],
        marks=[Ran(8, 10, "Optimizer.step#SGD.step")],
    )
    total = begins_with
    for moment, address, size in events:
        total += size
        found.allocations.append(Allocation(moment, THREAD, 0, address, size, total, reserved))
    return found


STEP = ((1, 1, 600), (5, 2, 50), (5.5, 3, 300), (6, 3, -300), (7, 1, -600), (9, 4, 20), (9.5, 2, -50), (9.6, 4, -20))


def test_peak_is_divided_by_the_part_of_the_step_that_asked() -> None:
    found = memory.of_process(process(*STEP))
    assert found is not None
    assert (found.device, found.peak, found.reserved, found.capacity) == ("rank 0 GPU 0", 1050, 2000, 4000)
    assert found.parts == {"before": 100, "forward": 600, "gradients": 50, "backward": 300}


def test_activations_grow_with_the_batch_and_gradients_do_not() -> None:
    found = memory.of_process(process(*STEP))
    assert found is not None
    facts = {key: value for key, value in found.properties().items() if value}
    twice = needed(facts, 2)
    assert twice is not None
    assert twice.least_bytes == 150 + 2 * 900
    assert twice.most_bytes == pytest.approx(twice.least_bytes * 2000 / 1050)
    assert [needed(facts, each).fits for each in (1, 2, 2.5, 5)] == [True, True, None, False]  # type: ignore[union-attr]


def test_a_small_batch_needs_what_the_optimizer_holds() -> None:
    facts = memory.of_process(process((1, 1, 600), (7, 1, -600), (9, 4, 500), (9.5, 4, -500)))
    assert facts is not None
    known = needed(facts.properties(), 0.01)
    assert known is not None
    assert known.least_bytes == 600


def test_blocks_from_before_the_trace_may_be_freed_in_it() -> None:
    found = memory.of_process(process((1, 9, -80), (2, 1, 500)))
    assert found is not None
    assert found.parts == {"before": 20, "forward": 500}


def test_without_events_there_is_nothing() -> None:
    assert memory.of_process(process()) is None
    assert needed({}, 2) is None
