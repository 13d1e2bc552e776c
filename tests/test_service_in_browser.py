"""A run's whole way through the service in a real browser: uploaded, followed, read, asked for more, asked in SQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from crystalperf.query.text.figures import time_unit
from crystalperf.service.endpoints.pages import page as render
from crystalperf.service.jobs import Job
from tests.served import Served, serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.later

ROOT = Path(__file__).parent.parent
LOG = ROOT / "tests/data/eventlog/q9.zstd"
AXE = ROOT / "web/node_modules/axe-core/axe.min.js"
STATEMENT = "SELECT stage_id, tasks, skew FROM stage_resources ORDER BY task_ms DESC LIMIT 3"
FOLLOWED = """new MutationObserver(() => {
  const step = document.querySelector("#steps li");
  if (step) sessionStorage.followed = step.textContent;
}).observe(document, {childList: true, subtree: true})"""
"""Remembers the first step that a job's page shows; the browser may leave that page at any time."""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, shared_home: Path) -> Iterator[Served]:
    home = tmp_path_factory.mktemp("service") / "home"
    home.mkdir()
    (shared_home / "indexes").mkdir(parents=True, exist_ok=True)
    (home / "indexes").symlink_to(shared_home / "indexes")
    with serving(home) as found:
        yield found


@pytest.fixture
def page(chromium: Browser) -> Iterator[Page]:
    """A page in which nothing may go wrong."""
    opened, wrong = chromium.new_page(viewport={"width": 1280, "height": 900}), list[str]()
    opened.on("console", lambda message: wrong.append(message.text) if message.type in ("error", "warning") else None)
    opened.on("pageerror", lambda error: wrong.append(str(error)))
    yield opened
    opened.close()
    assert not wrong


def test_lost_job_stream_is_polled_again(served: Served, chromium: Browser) -> None:
    waiting = render("job.html.j2", here="runs", job=Job("1", "waiting", 0, ["a.zstd"])).body
    shown = iter([bytes(waiting).decode(), "<h1>looked at again</h1>"])
    page = chromium.new_page()
    page.route("**/jobs/1", lambda asked: asked.fulfill(body=next(shown), content_type="text/html"))
    page.route("**/events", lambda asked: asked.fulfill(status=503))  # as above the maximum of clients
    page.goto(f"http://127.0.0.1:{served.port}/jobs/1")
    page.get_by_text("looked at again").wait_for()
    page.close()


def test_an_uploaded_log_is_followed_read_predicted_and_queried(served: Served, page: Page) -> None:
    page.add_init_script(FOLLOWED)
    page.goto(f"http://127.0.0.1:{served.port}/")
    assert page.locator("main table").count() == 0
    page.set_input_files("input[type=file]", LOG)
    page.get_by_role("button", name="Profile").click()

    page.wait_for_url("**/runs/*", timeout=120_000)
    assert page.evaluate("sessionStorage.followed")
    run = page.url.rpartition("/")[2]
    verdict = served.get(f"/api/runs/{run}/verdict").json()
    unit = time_unit(verdict["debug"]["runtime_ms"])
    headline = page.inner_text(".headline")
    assert unit.text(verdict["debug"]["runtime_ms"]) in plain(headline)

    page.get_by_role("link", name="Open the report").click()
    assert plain(page.inner_text("#headline")) == plain(headline)
    page.locator(".card input").first.press("PageUp")  # the next setting with a prediction in the page
    setting = page.inner_text(".result code").rpartition("--set ")[2]
    answer = served.post(f"/api/runs/{run}/predict", {"settings": [setting]}).json()
    assert page.inner_text(".how") == "predicted"
    assert page.inner_text(".predicted strong") == unit.text(answer["predicted_ms"])
    page.locator(".card input").first.press("ArrowRight")  # a setting that only the service predicts
    page.locator(".how.exact").wait_for()
    settings = [each.strip() for each in page.inner_text(".result code").split("--set ")[1:]]
    assert settings != [setting]
    answer = served.post(f"/api/runs/{run}/predict", {"settings": settings}).json()
    assert page.inner_text(".predicted strong") == unit.text(answer["predicted_ms"])

    page.go_back()
    page.get_by_role("link", name="Query in SQL").click()
    assert page.locator("select[name=run]").input_value() == run
    page.locator("aside summary").get_by_text("stage_resources", exact=True).click()
    assert "the longest over the median" in page.inner_text("aside details[open]")
    page.fill("textarea", STATEMENT)
    page.get_by_role("button", name="Run", exact=True).click()
    page.locator("#rows").wait_for()
    rows = served.post(f"/api/runs/{run}/sql", {"statement": STATEMENT}).json()
    shown = [row.locator("td").all_inner_texts() for row in page.locator("#rows tbody tr").all()]
    assert [(stage, float(tasks)) for stage, tasks, _ in shown] == [(row["stage_id"], row["tasks"]) for row in rows]


ADDRESSES = ("/", "/runs/{run}?set=cores=2x", "/indexes", "/indexes/spark-4.0.1?text=shuffle", "/sql?run={run}",
             "/functions?name=BlockManager.getRemoteBytes&index=spark-4.0.1", "/runs/none")  # fmt: skip


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_fits_a_phone_and_axe_finds_nothing_serious(scheme: str, served: Served, chromium: Browser) -> None:
    if not AXE.is_file():
        pytest.skip("web/node_modules is not there (make page)")
    sent = served.client.post("/api/runs", files={"files": ("q9.zstd", LOG.read_bytes())}).json()
    run = served.job_over(sent["id"])["run"]
    page = chromium.new_page(
        viewport={"width": 400, "height": 800}, color_scheme="light" if scheme == "light" else "dark"
    )
    reported: dict[tuple[str, str], list[Any]] = {}
    for address in ADDRESSES:
        page.goto(f"http://127.0.0.1:{served.port}{address.format(run=run)}")
        assert page.evaluate("document.documentElement.scrollWidth") == 400, address
        page.evaluate(AXE.read_text(encoding="utf-8"))
        found = page.evaluate("axe.run()")
        serious = [each for each in found["violations"] if each["impact"] in ("serious", "critical")]
        reported |= {(address, each["id"]): [node["target"] for node in each["nodes"]][:5] for each in serious}
        assert len(found["passes"]) > 8
    page.close()
    assert not reported


def plain(text: str) -> str:
    """Without the spaces and quotes that only the setting of a sentence brings."""
    return " ".join(text.replace("`", "").split())
