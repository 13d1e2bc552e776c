"""Entry points of other packages: annotators, schedulers, predictors, and what happens where one is broken."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

from crystalperf.indexes.errors import InputError, SettingError
from crystalperf.query import profile
from crystalperf.query.attribution.code.decide import NumberedStacks
from crystalperf.query.execution.execution import Execution
from crystalperf.query.execution.scenario import Scenario
from crystalperf.query.execution.scheduling import Policy, Waiting
from crystalperf.query.frameworks import Frames, Framework, Reader
from crystalperf.query.frameworks.registry import frameworks
from crystalperf.query.frameworks.spark.framework import SPARK
from crystalperf.query.inputs.containers import LogFile
from crystalperf.query.inputs.discover import discover
from crystalperf.query.inputs.files import Head, LogPart
from crystalperf.query.run import Run
from crystalperf.query.trace import plugins
from crystalperf.query.trace.contract import Trace
from tests.refusals import is_one_line, refused


class FakeEntry(NamedTuple):
    """An entry point that loads what it is given, or fails as a stranger's module does."""

    name: str
    value: str
    what: Any

    def load(self) -> Any:
        if isinstance(self.what, Exception):
            raise self.what
        return self.what


Brought = Callable[..., None]


@pytest.fixture
def brought(monkeypatch: pytest.MonkeyPatch) -> Iterator[Brought]:
    """Bring in entry points for one test: brought("predictors", half=function)."""
    there: dict[str, list[FakeEntry]] = {}
    found = SimpleNamespace(select=lambda group: there.get(group, []))
    monkeypatch.setattr(plugins, "_entry_points", lambda: found)

    def bring(group: str, **entries: Any) -> None:
        there[f"crystalperf.{group}"] = [FakeEntry(name, f"stranger:{name}", what) for name, what in entries.items()]
        plugins._loaded.cache_clear()

    bring("frameworks")
    yield bring
    plugins._loaded.cache_clear()


def test_an_annotator_is_asked_after_the_framework(brought: Brought) -> None:
    brought("annotators", acme=lambda class_name, _: "scaffolding" if class_name.startswith(("acme", "java")) else None)
    table = NumberedStacks(SPARK)
    for key in (("acme.Pool", "run", 1), ("other.Pool", "run", 1), ("java.util.ArrayList", "add", 1)):
        table._frame(key)
    assert table.roles == ["scaffolding", None, "collection"]


def test_a_predictor_is_asked_by_name(brought: Brought, demo_run: Run) -> None:
    asked: list[tuple[Execution, Scenario]] = []

    def half(execution: Execution, scenario: Scenario) -> float:
        asked.append((execution, scenario))
        return execution.runtime_ms / 2

    brought("predictors", half=half)
    answer = demo_run.predict(["cores=2x"], predictor="half")
    assert answer.predicted_ms == pytest.approx(answer.runtime_ms / 2)
    assert answer.interval_ms is None
    assert asked[0][1].ratio("cores") == 2
    assert [each.predicted_ms for each in demo_run.sweep(["cores=2x,4x"], predictor="half").points] == [
        answer.predicted_ms
    ] * 2
    assert demo_run.predict(["input=2x"], predictor="half").work_ratio == 2


def test_a_predictor_that_is_not_there_is_named(brought: Brought, demo_run: Run) -> None:
    with refused(SettingError, "guess", "amdahl"):
        demo_run.predict(["cores=2x"], predictor="guess")
    brought("predictors", half=lambda execution, _: execution.runtime_ms)
    with refused(SettingError, "guess", "amdahl", "half"):
        demo_run.predict(["cores=2x"], predictor="guess")


def test_a_scheduler_of_the_runs_name_gives_out_slots(brought: Brought, demo_run: Run) -> None:
    def last_first(ready: list[Waiting]) -> int:
        return int(np.argmax([each.stage.priority for each in ready]))

    seen: list[dict[str, str]] = []

    def schedule(properties: dict[str, str]) -> Policy:
        seen.append(properties)
        return Policy(last_first)

    brought("schedulers", FIFO=schedule)
    again = Run(demo_run.path)
    assert again.baseline().predicted_ms is not None
    assert "spark.app.name" not in seen[0]
    assert len(seen) == 1


def test_a_broken_package_is_named_and_takes_no_answer_away(brought: Brought, demo: Path) -> None:
    brought("frameworks", bad=ImportError("no module named\nnothing"))
    assert plugins.entries("frameworks") == {}
    (problem,) = (each for each in discover([demo]).problems if each.name == "broken_plugin")
    assert (problem.severity, problem.origin) == ("error", "stranger:bad")
    is_one_line(problem.meaning, "no module named nothing")


# Frameworks that fail ------------------------------------------------------------


@pytest.fixture
def failing(demo: Path) -> Iterator[Callable[..., None]]:
    """A framework of another package in addition to the built-in ones, for one test."""

    def stranger(**functions: Any) -> None:
        frames = Frames(**{key: functions.pop(key) for key in ("annotate", "process") if key in functions})
        usual = {"recognise": lambda _head: None, "read": lambda _log: None, "frames": frames}
        reader = Reader(**{**usual, **functions})
        frameworks()["stranger"] = Framework(name="stranger", title="Stranger", reader=reader)

    yield stranger
    frameworks().pop("stranger", None)


def test_a_package_that_fails_at_a_file_takes_no_answer_away(failing: Callable[..., None], tmp_path: Path) -> None:
    def fails(_head: Head) -> LogPart:
        raise KeyError("id")

    failing(recognise=fails)
    (tmp_path / "notes.txt").write_text("nothing that anybody knows\n")
    (tmp_path / "log").write_text(
        '{"Event":"SparkListenerApplicationStart","App Name":"job","App ID":"app-1","Timestamp":1700000000000}\n'
    )
    found = discover([tmp_path])
    assert [each.app_id for each in found.applications] == ["app-1"]
    (problem,) = (each for each in found.problems if each.name == "broken_plugin")
    is_one_line(problem.meaning, "Stranger", "KeyError('id')")


def test_package_that_cannot_read_its_log_is_not_our_bug(failing: Callable[..., None], tmp_path: Path) -> None:
    def recognise(head: Head) -> LogPart | None:
        mine = head.text.startswith(b"stranger")
        return LogPart(head.part, head.folder, head.name, head.size, "run-1", started=0.0) if mine else None

    def fails(_log: LogFile) -> Trace:
        raise KeyError("finishTime")

    failing(recognise=recognise, read=fails)
    place = tmp_path / "log"
    place.write_text("stranger\n")
    with refused(InputError, "Stranger", "tests.test_plugins", "finishTime"):
        profile([place], output=tmp_path / "run.duckdb")
