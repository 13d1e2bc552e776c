"""The differential flame graph: sums, merged stacks, noise of sampling, and functions that changed most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import crystalperf as cp
from crystalperf.cli.comparing import comparison_text
from crystalperf.query.execution.sampled import SampledRows
from crystalperf.query.page import flame_difference as subject
from crystalperf.query.page.flame_difference import SampledRun, flame_difference, sampled_run
from crystalperf.query.page.stacktree import Tree, merged
from crystalperf.query.results.flame_difference import FlameDifference, FunctionChange
from crystalperf.query.run import Run, comparison_page
from tests.reading import profiled

ROOT = Path(__file__).resolve().parent.parent

KINDS = ("cpu", "disk", "net", "waiting", "unknown")


def made(stacks: dict[tuple[str, ...], dict[str, float]], weight_ms: float = 20.0) -> SampledRun:
    """A run with these stacks, from the root, each with its time by kind in samples of one weight."""
    names = sorted({frame for stack in stacks for frame in stack})
    nodes, parent, frame, levels = {(): 0}, [-1], [-1], [0, 1]
    for depth in range(1, max(map(len, stacks)) + 1):
        for path in dict.fromkeys(stack[:depth] for stack in stacks if len(stack) >= depth):
            nodes[path] = len(parent)
            parent.append(nodes[path[:-1]])
            frame.append(names.index(path[-1]))
        levels.append(len(parent))
    ends = np.array([nodes[stack] for stack in stacks])
    tree = Tree(np.array(parent), np.array(frame), ends, tuple(levels))
    time = np.array([[parts.get(kind, 0.0) for kind in KINDS] for parts in stacks.values()])
    count = np.arange(len(stacks))
    rows = SampledRows(count, count, np.full(len(stacks), -1), time, time.sum(axis=1) * weight_ms)
    return SampledRun(rows, KINDS, [stack[-1] for stack in stacks], names, tree)


BEFORE = {("main", "scan"): {"disk": 4_000.0}, ("main", "join", "hash"): {"cpu": 2_000.0}, ("main",): {"cpu": 100.0}}
AFTER = {("main", "scan"): {"disk": 1_000.0}, ("main", "sort"): {"cpu": 3_000.0}, ("main",): {"cpu": 110.0}}


def paths(found: FlameDifference) -> dict[tuple[str, ...], tuple[float, float]]:
    """The time of each stack before and after."""

    def path(node: int) -> tuple[str, ...]:
        return () if node == 0 else (*path(found.parent[node]), found.frames[found.frame[node]])

    rows = found.sampled
    return {
        path(node): (
            sum(column[row] for column in rows.before_ms.values()),
            sum(column[row] for column in rows.after_ms.values()),
        )
        for row, node in enumerate(rows.node)
    }


def test_stacks_are_merged_by_the_names_of_their_frames() -> None:
    found = flame_difference([made(BEFORE)], [made(AFTER)])
    assert found is not None
    assert paths(found) == {
        ("main",): (100.0, 110.0),
        ("main", "scan"): (4_000.0, 1_000.0),
        ("main", "join", "hash"): (2_000.0, 0.0),
        ("main", "sort"): (0.0, 3_000.0),
    }
    assert found.total_ms == (6_100.0, 4_110.0)
    assert all(parent < node for node, parent in enumerate(found.parent))


def test_times_of_several_runs_are_the_mean_of_a_side() -> None:
    half = {stack: {kind: ms / 2 for kind, ms in parts.items()} for stack, parts in BEFORE.items()}
    found = flame_difference([made(BEFORE), made(half)], [made(AFTER)])
    assert found is not None
    assert found.runs == (2, 1)
    assert paths(found)["main", "scan"] == (3_000.0, 1_000.0)
    assert found.total_ms[0] == pytest.approx(0.75 * 6_100)


def test_functions_are_ranked_by_change_and_small_changes_are_noise() -> None:
    found = flame_difference([made(BEFORE)], [made(AFTER)])
    assert found is not None
    assert [(each.name, each.kind, each.change_ms) for each in found.functions] == [
        ("scan", "disk", -3_000.0),
        ("sort", "cpu", 3_000.0),
        ("hash", "cpu", -2_000.0),
        ("main", "cpu", 10.0),
    ]
    assert [each.beyond_noise for each in found.functions] == [True, True, True, False]
    scan = found.functions[0]
    assert scan.noise_ms == pytest.approx((5_000 * 20) ** 0.5, abs=0.1)


def test_a_run_compared_with_itself_has_no_change() -> None:
    found = flame_difference([made(BEFORE)], [made(BEFORE)])
    assert found is not None
    assert found.functions == ()
    assert found.sampled.before_ms == found.sampled.after_ms


@pytest.mark.parametrize("sides", [([], [made(AFTER)]), ([made(BEFORE)], [])])
def test_a_side_without_samples_has_no_difference(sides: tuple[Sequence[SampledRun], Sequence[SampledRun]]) -> None:
    assert flame_difference(*sides) is None


def test_small_branches_merge_into_their_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject, "MAX_NODES", 3)
    found = flame_difference([made(BEFORE)], [made(AFTER)])
    assert found is not None
    assert found.coarsened
    assert sum(before for before, _ in paths(found).values()) == 6_100
    assert sum(after for _, after in paths(found).values()) == 4_110
    assert ("main", "join", "hash") not in paths(found)


def test_trees_of_different_depth_merge() -> None:
    runs = [made({("a",): {"cpu": 1.0}}), made({("a", "b", "c"): {"cpu": 1.0}, ("d",): {"net": 2.0}})]
    names, tree, nodes = merged([(each.frames, each.tree) for each in runs])
    assert names == ["a", "b", "c", "d"]
    assert tree.parent.tolist() == [-1, 0, 0, 1, 3]
    assert [names[each] for each in tree.frame.tolist()[1:]] == ["a", "d", "b", "c"]
    assert [each.tolist() for each in nodes] == [[0, 1], [0, 1, 2, 3, 4]]


def test_a_recording_has_the_time_of_its_samples_on_both_sides(demo_run: Run) -> None:
    with demo_run.reading() as connection:
        run = sampled_run(connection, demo_run._load("all"))
    assert run is not None
    found = flame_difference([run], [run])
    assert found is not None
    flames = demo_run.page_data().flames
    assert flames is not None
    sampled = flames.sampled
    columns = [*sampled.resource_ms.values(), sampled.waiting_ms, sampled.unknown_ms]
    assert found.total_ms[0] == pytest.approx(sum(map(sum, columns)), rel=1e-3)
    assert found.functions == ()


@pytest.mark.later
def test_compare_has_the_functions_of_the_flame_graph() -> None:
    runs = [profiled(ROOT / "lab" / "recordings" / "again" / "q9" / f"base-0-0{each}-jfr20") for each in (0, 6)]
    answer = cp.compare(*runs)
    flames = comparison_page(*runs, answer=answer).flames
    assert flames is not None
    assert answer.functions == flames.functions
    assert len(answer.functions) > 10
    changes = [abs(each.change_ms) for each in answer.functions]
    assert changes == sorted(changes, reverse=True)


def test_the_screen_lists_functions_beyond_noise(demo_run: Run) -> None:
    answer = cp.compare(profiled(ROOT / "tests" / "data" / "eventlog" / "q9.zstd"), demo_run)
    assert answer.functions == ()  # only one side has samples
    loud = FunctionChange("scan", "disk", 9_000.0, 4_000.0, 20.0)
    text = comparison_text(replace(answer, functions=(loud, FunctionChange("main", "cpu", 10.0, 20.0, 50.0))))
    assert "scan" in text
    assert not [each for each in text.splitlines() if each.startswith("main")]
