"""Results of the lab as Markdown tables."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from scipy.stats import binomtest

from lab.pages import head
from lab.runs.suites import ROLES
from lab.score.floors import ALL, floor_table, of_role, short_name
from lab.score.pairs import ARMS, SHIPPED, Arm, Measured, Pair, noise, pairs
from lab.score.vectors import vector_table
from lab.scored import spread


def tables(known: Sequence[Measured], out: Path, kept: Path | None, roles: Sequence[str]) -> dict[str, list[str]]:
    """All tables by name; vectors only with a folder for their run files."""
    titled = [(each, f"**{each.suite.name}**: {each.suite.what}") for each in known]
    found = {
        "deviations": ["", *deviations(known, roles), ""],
        "suites": ["", *by_suite(known, roles), ""],
        "floors": ["", *floor_table(known, roles), ""],
        "intervals": ["", *coverage(known, roles), ""],
        "configurations": _sections((title, every_configuration(each, roles)) for each, title in titled),
    }
    if kept is not None:
        compared = ((title, vector_table(each.suite, out, kept).splitlines()) for each, title in titled)
        found["vectors"] = _sections(compared)
    return found


def _sections(parts: Iterable[tuple[str, Sequence[str]]]) -> list[str]:
    return ["", *itertools.chain.from_iterable((title, "", *lines, "") for title, lines in parts)]


def deviations(known: Sequence[Measured], roles: Sequence[str] = ROLES) -> list[str]:
    """|predicted − actual| / actual of every arm, over all the suites given."""
    lines = head("predictor | configurations | mean ± sd % | median % | worst % | bias % | refused")
    for title, arm in ARMS:
        found = [pair for each in known for pair in pairs(each, arm)]
        for role in roles:
            lines += _deviation_row(title, role, of_role(found, role))
    apart = [abs(each) for one in known for each in noise(one)]
    if apart:
        lines.append(
            f"| noise: baseline runs against their median | {len(apart)} runs | {spread(apart)} |"
            f" {100 * statistics.median(apart):.1f} | {100 * max(apart):.0f} | | |"
        )
    return lines


def _deviation_row(title: str, role: str, found: Sequence[Pair]) -> list[str]:
    off = [each.deviation for each in found if each.deviation is not None]
    if not found:
        return []
    configurations = len({_key(each) for each in found})
    count = f"{role}: {configurations}" + (
        f" × {len(found) / configurations:.3g}" if len(found) > configurations else ""
    )
    if not off:
        return [f"| {title} | {count} | | | | | {len(found)} |"]
    return [
        f"| {title} | {count} | {spread([abs(each) for each in off])} |"
        f" {100 * statistics.median(map(abs, off)):.1f} | {100 * max(map(abs, off)):.0f} |"
        f" {100 * statistics.mean(off):+.1f} | {len(found) - len(off)} |"
    ]


def _key(pair: Pair) -> tuple[str, int]:
    return pair.suite, pair.configuration.number


def by_suite(known: Sequence[Measured], roles: Sequence[str] = ROLES) -> list[str]:
    """The mean of |predicted − actual| / actual of every arm in each suite, and the worst of the shipped model; %.

    A cell without a mean has a word: there is no baseline run of that recorder, or the model refused.
    """
    names = [short_name(title) for title, _ in ARMS]
    lines = head(f"suite | configurations | >worst of shipped | >noise | >{' | >'.join(names)}")
    for each in known:
        found = [pairs(each, arm) for _, arm in ARMS]
        apart = [abs(one) for one in noise(each)]
        for role in roles:
            mine = [of_role(several, role) for several in found]
            off = [abs(p.deviation) for p in mine[0] if p.deviation is not None]
            if not off:
                continue
            count = len({_key(p) for several in mine for p in several})
            cells = [
                _cell(several, fitted=arm[1] == "Ernest" and role != "odd")
                for several, (_, arm) in zip(mine, ARMS, strict=True)
            ]
            worst, around = _percent(max, off), _percent(statistics.mean, apart)
            lines.append(f"| {each.suite.name} | {role}: {count} | {worst} | {around} | {' | '.join(cells)} |")
    return lines


def _cell(found: Sequence[Pair], *, fitted: bool) -> str:
    """A mean error, or why there is none; predictors fitted to these configurations are left out."""
    off = [abs(each.deviation) for each in found if each.deviation is not None]
    if not found:
        return "not kept"
    if not off:
        return "refused"
    refused = len(found) - len(off)
    words = [f"{refused} refused"] * (refused > 0) + ["fitted"] * fitted
    return " ".join([_percent(statistics.mean, off), *([f"({', '.join(words)})"] if words else [])])


def _percent(of: Callable[[Sequence[float]], float], values: Sequence[float]) -> str:
    return f"{100 * of(values):.0f}" if values else ""


def coverage(known: Sequence[Measured], roles: Sequence[str] = ROLES, arm: Arm = SHIPPED) -> list[str]:
    """Coverage and width of the 90 % ranges.

    The binomial interval (Wilson, 95 %) counts configurations, because predictions of one configuration from several
    baseline runs are not independent.
    """
    lines = head("intervals | configurations | predictions | inside % | binomial interval % | median half width %")
    found = [pair for each in known for pair in pairs(each, arm) if pair.interval_ms is not None]
    for role in roles:
        mine = of_role(found, role)
        if not mine:
            continue
        inside = [_is_inside(pair) for pair in mine]
        count = len({_key(pair) for pair in mine})
        low, high = binomtest(round(statistics.mean(inside) * count), count).proportion_ci(0.95, "wilson")
        widths = [math.sqrt(pair.interval_ms[1] / pair.interval_ms[0]) - 1 for pair in mine if pair.interval_ms]
        lines.append(
            f"| {role} | {count} | {len(mine)} | {100 * statistics.mean(inside):.0f} |"
            f" {100 * low:.0f} to {100 * high:.0f} | ± {100 * statistics.median(widths):.0f} |"
        )
    return lines


def _is_inside(pair: Pair) -> bool:
    assert pair.interval_ms is not None
    return pair.interval_ms[0] <= pair.actual_ms <= pair.interval_ms[1]


def every_configuration(known: Measured, roles: Sequence[str] = ROLES) -> list[str]:
    """Every configuration: measured, and predicted by the shipped model from each recorded baseline run."""
    lines = head("number | workload | changed | actual s | predicted s | error %")
    found = pairs(known, SHIPPED)
    for one in known.scored:
        mine = [pair for pair in found if pair.configuration.number == one.number]
        if not {one.role, ALL} & {*roles} or not mine:
            continue
        changed = " ".join(f"{name}={value}" for name, value in one.changed.items())
        predicted = ", ".join(_predicted(pair) for pair in mine)
        off = ", ".join("" if pair.deviation is None else f"{100 * pair.deviation:+.0f}" for pair in mine)
        actual = f"{mine[0].actual_ms / 1e3:.1f}"
        lines.append(f"| {one.number} ({one.role}) | {one.workload} | {changed} | {actual} | {predicted} | {off} |")
    return lines


def _predicted(pair: Pair) -> str:
    if pair.predicted_ms is None:
        return "refused"
    assert pair.interval_ms is not None
    low, high = pair.interval_ms
    return f"{pair.predicted_ms / 1e3:.1f} ({low / 1e3:.1f} to {high / 1e3:.1f})"
