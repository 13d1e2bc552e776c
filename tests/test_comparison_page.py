"""The page of a comparison: its data, redaction, and the views in a real browser."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import crystalperf as cp
from crystalperf import report
from crystalperf.query.results.comparison_page import ComparisonPage
from crystalperf.query.run import comparison_page
from crystalperf.query.text.as_json import as_json
from crystalperf.query.text.figures import time_unit
from tests.served import serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

    from crystalperf.query.run import Run

ROOT = Path(__file__).parent.parent
AFTER = ROOT / "lab/recordings/again/q9/base-0-00-jfr20"
AXE = ROOT / "web/node_modules/axe-core/axe.min.js"


@pytest.fixture(scope="module")
def after_run(tmp_path_factory: pytest.TempPathFactory, shared_home: Path) -> Run:
    """The same query on a faster network, more CPU, and with another version of the recording's settings."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CRYSTALPERF_HOME", str(shared_home))
        return cp.profile([AFTER], output=tmp_path_factory.mktemp("after") / "nightly-0042.duckdb")


@pytest.fixture(scope="module")
def data(demo_run: Run, after_run: Run) -> ComparisonPage:
    return comparison_page(demo_run, after_run)


@pytest.fixture(scope="module")
def log_data(log_run: Run, demo_log_run: Run) -> ComparisonPage:
    """The page of two logs without samples, of the same query on other resources."""
    return comparison_page(log_run, demo_log_run)


# Data -----------------------------------------------------------------------------------------------------------------


def test_parts_lead_from_the_runtime_before_to_the_one_after(log_data: ComparisonPage) -> None:
    found = log_data.comparison
    total = found.before.runtime_ms + sum(each.ms for each in log_data.page_text.parts)
    assert total == pytest.approx(found.after.runtime_ms)
    assert found.after.runtime_ms > 2 * found.before.runtime_ms


def test_timelines_show_the_stages_that_match(log_data: ComparisonPage) -> None:
    rows = log_data.comparison.stages
    for name, side in (("before", log_data.before), ("after", log_data.after)):
        ids = [getattr(each, name) for each in rows]
        assert len(side.row) == len(side.timeline.stages)
        assert {ids[row] for row in side.row if row >= 0} == {each for each in ids if each is not None}
        assert all(ids[row] == stage for row, stage in zip(side.row, side.timeline.stages, strict=True) if row >= 0)
        runtime_ms = getattr(log_data.comparison, name).runtime_ms
        assert sum(side.resource_ms.values()) == pytest.approx(runtime_ms, rel=0.01)
    both = {row for row in log_data.before.row if row >= 0} & {row for row in log_data.after.row if row >= 0}
    assert len(both) > 5


@pytest.mark.later
def test_stacks_of_both_runs_are_in_the_difference(data: ComparisonPage) -> None:
    found = data.flames
    assert found is not None
    assert data.page_text.no_flames == ""
    for side, columns in enumerate((found.sampled.before_ms, found.sampled.after_ms)):
        assert sum(map(sum, columns.values())) == pytest.approx(found.total_ms[side], rel=1e-2)
    assert any(each.beyond_noise for each in found.functions)
    net = sum(found.sampled.after_ms["net"]) - sum(found.sampled.before_ms["net"])
    assert net < 0  # the run before had a link of 10 Mbit/s


def test_paths_of_run_files_are_not_on_the_page(log_data: ComparisonPage, log_run: Run, demo_log_run: Run) -> None:
    html = report.render_comparison(log_data)
    for run in (log_run, demo_log_run):
        assert str(run.path) not in html


def test_sides_without_samples_have_a_sentence_in_place_of_stacks(log_data: ComparisonPage) -> None:
    assert log_data.flames is None
    assert "samples" in log_data.page_text.no_flames


@pytest.mark.later
def test_a_side_of_two_runs_shows_the_one_whose_stages_are_compared(
    demo_run: Run, demo_log_run: Run, after_run: Run
) -> None:
    found = comparison_page([demo_run, after_run], demo_log_run)
    shown = {each.before for each in found.comparison.stages if each.before is not None}
    assert shown == {each for each, row in zip(found.before.timeline.stages, found.before.row, strict=True) if row >= 0}
    assert found.before.timeline.end_ms == pytest.approx(after_run.debug().runtime_ms, rel=0.3)
    assert len(found.comparison.before.runs) == 2


