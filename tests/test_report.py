"""The page of a run: its figures are those of the answers, its policy lets nothing else run, its file is whole."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from crystalperf import query, report
from crystalperf.indexes.errors import InputError
from crystalperf.query.page import flame_graph, grid, timeline
from crystalperf.query.results.page import PageData
from crystalperf.query.run import Run
from crystalperf.query.text.as_json import as_json
from crystalperf.query.text.sentences import texts_of
from tests import spark_logs
from tests.spark_logs import Stage, Task, waves

ROOT = Path(__file__).parent.parent
Answer = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def run(demo_run: Run) -> Run:
    """Its own, so that no answer of another test is at hand."""
    return query.open_run(demo_run.path)


@pytest.fixture(scope="module")
def page_data(run: Run) -> PageData:
    return run.page_data()


@pytest.fixture(scope="module")
def data(page_data: PageData) -> Any:
    return as_json(page_data)


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages of the usual what-ifs alone, which are quick."""
    monkeypatch.setattr(grid, "MAX_REPLAYED", 0)


class Page(HTMLParser):
    """The elements of a page with their attributes, and the text within each kind."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self._open: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in ("meta", "br"):
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.setdefault(self._open[-1] if self._open else "", []).append(data)

    def attribute(self, tag: str, name: str, key: str, value: str) -> str:
        return next(str(have[name]) for found, have in self.elements if found == tag and have.get(key) == value)


# The grid -----------------------------------------------------------------------------------------------------------


def points(page_data: PageData) -> list[Any]:
    return [each for curve in (*page_data.what_if.curves, *page_data.what_if.pairs) for each in curve.points]


@pytest.mark.few(1)
@pytest.mark.parametrize("part", range(4))
def test_every_setting_of_the_grid_is_what_predict_says(part: int, page_data: PageData, demo_run: Run) -> None:
    asked = query.open_run(demo_run.path)
    found = points(page_data)
    assert 50 <= len(found) <= grid.MAX_SETTINGS
    assert page_data.what_if.coarser == ""
    assert {each.refused != "" for each in found} == {True, False}
    assert page_data.what_if.recorded_ms == page_data.verdict.debug.runtime_ms
    for each in found[part::4]:
        answer = asked.predict(each.setting.split(", "))
        assert each.predicted_ms == answer.predicted_ms
        assert each.interval_ms == pytest.approx(answer.interval_ms)
        assert each.bound_ms == answer.bound_ms
        assert each.resource_ms == answer.resource_ms
        assert all(reason in each.refused for reason in texts_of(answer.refused, answer.words))
        if answer.predicted_ms is not None:
            lengths = {stage.id: stage.predicted_ms for stage in answer.stages}
            assert list(each.stage_ms) == [lengths[stage] for stage in page_data.what_if.stages]


@pytest.mark.later
def test_the_json_of_a_point_is_that_of_predict(data: Any, crystalperf: Answer, demo_run: Run) -> None:
    several = [curve["points"][0] for curve in data["what_if"]["curves"]] + [data["what_if"]["pairs"][0]["points"][-1]]
    for each in several:
        settings = [part for setting in each["setting"].split(", ") for part in ("--set", setting)]
        _, out, _ = crystalperf("predict", demo_run.path, *settings, "--json")
        reported = json.loads(out)
        for name in ("setting", "predicted_ms", "interval_ms", "bound_ms", "resource_ms"):
            assert each[name] == reported[name], (each["setting"], name)


def test_predicted_breakdown_sums_to_the_predicted_time(page_data: PageData) -> None:
    known = [each for each in points(page_data) if each.predicted_ms is not None]
    for each in known:
        assert sum(each.resource_ms.values()) == pytest.approx(each.predicted_ms)
        assert each.bottleneck in (*page_data.page_text.devices, *page_data.page_text.causes)
    faster = {each.setting: each for each in known}["network=10x"]
    assert faster.resource_ms["net"] < 0.7 * page_data.what_if.resource_ms["net"]
    assert faster.resource_ms["cpu"] == pytest.approx(page_data.what_if.resource_ms["cpu"], rel=0.1)


def test_a_knee_is_where_the_terminals_list_would_have_it(page_data: PageData, crystalperf: Answer, run: Run) -> None:
    curve = next(each for each in page_data.what_if.curves if each.knee is not None)
    rising = [each.setting.partition("=")[2] for each in curve.points if each.ratios[0] > 1 and not each.refused]
    _, out, _ = crystalperf("predict", run.path, "--set", f"{curve.key}={','.join(rising)}")
    row = next(line for line in out.split("\n") if "<- worth it up to here" in line)
    assert row.split()[0] == curve.points[curve.knee or 0].setting
    assert curve.knee_text in " ".join(out.split())


def test_a_run_of_many_tasks_is_asked_less_and_says_so(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grid, "MAX_REPLAYED", 46 * 5)  # the demo has 46 tasks
    monkeypatch.setattr(grid, "COMPILED", 1)
    verdict = run.verdict()
    fewer = run.page_data(verdict).what_if
    found = [each for curve in (*fewer.curves, *fewer.pairs) for each in curve.points]
    assert len(verdict.what_ifs) < len(found) <= len(verdict.what_ifs) + 5
    assert {each.setting for each in verdict.what_ifs} <= {each.setting for each in found}
    assert re.findall(r"\d+", fewer.coarser)[:2] == [str(len(found)), "60"]  # asked, and not as many
    assert len(points(run.page_data(verdict, full=True))) > 50


# The timeline, the graph, the stacks ----------------------------------------------------------------------------------


def tasks(run: Run) -> list[tuple[Any, ...]]:
    with duckdb.connect(str(run.path), read_only=True) as connection:
        query = "SELECT worker_id, stage_id, launch_ms, finish_ms FROM tasks ORDER BY launch_ms"
        return connection.execute(query).fetchall()


def test_every_task_has_a_bar_and_no_lane_has_two_at_a_time(run: Run, page_data: PageData) -> None:
    found, bars = page_data.timeline, page_data.timeline.tasks
    seen = sorted(
        (found.workers.id[found.lanes[lane]], found.stages[stage], start, start + length)
        for lane, stage, start, length in zip(bars.lane, bars.stage, bars.start_ms, bars.length_ms, strict=True)
    )
    assert seen == sorted((worker, stage, round(start), round(end)) for worker, stage, start, end in tasks(run))
    assert list(found.lanes) == sorted(found.lanes)
    assert list(zip(bars.lane, bars.start_ms, strict=True)) == sorted(zip(bars.lane, bars.start_ms, strict=True))
    ends: dict[int, int] = {}
    for lane, start, length in zip(bars.lane, bars.start_ms, bars.length_ms, strict=True):
        assert start >= ends.get(lane, 0) - 1  # times are rounded
        ends[lane] = start + length
    assert bars.count == ()
    assert found.coarsened == ""


def test_short_tasks_are_drawn_together_where_there_are_too_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, few: None
) -> None:
    stages = [Stage(list(waves(200, 4, 2, ms=50))), Stage([*waves(60, 4, 2, ms=90), Task(4000)])]
    log = spark_logs.write(tmp_path / "log", stages, executors={"1": 2, "2": 2})
    run = query.profile(log, output=tmp_path / "run.duckdb")
    verdict = run.verdict()
    whole = run.page_data(verdict).timeline
    assert whole.coarsened == ""

    def reaches(bars: Any) -> dict[tuple[int, int], tuple[int, int]]:
        found: dict[tuple[int, int], tuple[int, int]] = {}
        for lane, stage, start, length in zip(bars.lane, bars.stage, bars.start_ms, bars.length_ms, strict=True):
            first, last = found.get((lane, stage), (start, start))
            found[lane, stage] = min(first, start), max(last, start + length)
        return found

    least = len(reaches(whole.tasks))
    assert least < len(whole.tasks.lane)
    for most in (least, 1):  # what is on another lane, or of another stage, is never one row
        monkeypatch.setattr(timeline, "MAX_BARS", most)
        fewer = run.page_data(verdict).timeline
        assert len(fewer.tasks.lane) == least
        assert sum(fewer.tasks.count) == len(whole.tasks.lane)
        assert f"{least} bars for {len(whole.tasks.lane)} tasks" in fewer.coarsened
        assert reaches(fewer.tasks) == reaches(whole.tasks)


def test_the_graph_is_that_of_the_run(run: Run, page_data: PageData) -> None:
    found = page_data.graph
    stages = {each.id: each for each in found.nodes if each.kind == "stage"}
    facts = {each.id: each for each in page_data.verdict.debug.stages}
    assert set(stages) == set(facts)
    for name, each in stages.items():
        assert each.resource_ms == facts[name].resource_ms
        assert each.path_ms == pytest.approx(facts[name].path_ms)
        assert each.spread.duration_ms[found.quantiles.index(0.5)] == pytest.approx(facts[name].median_ms)
        assert each.spread.duration_ms[-1] == facts[name].longest_ms
        assert each.spread.read_bytes[-1] == facts[name].most_bytes
    assert sum(each.path_ms for each in found.nodes) == pytest.approx(page_data.what_if.recorded_ms)
    assert len(found.source) == len(found.target) == len(found.edge_kind) > 0
    timed = {(each.scope, each.node_id): each.resource_ms for each in found.operators if each.resource_ms is not None}
    known = {(each.scope, each.node_id): each.resource_ms for each in page_data.verdict.debug.operators}
    assert timed
    assert all(known[key] == parts for key, parts in timed.items())


def test_the_stacks_of_the_tree_have_the_time_of_the_samples(run: Run, page_data: PageData) -> None:
    found = page_data.flames
    of_tasks = [number for number, stage in enumerate(found.sampled.stage) if stage >= 0]
    columns = [*found.sampled.resource_ms.values(), found.sampled.waiting_ms, found.sampled.unknown_ms]
    total = sum(float(np.array(column)[of_tasks].sum()) for column in columns)
    with duckdb.connect(str(run.path), read_only=True) as connection:
        row = connection.execute("SELECT sum(weight_ms) FROM samples WHERE task_id IS NOT NULL").fetchone()
        rows = connection.execute("SELECT DISTINCT frames FROM stacks JOIN samples USING (stack_id)").fetchall()
    assert total == pytest.approx(row[0], rel=1e-3)
    assert all(parent < node for node, parent in enumerate(found.parent))
    assert found.parent[0] == found.frame[0] == -1

    def way(node: int) -> tuple[str, ...]:
        return () if node == 0 else (*way(found.parent[node]), found.frames[found.frame[node]])

    assert not [each for each in found.frames if re.search(r"\$\$Lambda\$\d|0x[0-9a-f]{8}", each)]  # differ by JVM
    stacks = {tuple(plain_name(each) for each in frames[::-1]) for (frames,) in rows}
    beginnings = {stack[:length] for stack in stacks for length in range(len(stack) + 1)}
    assert {way(node) for node in range(len(found.parent))} <= beginnings
    labels = dict(zip(found.labels.frame, found.labels.shares, strict=True))
    assert len(labels) > 100
    assert all(sum(shares) == pytest.approx(1, abs=0.01) for shares in labels.values() if shares)
    assert sum(each is not None for each in found.labels.confidence) > 0.9 * len(labels)


def plain_name(frame: str) -> str:
    """Without its line, and without what a JVM calls a class that it made."""
    name = re.sub(r":\d+$", "", frame)
    name = re.sub(r"(\$\$Lambda|LambdaForm\$\w+)\W.*\.([^.]+)$", r"\1.\2", name)
    return re.sub(r"(Generated\w+Accessor|\$Proxy)\d+", r"\1", name)


def test_smallest_branches_merge_into_their_parent(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    verdict = run.verdict()
    whole = run.page_data(verdict).flames
    monkeypatch.setattr(flame_graph, "MAX_NODES", 500)
    fewer = run.page_data(verdict).flames
    assert whole is not None
    assert len(fewer.parent) <= 501
    assert "500 of" in fewer.coarsened or "501 of" in fewer.coarsened
    for name, column in whole.sampled.resource_ms.items():
        assert sum(fewer.sampled.resource_ms[name]) == pytest.approx(sum(column), rel=1e-3)


def test_a_run_without_samples_has_no_stacks(demo_log_run: Run, few: None) -> None:
    assert demo_log_run.page_data().flames is None


# HTML ---------------------------------------------------------------------------------------------------------------


def test_the_policy_permits_the_pages_own_script_and_nothing_else(data: Any) -> None:
    html = report.render(data)
    page = Page(html)
    policy = page.attribute("meta", "content", "http-equiv", "Content-Security-Policy")
    rules = dict(each.split(" ", 1) for each in policy.split("; "))
    (script,) = re.findall(r"<script>(.*?)</script>", html, re.DOTALL)
    (styles,) = re.findall(r"<style>(.*?)</style>", html, re.DOTALL)
    for name, text in (("script-src", script), ("style-src", styles)):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert rules[name] == f"'sha256-{digest}'"
    assert rules["default-src"] == rules["connect-src"] == rules["base-uri"] == rules["form-action"] == "'none'"
    fetching = {"src", "href", "srcset", "action", "formaction", "background", "data", "poster", "ping", "style"}
    for tag, attributes in page.elements:
        assert not fetching & set(attributes), tag
        assert not any(name.startswith("on") for name in attributes), tag
        assert tag not in ("link", "iframe", "object", "embed", "base", "form", "img")


def test_whatifs_without_a_script_say_how_their_times_are_known(data: Any) -> None:
    assert "runtime" in Page(report.render(data)).texts["th"]
    debug = {**data["verdict"]["debug"], "measure": "latency"}
    heads = Page(report.render({**data, "verdict": {**data["verdict"], "debug": debug}})).texts["th"]
    assert "latency" in heads
    assert "runtime" not in heads


def test_a_page_of_a_service_may_ask_that_service_alone(data: Any) -> None:
    html = report.render(data, live={"predict": "/runs/1/predict"})
    assert "connect-src &#39;self&#39;;" in html
    html = report.render(data, live={"predict": "https://perf.example.org:8443/runs/1/predict"})
    assert "connect-src https://perf.example.org:8443;" in html
    embedded = Page(html).texts["script"][0]
    assert json.loads(embedded)["live"] == {"predict": "https://perf.example.org:8443/runs/1/predict"}


def test_embedded_data_is_the_data_of_the_run(data: Any) -> None:
    html = report.render(data)
    assert json.loads(Page(html).texts["script"][0]) == {**json.loads(json.dumps(data)), "live": None}


def test_a_page_says_the_essential_without_a_script(data: Any, page_data: PageData) -> None:
    page = Page(report.render(data))
    text = " ".join(" ".join(part) for tag, part in page.texts.items() if tag not in ("script", "style"))
    page_text = page_data.page_text
    for sentence in (page_text.headline, page_text.rests_on, page_text.check, page_text.same):
        assert sentence in text
    for sentence in (page_text.recommendations[0].text, page_text.findings[0].text):
        assert sentence in text
    assert all(each.runtime in text and each.range in text for each in page_text.what_ifs)


def test_a_page_says_what_the_terminal_says(page_data: PageData, crystalperf: Answer, run: Run) -> None:
    _, out, _ = crystalperf("analyze", run.path, "--full")
    words = " ".join(out.split())
    page_text = page_data.page_text
    for sentence in (
        page_text.headline,
        page_text.rests_on,
        page_text.check,
        page_text.same,
        f"other: {page_text.other}",
    ):
        assert sentence in words
    for recommended in page_text.recommendations[:3]:  # the screen shows at most three
        assert recommended.text.removesuffix(".") in words
        assert recommended.saving in words
    for each in page_text.what_ifs:
        number = each.runtime.removesuffix(f" {page_text.figure.name}")
        assert f"{each.question} {each.setting} {number} {each.change}" in words


# The file -----------------------------------------------------------------------------------------------------------


def test_report_writes_the_page_that_analyze_writes(
    crystalperf: Answer, demo_log_run: Run, tmp_path: Path, few: None
) -> None:
    one, other = tmp_path / "one.html", tmp_path / "other.html"
    code, out, err = crystalperf("report", demo_log_run.path, "-o", one)
    assert (code, out, err) == (0, f"Saved as {one}\n", "")
    code, out, err = crystalperf("analyze", demo_log_run.path, "--html", other)
    assert (code, err) == (0, "")
    assert one.read_bytes() == other.read_bytes()
    assert f"crystalperf predict {demo_log_run.path}" not in out  # without samples the next step is to get some
    assert one.stat().st_mode & 0o777 == 0o600
    assert [each.name for each in tmp_path.iterdir()] == ["one.html", "other.html"] or len(
        list(tmp_path.iterdir())
    ) == 2


def test_a_page_has_the_name_of_its_run_with_all_dots(
    crystalperf: Answer, demo_log_run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, few: None
) -> None:
    monkeypatch.setenv("CRYSTALPERF_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "home" / "runs").mkdir(parents=True)
    shutil.copy(demo_log_run.path, tmp_path / "home" / "runs" / "my.run-1.duckdb")
    assert crystalperf("report", "my.run-1")[:2] == (0, "Saved as my.run-1.html\n")
    assert crystalperf("report", "home/runs/my.run-1.duckdb", "--force")[:2] == (0, "Saved as my.run-1.html\n")


def test_nothing_else_is_replaced_by_a_page(crystalperf: Answer, demo_log_run: Run, data: Any, tmp_path: Path) -> None:
    mine, page = tmp_path / "notes.txt", tmp_path / "page.html"
    mine.write_text("my notes")
    code, out, err = crystalperf("report", demo_log_run.path, "-o", mine, "--force")
    assert (code, out, mine.read_text()) == (1, "", "my notes")
    assert str(mine) in err
    data = json.loads(json.dumps(data))
    data["verdict"]["header"]["app_id"] = "app-<other>"
    report.keep(page, report.render(data), "app-<other>")
    before = page.read_bytes()
    code, _, err = crystalperf("report", demo_log_run.path, "-o", page)
    assert (code, page.read_bytes()) == (1, before)
    assert all(each in err for each in ("app-<other>", "app-20261121113629-0000", "--force"))
    assert err.count("\n") == 1
    report.keep(page, "its own again", "app-<other>")
    assert page.read_text() == "its own again"
    page.write_bytes(before)
    report.keep(page, "of another", "app-2", replace=True)
    assert page.read_text() == "of another"
    code, _, err = crystalperf("report", demo_log_run.path, "-o", tmp_path)
    assert (code, err.count("\n")) == (1, 1)
    assert "another place" in err


def test_a_page_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="not a folder"):
        report.keep(tmp_path / "file" / "page.html", "<html>", "app-1")
    assert [each.name for each in tmp_path.iterdir()] == ["file"]
