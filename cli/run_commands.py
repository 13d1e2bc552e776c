"""The commands analyze, profile, debug and predict: compute the answer, then render it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from crystalperf.cli import kept_answers
from crystalperf.cli.kept_answers import Answer, question
from crystalperf.cli.output import answer_text, print_message, progress, write, write_answer
from crystalperf.cli.remember import remember, remember_again
from crystalperf.cli.runs import STDIN, analyzed_run, find_run, named_files, profile_run, run_word
from crystalperf.cli.text import shell_word
from crystalperf.indexes.errors import SettingError
from crystalperf.query.results.answers import NextStep, Profiled, Sweep

if TYPE_CHECKING:
    from crystalperf.query.run import Other, Run


def analyze(
    paths: Sequence[str],
    output: str,
    app: str,
    indexes: Sequence[str],
    *,
    force: bool = False,
    full: bool = False,
    html: str = "",
    keeps: bool = True,
    as_json: bool,
) -> int:
    """Profile the inputs unless they are a run already, and print the verdict; returns the exit code."""
    options = (output, app, list(indexes), force, full, keeps, as_json)
    asked = None if html or STDIN in paths else question(named_files(paths), [*paths, *options])
    if asked is not None and (kept := kept_answers.find(asked)) is not None:
        write(kept.text)
        if kept.entry:
            remember_again(kept.entry)
        return 0
    with ExitStack() as opened:
        with progress() as step:
            run = analyzed_run(paths, output, app, indexes, step, replace=force)
            opened.enter_context(run.reading())  # once, for the answer and for the ledger
            answer = run.verdict(step, paged=bool(html))
            if html:
                from crystalperf.cli.page_command import write_page

                write_page(run, html, step, verdict=answer, replace=force)
        if as_json:
            text = answer_text(answer)
        else:
            from crystalperf.cli.screen import verdict_text

            text = verdict_text(answer, next_command(answer.next, run.path), shell_word(run_word(run.path)), full=full)
        write(text)
        entry = remember(run, "analyze", answer.what_ifs, answer.recommendations) if keeps else ""
    if asked is not None:
        kept_answers.keep(asked, run.path, Answer(text, entry))
    return 0


def profile(
    paths: Sequence[str],
    output: str,
    app: str,
    indexes: Sequence[str],
    *,
    force: bool = False,
    keeps: bool = True,
    as_json: bool,
) -> int:
    """Profile the inputs and store the run file; returns the exit code."""
    with progress() as step:
        run = profile_run(paths, output, app, indexes, step, replace=force)
    answer = Profiled(str(run.path), run.header())
    if as_json:
        write_answer(answer)
    else:
        from crystalperf.cli.render import profile_text

        write(profile_text(answer, f"crystalperf debug {shell_word(run_word(run.path))}"))
    if keeps:
        remember(run, "profile")
    return 0


def debug(run_text: str, scope: str, *, as_json: bool) -> int:
    """Print where the time of a scope went; returns the exit code."""
    run = find_run(run_text)
    with progress() as step:
        step("following the critical path")
        answer = run.debug(scope)
    if as_json:
        write_answer(answer)
    else:
        from crystalperf.cli.render import debug_text

        write(debug_text(run.header(), answer))
    return 0


def predict(
    run_text: str,
    settings: Sequence[str],
    recorded: Sequence[str],
    scope: str,
    *,
    replan: bool,
    predictor: str,
    reruns: Sequence[str] = (),
    keeps: bool = True,
    as_csv: bool = False,
    as_json: bool,
) -> int:
    """Print the runtime of a scope in one or several scenarios; returns 1 if no scenario has an answer."""
    if as_json and as_csv:
        raise SettingError("--json and --csv: choose one of them")
    run, others = find_run(run_text), other_runs(reruns)
    if predictor == "all":
        return _predict_by_all(run, settings, recorded, scope, replan, others, keeps, as_csv, as_json)
    with run.reading():  # opened once, for the answer and for the ledger
        with progress() as step:
            answer = run.what_if(
                settings,
                recorded=recorded,
                scope=scope,
                replan=replan,
                predictor=predictor or None,
                reruns=others,
                progress=step,
            )
        points = answer.points if isinstance(answer, Sweep) else (answer,)
        answered = any(each.is_answered for each in points)
        if as_json:
            write_answer(answer)
        elif as_csv:
            from crystalperf.cli.predictions import CSV_COLUMNS, csv_row
            from crystalperf.query.statements.rows import csv_parts

            write("".join(csv_parts(CSV_COLUMNS, iter([[csv_row(each) for each in points]]))))
        elif answered:
            from crystalperf.cli.predictions import prediction_text, sweep_text

            header = run.header()
            write(sweep_text(header, answer) if isinstance(answer, Sweep) else prediction_text(header, answer))
        if not answered:
            from crystalperf.cli.predictions import refusal_text

            print_message(f"crystalperf: {refusal_text(points)}")
        if keeps:
            remember(run, "predict", points, (), recorded, "" if predictor == "crystalperf" else predictor)
            for each in others:
                remember(each.run, "predict")
    return 0 if answered else 1


def _predict_by_all(
    run: Run,
    settings: Sequence[str],
    recorded: Sequence[str],
    scope: str,
    replan: bool,
    others: Sequence[Other],
    keeps: bool,
    as_csv: bool,
    as_json: bool,
) -> int:
    """Print the predictions of all predictors for one scenario; returns 1 if none has an answer."""
    if as_csv:
        raise SettingError("--csv has the predictions of one predictor; use --json for those of all")
    with run.reading(), progress() as step:
        answer = run.predictions(settings, recorded=recorded, scope=scope, replan=replan, reruns=others, progress=step)
        header = run.header()
    if as_json:
        write_answer(answer)
    else:
        from crystalperf.cli.predictors import predictions_text

        write(predictions_text(header, answer))
    if keeps:
        own = answer.predictions[0].prediction
        remember(run, "predict", (own,), (), recorded, "")
    return 0 if any(each.prediction.is_answered for each in answer.predictions) else 1


def other_runs(texts: Sequence[str]) -> list[Other]:
    """Other runs of the job as `--with` names them: RUN, or RUN,KEY=VALUE,…"""
    from crystalperf.query.run import Other

    found = []
    for text in texts:
        name, *settings = text.split(",")
        while settings and "=" not in settings[0]:  # the file name has a comma
            name = f"{name},{settings.pop(0)}"
        found.append(Other(name, find_run(name), tuple(settings)))
    return found


def next_command(step: NextStep, run: Path) -> str:
    """The next step as a shell command."""
    if step.kind == "setup":
        return f"crystalperf setup {shell_word(step.facts['framework'])}"
    if step.kind == "build":
        return f"crystalperf index build {shell_word(step.facts['index'])}"
    if step.kind == "report":
        return f"crystalperf report {shell_word(run_word(run))} -o run.html"
    return f"crystalperf predict {shell_word(run_word(run))} --set {step.facts['setting']}"