@pytest.mark.later
def test_redacted_page_has_no_private_name_and_the_same_figures(
    data: ComparisonPage, demo_run: Run, after_run: Run
) -> None:
    shared = comparison_page(demo_run, after_run, redact=True)
    html = report.render_comparison(shared)
    assert shared.redacted
    private = set[str]()
    for run in (demo_run, after_run):
        private |= {run.header().app_id, run.header().name, str(run.path), run.path.stem}
        with run.reading() as connection:
            private |= {row[0] for row in connection.execute("SELECT DISTINCT host FROM workers").fetchall() if row[0]}
            properties = connection.execute("SELECT properties FROM runs").fetchall()[0][0]
            private |= set(re.findall(r"/(?:home|root|work|tmp)/[\w./-]+", " ".join(properties.values())))
    hidden = {each for each in private if each not in ("127.0.0.1", "localhost") and len(each) > 3}
    assert len(hidden) >= 6
    assert not [each for each in hidden if each in html]
    assert numbers(as_json(shared)["comparison"]) == numbers(as_json(data)["comparison"])
    assert shared.flames is not None
    assert data.flames is not None
    assert shared.flames.sampled == data.flames.sampled
    kept = {each.name for each in shared.flames.functions}
    assert kept == {each.name for each in data.flames.functions}  # functions stay: the answer is about them


def numbers(value: Any) -> list[float]:
    """All numbers of a JSON value, in its order, without those in texts."""
    if isinstance(value, dict):
        return [each for part in value.values() for each in numbers(part)]
    if isinstance(value, list):
        return [each for part in value for each in numbers(part)]
    return [value] if isinstance(value, int | float) and not isinstance(value, bool) else []


# HTML -----------------------------------------------------------------------------------------------------------------


def test_page_requests_nothing_and_replaces_only_its_own_kind(log_data: ComparisonPage, tmp_path: Path) -> None:
    html = report.render_comparison(log_data)
    assert "connect-src 'none'" in unescape(html[:2_000])
    assert not re.search(r"<(?:link|iframe|img|object|embed|base|form)\b", html.partition('id="crystalperf-data"')[0])
    sides = ([each.app_id for each in side.runs] for side in (log_data.comparison.before, log_data.comparison.after))
    name = report.comparison_name(*sides)
    place = tmp_path / "page.html"
    report.keep(place, html, name)
    report.keep(place, html, name)
    with pytest.raises(cp.CrystalPerfError, match="not of another"):
        report.keep(place, html, "another")


def test_compare_writes_the_page_and_replaces_no_other_file(
    crystalperf: Callable[..., tuple[int, str, str]], log_run: Run, demo_log_run: Run, tmp_path: Path
) -> None:
    place = tmp_path / "slower.html"
    sides = (log_run.path, demo_log_run.path)
    assert crystalperf("compare", *sides, "--html", place)[0] == 0
    first = place.read_text(encoding="utf-8")
    assert demo_log_run.header().app_id in first
    assert crystalperf("compare", *sides, "--html", place)[0] == 0
    code, _, wrong = crystalperf("compare", *reversed(sides), "--html", place)
    assert (code, wrong.count("\n")) == (1, 1)
    assert place.read_text(encoding="utf-8") == first
    assert crystalperf("compare", *sides, "--html", place, "--redact")[0] == 0
    hidden = place.read_text(encoding="utf-8")
    for run in (log_run, demo_log_run):
        assert run.header().app_id not in hidden
        assert run.path.stem not in hidden
    assert crystalperf("compare", *sides, "--redact")[0] == 2


HOSTILE = ("<img src=x onerror=hacked=1>", "</script><script>hacked=1</script>", "\u202ereversed", "x" * 100_000)


