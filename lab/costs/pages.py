"""The cost of a report page: `python -m lab.costs.pages` writes pages, and opens them in a browser.

    the demo
      written in 1.2 s in addition to the analysis, whose predictions took 0.4 s
      size 0.76 MB
      first picture after 290 ms, ready after 330 ms
      a slider's move 5.0 ms in the middle, 9.1 ms at most
    a generated run, 13,500 tasks, 1,012,830 samples
      …

Times are CPU time, of this process and of the browser's main thread, because the machine's load changes these least.
The first picture is the time of the page's own tasks up to the browser's first paint, `ready` up to the last task.  A
slider's move includes its layout and paint; the output has the median and the maximum of 50 moves.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from crystalperf import query, report
from lab.browser import browser
from lab.costs import made_log, made_samples

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from crystalperf.query.run import Run

ROOT = Path(__file__).parents[2]
DEMO = ROOT / "lab/recordings/demo-q9"
TASKS = 13_500
STABLE_MS = 500
MOVES = 50
TRACED = ["toplevel", "loading", "blink.user_timing", "disabled-by-default-devtools.timeline"]


@dataclass(frozen=True)
class Made:
    """A page and its CPU time: that of the verdict, which a page shares with `analyze`, and the rest."""

    html: str
    verdict_s: float
    page_s: float


@dataclass(frozen=True)
class Opened:
    """CPU time of a page in a browser's main thread, ms."""

    first_picture_ms: float
    ready_ms: float
    moves_ms: tuple[float, ...]


def runs(scratch: Path) -> Iterator[tuple[str, Run]]:
    """Runs with their descriptions, in the scratch folder."""
    yield "the demo", query.profile(DEMO, output=scratch / "demo.duckdb")
    log = scratch / "made.log"
    with log.open("w", encoding="utf-8") as stream:
        made_log.write(stream, TASKS)
    made = query.profile(log, output=scratch / "made.duckdb")
    samples = made_samples.add(made.path)
    yield f"a generated run, {TASKS:,} tasks, {samples:,} samples", query.open_run(made.path)


def made(run: Run) -> Made:
    """The page of a run whose verdict is not computed yet."""
    began = time.process_time()
    verdict = run.verdict()
    answered = time.process_time()
    html = report.render(run.page_data(verdict))
    return Made(html, answered - began, time.process_time() - answered)


def opened(chromium: Browser, place: Path) -> Opened:
    """Open a page and move its first slider."""
    page = chromium.new_page(viewport={"width": 1280, "height": 900})
    page.goto("about:blank")  # so that the start of the browser's process does not count
    chromium.start_tracing(page=page, categories=TRACED)
    page.goto(place.as_uri())
    page.wait_for_selector("#headline")
    page.evaluate("() => new Promise((done) => new PerformanceObserver(done).observe({type: 'paint', buffered: true}))")
    page.wait_for_timeout(STABLE_MS)
    first_ms, ready_ms = main_thread_ms(json.loads(chromium.stop_tracing())["traceEvents"])
    asked = page.context.new_cdp_session(page)
    asked.send("Performance.enable", {"timeDomain": "threadTicks"})

    def spent_ms() -> float:
        found = {each["name"]: each["value"] for each in asked.send("Performance.getMetrics")["metrics"]}
        return 1000 * float(found["TaskDuration"])

    slider, moves = page.locator(".card input").first, []
    slider.scroll_into_view_if_needed()
    for step in range(MOVES):
        before = spent_ms()
        slider.evaluate(
            """async (slider, at) => {
                slider.value = String(at);
                slider.dispatchEvent(new Event('input'));
                await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
            }""",
            step / (MOVES - 1),
        )
        moves.append(spent_ms() - before)
    page.close()
    return Opened(first_ms, ready_ms, tuple(sorted(moves)))


def main_thread_ms(events: list[dict[str, Any]]) -> tuple[float, float]:
    """CPU time of the page's main thread up to the first picture, and in all, ms, from a trace of the browser."""
    drawn = max((each for each in events if each["name"] == "firstContentfulPaint"), key=lambda each: each["ts"])
    began = next(
        each
        for each in events
        if each["name"] == "navigationStart"
        and each["args"]["data"]["navigationId"] == drawn["args"]["data"]["navigationId"]
    )
    main = next(
        each["tid"]
        for each in events
        if each["name"] == "thread_name" and each["pid"] == began["pid"] and each["args"]["name"] == "CrRendererMain"
    )
    tasks = [
        (each["ts"], each["tdur"] / 1000)
        for each in events
        if each["name"] == "RunTask" and (each["pid"], each.get("tid")) == (began["pid"], main) and "tdur" in each
    ]
    mine = [(at, ms) for at, ms in tasks if at >= began["ts"]]
    return sum(ms for at, ms in mine if at < drawn["ts"]), sum(ms for _, ms in mine)


def main() -> int:
    """Print the cost of pages."""
    with TemporaryDirectory() as folder, browser() as chromium:
        for name, run in runs(Path(folder)):
            cost = made(run)
            place = Path(folder) / "page.html"
            place.write_text(cost.html, encoding="utf-8")
            seen = opened(chromium, place)
            print(f"{name}")
            print(
                f"  written in {cost.page_s:.1f} s in addition to the analysis, whose predictions took"
                f" {cost.verdict_s:.1f} s"
            )
            print(f"  size {len(cost.html.encode()) / 1e6:.2f} MB")
            print(f"  first picture after {seen.first_picture_ms:.0f} ms, ready after {seen.ready_ms:.0f} ms")
            print(
                f"  a slider's move {statistics.median(seen.moves_ms):.1f} ms (median),"
                f" {seen.moves_ms[-1]:.1f} ms at most",
                flush=True,
            )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
