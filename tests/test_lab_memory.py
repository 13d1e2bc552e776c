"""The lab's search for the smallest heap, and its table."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest

from lab.memory.search import HEAPS_MIB, ROOMY_MIB, Tried, search, smallest_mib
from lab.memory.table import sized, table

ROOMY = Tried(ROOMY_MIB, "well", 10.0, 8.0)


def tried(heap_mib: int, fits_mib: int) -> Tried:
    return Tried(heap_mib, "well", 12.0, 9.0) if heap_mib >= fits_mib else Tried(heap_mib, "ran-out")


@pytest.mark.parametrize("fits_mib", [HEAPS_MIB[0], HEAPS_MIB[5], HEAPS_MIB[-1]])
def test_search_finds_the_smallest_heap_in_few_runs(fits_mib: int) -> None:
    runs = search(lambda heap_mib: tried(heap_mib, fits_mib), ROOMY)
    assert smallest_mib(runs, ROOMY) == fits_mib
    assert len(runs) <= 6


def test_heap_in_which_a_job_takes_more_than_twice_the_cpu_time_does_not_work() -> None:
    def slow_below_800(heap_mib: int) -> Tried:
        return Tried(heap_mib, "well", 30.0, 9.0 if heap_mib >= 800 else 17.0)

    found = smallest_mib(search(slow_below_800, ROOMY), ROOMY)
    assert found == min(each for each in HEAPS_MIB if each >= 800)


def row(job: str) -> dict[str, Any]:
    needs = {"use": 900, "safe": 1000, "no_more_spills": 1100}
    return {"job": job, "tuning": True, "roomy": asdict(ROOMY), "needs": needs, "smallest_mib": 500}


def checked(job: str, number: int, heap_mib: int, ended: str, cpu_s: float | None) -> dict[str, Any]:
    return {"job": job, "round": number} | asdict(Tried(heap_mib, ended, cpu_s, cpu_s))


def test_second_safe_heap_counts_after_the_first() -> None:
    checks = [
        checked("sort", 2, 600, "well", 10.0),
        checked("sort", 1, 1000, "well", 8.0),
        checked("other", 1, 1, "", 1),
    ]
    found = sized(row("sort"), checks)
    assert [each.heap_mib for each in found.rounds] == [1000, 600]
    assert [each.slower for each in found.rounds] == pytest.approx([1.0, 1.25])
    assert (found.ratio, found.last_ratio) == pytest.approx((2.0, 1.2))


def test_run_that_died_in_its_safe_heap_does_not_count_as_working() -> None:
    died = sized(row("sort"), [checked("sort", 1, 1000, "ran-out", None)])
    well = sized(row("window"), [checked("window", 1, 1000, "well", 9.0)])
    (totals,) = [line for line in table([died, well]) if line.startswith("Tuning")]
    assert "1 of 2 runs" in totals