def poisoned(page: dict[str, Any]) -> dict[str, Any]:
    """The page with hostile names for the stages, functions, settings, workers and applications."""
    for number, each in enumerate(page["comparison"]["stages"]):
        each["name"] = HOSTILE[number % len(HOSTILE)]
    for side in ("before", "after"):
        page[side]["name"] = HOSTILE[0]
        page[side]["timeline"]["workers"]["id"] = [HOSTILE[1] for _ in page[side]["timeline"]["workers"]["id"]]
    page["page_text"] |= {"title": HOSTILE[1], "headline": HOSTILE[0], "warnings": list(HOSTILE)}
    for number, each in enumerate(page["page_text"]["parts"]):
        each["text"] = HOSTILE[number % len(HOSTILE)]
    page["page_text"]["settings"]["rows"] = [[each, each, each] for each in HOSTILE]
    page["flames"]["frames"] = [HOSTILE[number % 4] for number, _ in enumerate(page["flames"]["frames"])]
    for number, each in enumerate(page["flames"]["functions"]):
        each["name"] = HOSTILE[number % len(HOSTILE)]
    return page


# Browser --------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def places(data: ComparisonPage, demo_log_run: Run, after_run: Run, tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("pages")
    made = {
        "samples": as_json(data),
        "no samples": as_json(comparison_page(demo_log_run, after_run)),
        "hostile": poisoned(as_json(data)),
    }
    found = {}
    for name, page in made.items():
        found[name] = folder / f"{name.replace(' ', '-')}.html"
        found[name].write_text(report.render_comparison(page), encoding="utf-8")
    return found


