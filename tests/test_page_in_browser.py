"""The page of a run in a real browser: its figures are those of predict, it asks nobody, and names stay text."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from copy import deepcopy
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

import pytest

import crystalperf as cp
from crystalperf.query.text.as_json import as_json
from crystalperf.query.text.figures import time_unit
from crystalperf.report.page import render

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Dialog, Page

    from crystalperf.query.run import Run

pytestmark = pytest.mark.later

ROOT = Path(__file__).parent.parent
MANY_TASKS = ROOT / "tests/data/runs/rolled"
FLINK = ROOT / "tests/data/flink/join-and-sort.json.gz"
TRAINING = ROOT / "tests/data/training/torch-2-ranks"
AXE = ROOT / "web/node_modules/axe-core/axe.min.js"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pages")


@pytest.fixture(scope="module")
def pages(demo_run: Run, demo_log_run: Run, shared_home: Path, folder: Path) -> dict[str, Path]:
    """Pages by what they are of: with samples, without, of many tasks, of another framework."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CRYSTALPERF_HOME", str(shared_home))
        runs = {
            "demo": demo_run,
            "no samples": demo_log_run,
            "many tasks": cp.profile([MANY_TASKS], output=folder / "many.duckdb"),
            "flink": cp.profile([FLINK], output=folder / "flink.duckdb"),
            "training": cp.profile([TRAINING], output=folder / "training.duckdb"),
        }
    found = {}
    for name, run in runs.items():
        found[name] = folder / f"{name.replace(' ', '-')}.html"
        found[name].write_text(render(run), encoding="utf-8")
    return found


class Opened:
    """A page and all that went wrong in it."""

    def __init__(self, page: Page, address: str) -> None:
        self.page = page
        self.wrong: list[str] = []
        self.asked: list[str] = []
        page.on(
            "console", lambda message: self.wrong.append(message.text) if message.type in ("error", "warning") else None
        )
        page.on("pageerror", lambda error: self.wrong.append(str(error)))
        page.on("dialog", self._dialog)
        page.on("request", lambda request: self.asked.append(request.url))
        page.goto(address)
        page.wait_for_selector("#headline")

    def _dialog(self, dialog: Dialog) -> None:
        self.wrong.append(f"dialog: {dialog.message}")
        dialog.dismiss()


@pytest.fixture
def open_page(chromium: Browser) -> Iterator[Callable[..., Opened]]:
    """Open an address; at the end nothing may have gone wrong, and nobody been asked but for the page."""
    opened: list[Opened] = []

    def call(place: Path | str, width: int = 1280, **options: Any) -> Opened:
        page = chromium.new_page(viewport={"width": width, "height": 900}, **options)
        opened.append(Opened(page, place.as_uri() if isinstance(place, Path) else place))
        return opened[-1]

    yield call
    for each in opened:
        each.page.close()
    for each in opened:
        assert not each.wrong
        assert len(each.asked) == 1 or not each.asked[0].startswith("file:")


FIRST_PAINT = """() => new Promise((resolve) => {
  const look = (list) => {
    const first = list.getEntriesByName("first-contentful-paint")[0];
    if (first) resolve(first.startTime);
  };
  new PerformanceObserver(look).observe({ type: "paint", buffered: true });
})"""
"""When a page was first drawn, ms; waits for that, as a page may be asked before."""

KINDS = ("demo", "no samples", "many tasks", "flink", "training")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("width", [400, 1280, 2560])
def test_a_page_says_the_verdict_and_fits_its_screen(
    kind: str, width: int, pages: dict[str, Path], open_page: Callable[..., Opened]
) -> None:
    page = open_page(pages[kind], width).page
    page_text = data_of(pages[kind])["page_text"]
    assert plain(page.inner_text("#headline")) == plain(page_text["headline"])
    assert [plain(each) for each in page.locator(".actions li .gain").all_inner_texts()] == [
        plain(each["saving"]) for each in page_text["recommendations"] if each["saving"]
    ]
    assert page.evaluate("document.documentElement.scrollWidth") == width
    first = page.evaluate(FIRST_PAINT)
    print(f"{kind}, {width} px wide: first contents after {first:.0f} ms")


