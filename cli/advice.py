"""The commands `predict --prices` (the cheapest machines) and `advise` (the most informative next run to record)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from crystalperf.cli.output import print_message, progress, write, write_answer
from crystalperf.cli.page import Page
from crystalperf.cli.parts import listed
from crystalperf.cli.run_commands import other_runs
from crystalperf.cli.runs import find_run
from crystalperf.cli.text import TimeUnit, change, counted, printable, time_unit
from crystalperf.indexes.errors import SettingError
from crystalperf.query.text.sentences import text_of, texts_of

if TYPE_CHECKING:
    from crystalperf.query.results.answers import Advice, Choice, Header, Offer

SHOWN = 20
"""Maximum rows of a table of machines; --json has all."""


def priced(
    run_text: str,
    machines: str,
    ran_on: str,
    deadline: str,
    settings: Sequence[str],
    recorded: Sequence[str],
    reruns: Sequence[str],
    *,
    as_json: bool,
) -> int:
    """Print the runtime and the price of the run on other machines; returns 1 if none has an answer."""
    from crystalperf.query.advise.machine_prices import duration_ms

    if not machines or not ran_on:
        raise SettingError("prices need --prices FILE and --on NAME, the run's own machine in that table; give both")
    run, others = find_run(run_text), other_runs(reruns)
    header = run.header()
    with progress() as step:
        answer = run.priced(
            Path(machines),
            ran_on,
            counts=_counts(settings, header),
            deadline_ms=duration_ms(deadline) if deadline else None,
            recorded=recorded,
            reruns=others,
            progress=step,
        )
    answered = any(each.price is not None for each in answer.offers)
    if as_json:
        write_answer(answer)
    elif answered:
        write(choice_text(header, answer))
    if not answered:
        reasons = dict.fromkeys(reason for each in answer.offers for reason in each.refused)
        why = "; ".join(texts_of(reasons, answer.words)) or "none is available in that number"
        print_message(f"crystalperf: there is no prediction for any machine of the table: {why}")
    return 0 if answered else 1


def advise(run_text: str, settings: Sequence[str], reruns: Sequence[str], *, as_json: bool) -> int:
    """Print which next run would narrow the prediction intervals most; returns 1 if there are no intervals."""
    run, others = find_run(run_text), other_runs(reruns)
    with progress() as step:
        step("comparing possible next runs")
        answer = run.advise(settings, reruns=others)
    if as_json:
        write_answer(answer)
    elif answer.questions:
        write(advice_text(run.header(), answer))
    if not answer.questions:
        print_message("crystalperf: no prediction of this run has a 90 % range, so another run would not narrow one")
    return 0 if answer.questions else 1


def _counts(settings: Sequence[str], header: Header) -> tuple[int, ...]:
    """The numbers of machines to predict for, from `--set workers=2,4,8`."""
    word = header.vocabulary.word_of("workers")
    found: list[int] = []
    for text in settings:
        key, _, values = text.partition("=")
        parts = values.split(",")
        if key not in ("workers", word) or not all(each.isdecimal() and int(each) > 0 for each in parts):
            raise SettingError(f"'{text}': with --prices, set only the number of machines, as in {word}=2,4,8")
        found += [int(each) for each in parts]
    return tuple(found)


def choice_text(header: Header, answer: Choice) -> str:
    """A table of machines, with the best choice first; at least one machine has a price."""
    unit, page = time_unit(answer.runtime_ms), Page()
    deadline = f", deadline {unit.text(answer.deadline_ms)}" if answer.deadline_ms is not None else ""
    page.line(f"{printable(header.name)}: cost on other machines{deadline}")
    page.line()
    best, likely = answer.cheapest, answer.likely
    least = min((each.price for each in answer.offers if each.price), default=answer.price)
    if best is not None:
        sure = "" if answer.deadline_ms is None else " (19 of 20 reruns meet the deadline)"
        page.strong(f"{_machines(best)}: {_money(best.price, least)} and {unit.text(best.predicted_ms or 0.0)}{sure}.")
    else:
        page.strong("No machine of the table meets the deadline in 19 of 20 reruns.")
    if likely is not None:
        page.paragraph(
            f"{_machines(likely)} would cost {_money(likely.price, least)} and meet the deadline in most reruns:"
            f" {unit.text(likely.predicted_ms or 0.0)}."
        )
    page.paragraph(
        f"The recorded run had {answer.workers} × {printable(answer.machine)}: {_money(answer.price, least)} and"
        f" {unit.text(answer.runtime_ms)}."
    )
    page.line()
    known = [each for each in answer.offers if each.price is not None]
    shown = [each for each in known if each.pareto_optimal or each in (best, likely)] or known
    shown = shown[:SHOWN]
    heads = ["machines", "price", f"runtime [{unit.name}]", "90 % range", "change"]
    if answer.deadline_ms is not None:
        heads.append("in time")
    rows = [_row(each, answer, unit, least) for each in shown]
    page.table(heads, rows, "<>>>>" + "<" * (answer.deadline_ms is not None), cut=0)
    left = len(known) - len(shown)
    if left > 0:
        page.paragraph(
            f"Not shown: {counted(left, 'choice')} that cost more and take longer than another; --json has all."
        )
    refused = [each for each in answer.offers if each.price is None]
    for reason in dict.fromkeys(each.refused[0] for each in refused if each.refused):
        those = [_machines(each) for each in refused if each.refused[:1] == (reason,)]
        page.paragraph(f"Not known: {', '.join(those)}; {printable(text_of(reason, answer.words))}.", hanging="  ")
    words = header.vocabulary
    listed(
        page,
        "Assumed",
        [
            f"each {words.worker} has its own machine, which you pay for while the run lasts",
            f"the {words.driver} and the storage cost the same everywhere; the price does not include them",
            "prices are per hour, and you pay for parts of an hour in proportion",
        ],
    )
    return page.text()


def _row(offer: Offer, answer: Choice, unit: TimeUnit, least: float) -> list[str]:
    low, high = offer.interval_ms or (None, None)
    predicted_ms = offer.predicted_ms or 0.0
    cells = [
        _machines(offer),
        _money(offer.price, least),
        unit.number(predicted_ms),
        f"{unit.number(low)} to {unit.number(high)}" if low is not None else "",
        change(predicted_ms, answer.runtime_ms),
    ]
    return [*cells, offer.meets_deadline or ""] if answer.deadline_ms is not None else cells


def _machines(offer: Offer) -> str:
    return printable(f"{offer.workers} × {offer.machine}")


def _money(price: float | None, least: float) -> str:
    """A price as a number, since the table names no currency; the decimals give the `least` price three digits."""
    decimals = max(2 - math.floor(math.log10(least)), 0) if least > 0 else 2
    return "?" if price is None else f"{price:,.{decimals}f}".replace(",", " ")


def advice_text(header: Header, answer: Advice) -> str:
    """The recommended next run, and how much it would narrow the prediction intervals."""
    page = Page()
    page.line(printable(header.name))
    page.line()
    if answer.runs:
        best = answer.runs[0]
        how = "once more unchanged" if best.setting == "unchanged" else f"once with {best.setting}"
        page.strong(
            f"Run the job {how}: 90 % ranges narrow from ± {_mean(answer.half_width_shares)} to"
            f" ± {_mean(best.half_width_shares)} on average."
        )
        page.paragraph("Then add that run to your predictions: `crystalperf predict … --with RUN`.")
        page.line()
    heads = ["scenario", "now", *(each.setting for each in answer.runs[:4])]
    rows = [
        [
            question,
            _percent(answer.half_width_shares[number]),
            *(_percent(each.half_width_shares[number]) for each in answer.runs[:4]),
        ]
        for number, question in enumerate(answer.questions)
    ]
    page.table(heads, rows, "<" + ">" * (len(heads) - 1))
    page.paragraph("Columns: half width of the 90 % range now, and after one more run with that setting.")
    return page.text()


def _mean(shares: Sequence[float]) -> str:
    return _percent(sum(shares) / len(shares)).removeprefix("± ")


def _percent(share: float) -> str:
    return f"± {100 * share:.0f} %"