@pytest.fixture
def open_page(chromium: Browser) -> Iterator[Callable[..., Page]]:
    """Open a page; nothing may go wrong in it, and it may request nothing but itself."""
    pages, wrong, requested = list[Any](), list[str](), list[str]()

    def call(place: Path, width: int = 1280, **options: Any) -> Page:
        page = chromium.new_page(viewport={"width": width, "height": 900}, **options)
        pages.append(page)
        page.set_default_timeout(120_000)
        page.on("console", lambda said: wrong.append(said.text) if said.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("request", lambda request: requested.append(request.url))
        page.goto(place.as_uri())
        page.wait_for_selector("#headline")
        return page

    yield call
    for each in pages:
        each.close()
    assert not wrong
    assert len(requested) == len(pages)


@pytest.mark.later
@pytest.mark.parametrize("kind", ["samples", "no samples", "hostile"])
@pytest.mark.parametrize("width", [400, 1280, 2560])
def test_page_fits_its_screen_and_runs_no_name(
    kind: str, width: int, places: dict[str, Path], open_page: Callable[..., Page]
) -> None:
    page = open_page(places[kind], width)
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert page.evaluate("typeof hacked") == "undefined"
    assert page.locator("img, iframe").count() == 0
    assert (page.locator(".flame-canvas").count() == 1) == (kind != "no samples")
    if kind == "hostile":
        assert HOSTILE[0] in page.inner_text("#headline")
        assert "\u202e" not in page.inner_text("body")


@pytest.mark.later
def test_waterfall_is_a_table_from_before_to_after(
    data: ComparisonPage, places: dict[str, Path], open_page: Callable[..., Page]
) -> None:
    page = open_page(places["samples"])
    unit = time_unit(data.comparison.before.runtime_ms)
    figures = page.locator(".waterfall tbody td.figure").all_inner_texts()
    assert plain(figures[0]) == unit.text(data.comparison.before.runtime_ms)
    assert plain(figures[-1]) == unit.text(data.comparison.after.runtime_ms)
    for each, part in zip(figures[1:-1], data.page_text.parts, strict=True):
        assert plain(each).startswith(("+" if part.ms > 0 else "") + unit.text(part.ms))


@pytest.mark.later
def test_a_stage_is_chosen_in_both_timelines_by_the_keyboard(
    places: dict[str, Path], open_page: Callable[..., Page]
) -> None:
    page = open_page(places["samples"])
    pictures = page.locator(".timeline-canvas")
    assert pictures.count() == 2

    def drawn() -> list[str]:
        page.wait_for_timeout(200)
        return [str(pictures.nth(side).evaluate("canvas => canvas.toDataURL()")) for side in (0, 1)]

    before = drawn()
    page.locator(".stages tbody button").first.focus()
    page.keyboard.press("Enter")
    assert page.locator(".stages tr.chosen").count() == 1
    chosen = drawn()
    assert chosen[0] != before[0]
    assert chosen[1] != before[1]
    page.keyboard.press("Escape")
    assert page.locator(".stages tr.chosen").count() == 0
    pictures.nth(0).focus()
    page.keyboard.press("+")  # both timelines have one time scale
    zoomed = drawn()
    assert zoomed[0] != before[0]
    assert zoomed[1] != before[1]
    page.get_by_role("button", name="Both runs").click()
    assert drawn() == before
    page.get_by_label("Colours of the timelines").select_option("resource")
    assert drawn() != before


@pytest.mark.later
def test_flame_graph_names_the_change_of_a_frame(
    data: ComparisonPage, places: dict[str, Path], open_page: Callable[..., Page]
) -> None:
    page = open_page(places["samples"])
    flames = data.flames
    assert flames is not None
    unit = time_unit(data.comparison.before.runtime_ms)
    before, after = flames.total_ms
    assert f"{unit.number(before)} → {unit.text(after)}" in plain(page.inner_text(".detail"))
    page.locator(".flame-canvas").focus()
    names = set()
    for _ in range(5):
        page.keyboard.press("ArrowDown")
        names.add(page.inner_text(".frame-name"))
        assert "noise of sampling" in page.inner_text(".detail")
    assert len(names) == 5
    assert names <= set(flames.frames)
    page.get_by_label("Resource").select_option("net")
    assert unit.text(sum(flames.sampled.after_ms["net"])) in plain(page.inner_text(".detail"))
    rows = page.locator(".functions tbody tr:visible")
    assert rows.first.locator("th").inner_text() == flames.functions[0].name
    assert rows.first.locator("td").nth(3).inner_text()[0] in "+-"


@pytest.mark.later
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(scheme: str, places: dict[str, Path], open_page: Callable[..., Page]) -> None:
    if not AXE.is_file():
        pytest.skip("web/node_modules is missing (make page)")
    page = open_page(places["samples"], color_scheme=scheme)
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate("axe.run()")
    reported = [(each["id"], [node["target"] for node in each["nodes"]][:5]) for each in found["violations"]]
    assert not reported
    assert len(found["passes"]) > 15


@pytest.mark.later
def test_two_runs_are_chosen_in_the_list_of_the_service(
    chromium: Browser, log_run: Run, demo_log_run: Run, tmp_path: Path
) -> None:
    home = tmp_path / "service" / "home"
    home.mkdir(parents=True)
    before, after = log_run.path.stem, demo_log_run.path.stem
    with serving(home, [log_run.path, demo_log_run.path]) as served:
        page = chromium.new_page()
        page.set_default_timeout(120_000)
        wrong = list[str]()
        page.on("console", lambda said: wrong.append(said.text) if said.type in ("error", "warning") else None)
        page.goto(f"http://127.0.0.1:{served.port}/")
        page.get_by_label(f"before: {before}", exact=True).check()
        page.get_by_label(f"after: {after}", exact=True).check()
        page.get_by_role("button", name="Compare the two runs").click()
        page.wait_for_selector("#headline")
        found = served.get("/api/compare", params={"before": before, "after": after}).json()
        unit = time_unit(max(found[side]["runtime_ms"] for side in ("before", "after")))
        assert unit.text(found["after"]["runtime_ms"]) in plain(page.inner_text("#headline"))
        page.goto(f"http://127.0.0.1:{served.port}/compare?after={after}")
        assert page.locator("select[name=after]").input_value() == after
        for address in ("", "compare"):
            page.goto(f"http://127.0.0.1:{served.port}/{address}")
            if AXE.is_file():
                page.evaluate(AXE.read_text(encoding="utf-8"))
                assert page.evaluate("axe.run().then(found => found.violations.map(each => each.id))") == []
        page.close()
    assert not wrong


def plain(text: str) -> str:
    """Without the spaces that only the setting of a figure brings."""
    return " ".join(text.split())


def test_data_of_the_page_are_described_by_its_schema(log_data: ComparisonPage) -> None:
    import jsonschema

    schema = json.loads((ROOT / "docs/schema/comparison-page.json").read_text(encoding="utf-8"))
    jsonschema.validate(as_json(log_data), schema)