@pytest.mark.parametrize("kind", KINDS)
def test_slider_settings_agree_with_predict(
    kind: str, pages: dict[str, Path], open_page: Callable[..., Opened]
) -> None:
    page = open_page(pages[kind]).page
    what_if = data_of(pages[kind])["what_if"]
    asked = 0
    for number, curve in enumerate(what_if["curves"]):
        card = page.locator(".card").nth(number)
        card.locator("input").press("Home")
        points = {each["setting"]: each for each in curve["points"]}
        for _ in range(len(points) + 1):
            shown = page.locator(".result code").all_inner_texts()
            point = points.pop(shown[0].rpartition("--set ")[2], None) if shown else None
            if point is not None:
                asked += 1
                same_as(page, point, what_if["recorded_ms"])
            card.locator("input").press("PageUp")
        assert not points, "the slider was never there"
        page.get_by_role("button", name="Reset").click()
    assert asked == sum(len(each["points"]) for each in what_if["curves"])


def same_as(page: Page, point: dict[str, Any], recorded_ms: float) -> None:
    """The page shows the point of the grid."""
    unit = time_unit(recorded_ms)
    if point["predicted_ms"] is None:
        assert page.inner_text(".how") == "not predicted"
        assert plain(page.inner_text(".result .reason")) == plain(point["refused"])
        return
    assert page.inner_text(".how") == "predicted"
    assert page.inner_text(".predicted strong") == unit.text(point["predicted_ms"])
    assert page.inner_text(".predicted .change") == unit.change(point["predicted_ms"], recorded_ms)
    low, high = point["interval_ms"]
    assert page.inner_text(".range p") == f"90 % range: {unit.number(low)} to {unit.text(high)}"


@pytest.mark.parametrize("setting", ["cores=2x", "executors=4x", "network=10x", "memory=0.5x", "cpu_speed=2x"])
def test_page_of_the_demo_agrees_with_the_command_line(
    setting: str, demo_run: Run, pages: dict[str, Path], open_page: Callable[..., Opened], crystalperf: Any
) -> None:
    code, out, _ = crystalperf("predict", demo_run.path, "--set", setting, "--json")
    assert code == 0
    answer = json.loads(out)
    page = open_page(pages["demo"]).page
    page.locator(f".ticks button[title='{setting}']").click()
    unit = time_unit(answer["runtime_ms"])
    assert page.inner_text(".predicted strong") == unit.text(answer["predicted_ms"])
    low, high = answer["interval_ms"]
    assert page.inner_text(".range p") == f"90 % range: {unit.number(low)} to {unit.text(high)}"
    assert page.inner_text(".result code").endswith(f"--set {setting}")
    lengths = {each["id"]: each for each in answer["stages"]}
    for row in page.locator(".stage-row:visible").all():
        mine = lengths[row.locator(".id").inner_text()]
        figures = row.locator(".figure").all_inner_texts()
        assert figures[:2] == [unit.number(mine["recorded_ms"]), unit.number(mine["predicted_ms"])]


def test_two_sliders_show_the_pair_that_predict_answered(
    demo_run: Run, pages: dict[str, Path], open_page: Callable[..., Opened]
) -> None:
    page = open_page(pages["demo"]).page
    what_if = data_of(pages["demo"])["what_if"]
    pair = what_if["pairs"][0]
    for key in pair["keys"]:
        page.locator(f".ticks button[title='{key}=2x']").click()
    settings = [f"{key}=2x" for key in pair["keys"]]
    answer = demo_run.predict(settings)
    assert answer.predicted_ms is not None
    assert page.inner_text(".how") == "predicted"
    assert page.inner_text(".predicted strong") == time_unit(answer.runtime_ms).text(answer.predicted_ms)


def test_figure_between_two_answers_is_interpolated_marked_and_quick(
    pages: dict[str, Path], open_page: Callable[..., Opened]
) -> None:
    page = open_page(pages["demo"]).page
    slider = page.locator(".card input").nth(0)
    for _ in range(3):  # from the recorded 2 slots to 3 and 4, which were asked, and to 5, which was not
        slider.press("ArrowRight")
    texts = page.inner_text(".how"), page.inner_text(".predicted strong")
    assert texts[0] == "interpolated"
    assert texts[1].startswith("≈ ")
    took = page.evaluate(
        """() => {
            const slider = document.querySelector('.card input');
            const times = [];
            for (let at = 0; at <= 1; at += 0.02) {
                const began = performance.now();
                slider.value = String(at);
                slider.dispatchEvent(new Event('input'));
                document.body.getBoundingClientRect();  // with the layout that it causes
                times.push(performance.now() - began);
            }
            return times.sort((a, b) => a - b);
        }"""
    )
    print(f"a slider's move: {took[len(took) // 2]:.1f} ms in the middle, {took[-1]:.1f} ms at most (100 allowed)")


