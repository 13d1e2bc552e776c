"""The page of a made run as large as those that the lab opens in a browser."""

from __future__ import annotations

from pathlib import Path

import pytest

from crystalperf import query, report
from crystalperf.query.page import flame_graph
from lab.costs import made_log, made_samples


@pytest.mark.later
def test_keeps_the_page_of_a_million_samples_below_3_mb(tmp_path: Path) -> None:
    with (tmp_path / "log").open("w", encoding="utf-8") as stream:
        made_log.write(stream, 13_500)
    made = query.profile(tmp_path / "log", output=tmp_path / "made.duckdb")
    count = made_samples.add(made.path)
    assert count > 1_000_000
    run = query.open_run(made.path)
    picture = run.page_data()
    assert picture.flames is not None
    assert picture.flames.coarsened
    assert 0.9 * flame_graph.MAX_ROWS <= len(picture.flames.sampled.node) <= flame_graph.MAX_ROWS
    html = report.render(picture)
    assert len(html.encode()) <= 3_000_000
    columns = [*picture.flames.sampled.resource_ms.values(), picture.flames.sampled.unknown_ms]
    assert sum(map(sum, columns)) == pytest.approx(20 * count, rel=1e-3)
