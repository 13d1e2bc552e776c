"""What analyze, profile, debug and predict do: ask the run, then render the answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cli.output import progress, say, write, write_json
from cli.runs import find_run, profile_run, run_word
from cli.text import shell_word
from indexes.errors import CrystalPerfError, NoAnswerError
from query.answers.values import Debug, Header, Prediction, Sweep

if TYPE_CHECKING:
    from query.run import Run

QUESTIONS = (
    ("twice the slots per executor", "cores=2x"),
    ("twice the executors", "executors=2x"),
    ("CPU twice as fast", "cpu_speed=2x"),
    ("network twice as fast", "network=2x"),
    ("network ten times as fast", "network=10x"),
    ("disk twice as fast", "disk=2x"),
    ("twice the memory", "memory=2x"),
    ("half the memory", "memory=0.5x"),
)
"""What `analyze` asks of every run: what it means to a reader, and the setting."""

_NEXT_SWEEP = {"cpu": "cores=2x,4x,8x", "disk": "disk=2x,4x,8x", "net": "network=2x,4x,8x", "other": "cores=2x,4x,8x"}


@dataclass(frozen=True)
class WhatIf:
    """One row of the what-if table.  `prediction` is None where even asking failed; then `refused` says why."""

    question: str
    setting: str
    prediction: Prediction | None
    refused: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        known = self.prediction.as_json() if self.prediction is not None else {}
        return {
            "question": self.question,
            "set": self.setting,
            "predicted_ms": known.get("predicted_ms"),
            "interval_ms": known.get("interval_ms"),
            **({"bound_ms": known["bound_ms"]} if "bound_ms" in known else {}),
            "refused": list(self.refused),
        }


@dataclass(frozen=True)
class Verdict:
    """All that `analyze` says of a run."""

    path: Path
    header: Header
    debug: Debug
    what_ifs: tuple[WhatIf, ...]
    next_command: str

    def as_json(self) -> dict[str, Any]:
        """The answer of `debug`, with what the run is, the what-if table and the next step."""
        return {
            "run": str(self.path),
            **header_json(self.header),
            **self.debug.as_json(),
            "what_if": [each.as_json() for each in self.what_ifs],
            "next": self.next_command,
        }


def header_json(header: Header) -> dict[str, Any]:
    """What a run is, as JSON."""
    return {
        "app_id": header.app_id,
        "name": header.name,
        "framework": header.framework,
        "framework_version": header.framework_version,
        "executors": header.executors,
        "slots_per_executor": header.slots_per_executor,
        "duration_ms": round(header.duration_ms, 3),
        "complete": header.complete,
        "has_samples": header.has_samples,
        "indexes": list(header.indexes),
        "problems": [{"severity": severity, "meaning": meaning} for severity, meaning in header.problems],
    }


def analyze(paths: Sequence[str], output: str, app: str, indexes: Sequence[str], *, as_json: bool) -> int:
    """Read, explain, and ask the usual what-ifs."""
    with progress() as step:
        run = profile_run(paths, output, app, indexes, step)
        step("following the critical path")
        header, debug = run.header(), run.debug()
        what_ifs = []
        for question, setting in QUESTIONS:
            step(f"what if: {question}")
            what_ifs.append(_what_if(run, question, setting))
    verdict = Verdict(run.path, header, debug, tuple(what_ifs), _next_command(run, header, debug))
    if as_json:
        write_json(verdict.as_json())
    else:
        from cli.render import verdict_text

        write(verdict_text(verdict))
    return 0


def profile(paths: Sequence[str], output: str, app: str, indexes: Sequence[str], *, as_json: bool) -> int:
    """Read and keep."""
    with progress() as step:
        run = profile_run(paths, output, app, indexes, step)
    header = run.header()
    if as_json:
        write_json({"run": str(run.path), **header_json(header)})
    else:
        from cli.render import profile_text

        write(profile_text(header, run.path, f"crystalperf debug {shell_word(run_word(run.path))}"))
    return 0


def debug(run_text: str, scope: str, *, as_json: bool) -> int:
    """Where the time of a scope went."""
    run = find_run(run_text)
    with progress() as step:
        step("following the critical path")
        answer = run.debug(scope)
    if as_json:
        write_json(answer.as_json())
    else:
        from cli.render import debug_text

        write(debug_text(run.header(), answer))
    return 0


def predict(
    run_text: str, settings: Sequence[str], recorded: Sequence[str], scope: str, *, replan: bool, as_json: bool
) -> int:
    """The runtime of a scope in a changed world, or in each of several; 1 where nothing can be answered."""
    run = find_run(run_text)
    with progress() as step:
        step("replaying the run")
        try:
            answer = run.predict(settings, recorded=recorded, scope=scope, replan=replan)
        except NoAnswerError as error:
            answer = _refusal(run, settings, scope, error)
    points = answer.points if isinstance(answer, Sweep) else (answer,)
    answered = any(each.predicted_ms is not None for each in points)
    if as_json:
        write_json(answer.as_json())
    elif answered:
        from cli.render import prediction_text, sweep_text

        header = run.header()
        write(sweep_text(header, answer) if isinstance(answer, Sweep) else prediction_text(header, answer))
    if not answered:
        from cli.render import refusal_text

        say(f"crystalperf: {refusal_text(points)}")
    return 0 if answered else 1


def _what_if(run: Run, question: str, setting: str) -> WhatIf:
    try:
        answer = run.predict([setting])
    except CrystalPerfError as error:  # a question that makes no sense for this run is part of the answer
        return WhatIf(question, setting, None, (str(error),))
    assert isinstance(answer, Prediction)
    return WhatIf(question, setting, answer, answer.refused)


def _refusal(run: Run, settings: Sequence[str], scope: str, error: NoAnswerError) -> Prediction:
    """The answer where the question itself cannot be asked of this run: what is known of the run, and the reason."""
    unchanged = run.predict(["cpu_speed=1x"], scope=scope)
    assert isinstance(unchanged, Prediction)
    return unchanged.refusing(", ".join(settings), str(error))


def _next_command(run: Run, header: Header, debug: Debug) -> str:
    if not header.has_samples:
        return "crystalperf setup spark"
    if not header.indexes:
        return f"crystalperf index build {header.framework}-{header.framework_version}"
    return f"crystalperf predict {shell_word(run_word(run.path))} --set {_NEXT_SWEEP.get(debug.bottleneck, 'cores=2x')}"