def test_other_combinations_are_asked_of_the_service_and_without_one_the_command_is_shown(
    demo_run: Run, pages: dict[str, Path], open_page: Callable[..., Opened]
) -> None:
    def move(page: Page) -> None:
        for setting in ("disk=4x", "memory=2x", "network=4x"):
            page.locator(f".ticks button[title='{setting}']").click()

    page = open_page(pages["demo"]).page
    move(page)
    assert page.inner_text(".how") == "not on this page"
    assert page.inner_text(".predicted strong") == "–"
    assert page.inner_text(".result code").count("--set ") == 3

    with serving(demo_run) as address:
        page = open_page(address).page
        move(page)
        awaited(page, ".how", lambda text: text == "predicted")
        settings = page.inner_text(".result code").split("--set ")[1:]
        answer = demo_run.predict([each.strip() for each in settings])
        assert answer.predicted_ms is not None
        assert page.inner_text(".predicted strong") == time_unit(answer.runtime_ms).text(answer.predicted_ms)


class serving:  # a context manager, called like a function
    """Serves a run's page and answers its questions, as the query service would."""

    def __init__(self, run: Run) -> None:
        html = render(run, live={"predict": "/predict"}).encode()

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                found = self.path == "/"
                self.reply(html if found else b"", "text/html", 200 if found else 204)

            def do_POST(self) -> None:
                asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
                self.reply(json.dumps(as_json(run.predict(asked["settings"]))).encode(), "application/json")

            def reply(self, body: bytes, kind: str, code: int = 200) -> None:
                self.send_response(code)
                self.send_header("content-type", kind)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    def __enter__(self) -> str:
        Thread(target=self.server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{self.server.server_port}/"

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()


def test_a_chosen_stage_filters_every_view(pages: dict[str, Path], open_page: Callable[..., Opened]) -> None:
    page = open_page(pages["demo"]).page
    whole = page.locator(".detail").inner_text()
    node = page.locator(".node", has_text="stage:14.0")
    node.focus()
    page.keyboard.press("Enter")
    assert "stage:14.0" in page.inner_text(".chip")
    assert node.get_attribute("aria-pressed") == "true"
    assert page.locator(".node.faded").count() == page.locator(".node").count() - 1
    assert page.locator(".detail").inner_text() != whole
    named = page.locator(".operators li .name").all_inner_texts()
    debug = data_of(pages["demo"])["verdict"]["debug"]
    assert named
    assert set(named) <= {each["name"] for each in debug["operators"] if "stage:14.0" in each["stages"]}
    assert page.locator(".stage-row.chosen .id").all_inner_texts() == ["stage:14.0"]
    assert page.locator(".spread.chosen .id").all_inner_texts() == ["stage:14.0"]
    page.keyboard.press("Escape")
    assert page.locator(".chip").is_hidden()
    assert page.locator(".detail").inner_text() == whole


def test_the_timeline_zooms_pans_and_is_brushed(pages: dict[str, Path], open_page: Callable[..., Opened]) -> None:
    page = open_page(pages["many tasks"]).page
    canvas, overview = page.locator(".timeline-canvas"), page.locator(".overview-canvas")
    canvas.scroll_into_view_if_needed()

    def drawn() -> str:
        page.wait_for_timeout(60)
        return str(canvas.evaluate("canvas => canvas.toDataURL()"))

    drawings = [drawn()]
    canvas.focus()
    acts: list[Callable[[], object]] = [
        lambda: page.keyboard.press("+"),
        lambda: page.keyboard.press("ArrowRight"),
        lambda: overview.drag_to(overview, source_position={"x": 300, "y": 20}, target_position={"x": 500, "y": 20}),
        lambda: canvas.drag_to(canvas, source_position={"x": 300, "y": 90}, target_position={"x": 400, "y": 90}),
        lambda: canvas.dblclick(position={"x": 500, "y": 100}),
    ]
    for act in acts:
        act()
        drawings.append(drawn())
    assert len(set(drawings)) == len(drawings)
    page.get_by_role("button", name="Whole run").click()
    page.keyboard.press("Escape")
    assert drawn() == drawings[0]


@pytest.mark.parametrize("pattern", ["Shuffle", "(a+)+$", "(", "(?=x)", "x{1000}{1000}"])
def test_no_expression_hangs_the_search(pattern: str, pages: dict[str, Path], open_page: Callable[..., Opened]) -> None:
    page = open_page(pages["demo"]).page
    page.fill(".search input", pattern)
    found = awaited(page, ".found", lambda text: text != "")
    assert ("%" in found) == (pattern in ("Shuffle", "(a+)+$"))


def test_flame_graph_is_walked_by_keys_and_describes_a_frame(
    pages: dict[str, Path], open_page: Callable[..., Opened]
) -> None:
    page = open_page(pages["demo"]).page
    page.locator(".flame-canvas").focus()
    names = set()
    for _ in range(6):
        page.keyboard.press("ArrowDown")
        names.add(page.inner_text(".frame-name"))
    assert len(names) == 6
    frames = data_of(pages["demo"])["flames"]["frames"]
    assert names <= set(frames)
    page.get_by_role("button", name="Bottom-up").click()
    page.locator(".flame-canvas").focus()
    page.keyboard.press("ArrowDown")
    reported = page.inner_text(".detail")
    assert page.inner_text(".frame-name") in frames
    assert "time" in reported


def test_path_of_a_training_is_shown_by_operator(pages: dict[str, Path], open_page: Callable[..., Opened]) -> None:
    page = open_page(pages["training"]).page
    debug = data_of(pages["training"])["verdict"]["debug"]
    times = {each["name"]: sum(each["resource_ms"].values()) for each in debug["path_operators"]}
    if more := page.locator("#path .more").all():
        more[0].click()
    rows = page.locator("#path .path-operator:not(.head)")
    assert rows.locator(".name").all_inner_texts() == sorted(times, key=lambda name: -times[name])
    longest = max(times, key=lambda name: times[name])
    assert rows.first.inner_text().split("\n")[0] == longest
    assert f"{100 * times[longest] / sum(debug['resource_ms'].values()):.0f} %" in rows.first.inner_text()
    assert open_page(pages["demo"]).page.locator("#path").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("kind", ["demo", "flink", "training"])
def test_axe_finds_nothing_serious(
    kind: str, scheme: str, pages: dict[str, Path], open_page: Callable[..., Opened]
) -> None:
    if not AXE.is_file():
        pytest.skip("web/node_modules is not there (make page)")
    page = open_page(pages[kind], color_scheme=scheme).page
    page.locator(".card input").first.press("PageUp")
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate("axe.run()")
    serious = [each for each in found["violations"] if each["impact"] in ("serious", "critical")]
    reported = [(each["id"], [node["target"] for node in each["nodes"]][:5]) for each in serious]
    assert not reported
    assert len(found["passes"]) > 15


def test_a_page_prints_on_a4(pages: dict[str, Path], chromium: Browser) -> None:
    page = chromium.new_page()
    page.goto(pages["demo"].as_uri())
    page.wait_for_selector("#headline")
    printed = page.pdf(format="A4", print_background=True)
    page.close()
    assert printed.startswith(b"%PDF")
    assert 2 <= printed.count(b"/Type /Page\n") + printed.count(b"/Type /Page ") <= 14


HOSTILE = [
    *json.loads((ROOT / "tests/data/hostile-names.json").read_text(encoding="utf-8")),
    *("x" * 1_000_000, "\U0001f4a5" * 5_000, "\u0301" * 2_000),
]
"""Names that somebody could give a query, a table or a host: sheets of cross-site scripting, controls, sizes."""


def test_hostile_names_are_text_and_run_nothing(demo_run: Run, folder: Path, open_page: Callable[..., Opened]) -> None:
    page_data = as_json(demo_run.page_data())
    place = folder / "hostile.html"
    place.write_text(render(poisoned(deepcopy(page_data))), encoding="utf-8")
    clean = folder / "clean.html"
    clean.write_text(render(page_data), encoding="utf-8")
    page, other = open_page(place).page, open_page(clean).page
    count = "document.querySelectorAll('{}').length"
    for each in ("script", "style", "link", "iframe", "img", "object", "embed", "form", "meta", "base"):
        assert page.evaluate(count.format(each)) == other.evaluate(count.format(each)), each
    while page.locator(".more").count():
        page.locator(".more").first.click()
    for node in page.locator(".node").all()[:4]:
        node.click()
    page.locator(".flame-canvas").focus()
    for _ in range(5):
        page.keyboard.press("ArrowDown")
    page.fill(".search input", "script")
    page.mouse.move(600, 600)
    page.locator(".timeline-canvas").hover()
    page.wait_for_timeout(300)
    assert page.evaluate("typeof hacked") == "undefined"
    assert len(HOSTILE) >= 60
    assert page.evaluate("document.documentElement.scrollWidth") == 1280
    shown = page.inner_text("body")
    for each in ("<img src=x onerror=hacked=1>", "</script><script>hacked=1</script>", "<svg onload=hacked=1>"):
        assert each in shown
    assert "\u202e" not in shown


def poisoned(page_data: dict[str, Any]) -> dict[str, Any]:
    """The same page with every name of the log replaced by a hostile one."""
    names = iter(HOSTILE * 1_000)
    known: dict[str, str] = {}

    def other(text: str) -> str:
        known.setdefault(text, next(names) + f" {len(known)}")
        return known[text]

    graph, timeline, page_text = page_data["graph"], page_data["timeline"], page_data["page_text"]
    ids = [each["id"] for each in graph["nodes"]]
    for each in (*graph["nodes"], *graph["scopes"], *page_data["verdict"]["debug"]["operators"]):
        each["name"] = other(each["name"])
    for each in graph["nodes"]:
        each["id"] = other(each["id"])
    for each in page_data["verdict"]["debug"]["critical_path"]:
        each["id"], each["name"] = other(each["id"]), other(each["name"])
    for each in page_data["verdict"]["debug"]["operators"]:
        each["stages"] = [other(stage) for stage in each["stages"]]
    timeline["stages"] = [other(each) for each in timeline["stages"]]
    timeline["workers"]["id"] = [other(each) for each in timeline["workers"]["id"]]
    page_data["what_if"]["stages"] = [other(each) for each in page_data["what_if"]["stages"]]
    page_data["flames"]["frames"] = [other(each) if number % 3 else HOSTILE[number % len(HOSTILE)]
                                   for number, each in enumerate(page_data["flames"]["frames"])]  # fmt: skip
    page_text["title"] = HOSTILE[0]
    page_text["facts"] = [*HOSTILE]
    page_text["findings"] = [{**page_text["findings"][0], "text": each, "advice": each} for each in HOSTILE]
    page_text["not_recorded"] = [*HOSTILE]
    assert ids
    return page_data


def awaited(page: Page, selector: str, wanted: Callable[[str], bool]) -> str:
    """The text of an element, once it is the one that is wanted; in vain after five seconds.

    Playwright's own waiting for a condition evaluates text, which the page's policy refuses.
    """
    for _ in range(100):
        text = page.inner_text(selector)
        if wanted(text):
            return text
        page.wait_for_timeout(50)
    raise AssertionError(f"{selector} still says {text!r}")


def data_of(page: Path) -> dict[str, Any]:
    """The data that a page holds."""
    text = page.read_text(encoding="utf-8").partition('id="crystalperf-data">')[2].partition("</script>")[0]
    found: dict[str, Any] = json.loads(text)
    return found


def plain(text: str) -> str:
    """Without the spaces and quotes that only the setting of a sentence brings."""
    return " ".join(text.replace("`", "").split())


def test_committed_assets_are_the_build_of_web() -> None:
    if not (ROOT / "web/node_modules/esbuild").is_dir():
        pytest.skip("web/node_modules is not there (make page)")
    assets = [ROOT / f"report/assets/{name}" for name in ("page.js", "page.css", "comparison.js")]
    before = [each.read_bytes() for each in assets]
    subprocess.run(["node", "build.mjs"], cwd=ROOT / "web", check=True, capture_output=True)
    assert [each.read_bytes() for each in assets] == before
    page, style, comparison = map(len, before)
    assert max(page, comparison) + style <= 300 * 1024
