"""`crystalperf index diff A B`: new and removed functions, and those whose label changed, with the reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from crystalperf.cli.output import progress, write, write_json
from crystalperf.cli.text import counted, cut_left, grouped
from crystalperf.query.lookup.diff import KINDS, Changed, changes
from crystalperf.query.lookup.hot import Heat, HotPath, hot_path

SHOWN = 20
"""Maximum functions of each kind in the text; --json has all."""

_TITLES = {
    "label": "Label changed",
    "share": "Resource shares changed",
    "moved": "Same text, new name",
    "new": "New",
    "gone": "Gone",
}


def diff(before: str, after: str, run: str = "", *, as_json: bool) -> int:
    """Print the differences of two indexes, the largest first; with a run, only those on its hot path."""
    path: HotPath | None = None
    if run:
        from crystalperf.cli.runs import find_run

        path = hot_path(find_run(run))
    with progress() as step:
        found = changes(before, after, (lambda _name: True) if path is None else _is_hot(path), step)
    if path is not None:
        found.sort(key=lambda each: (KINDS.index(each.kind), -_time(path, each)))
    by_kind = {kind: [each for each in found if each.kind == kind] for kind in KINDS}
    if as_json:
        listed = {kind: [_plain(each, path) for each in several] for kind, several in by_kind.items()}
        write_json({"before": before, "after": after, **({"run": run} if run else {}), **listed})
    else:
        write(_text(before, after, by_kind, path))
    return 0


def _is_hot(path: HotPath) -> Any:
    return lambda name: path.heat(name) is not None


def _heat(path: HotPath, changed: Changed) -> Heat | None:
    return path.heat(changed.qualified_name) or (path.heat(changed.old_name) if changed.old_name else None)


def _time(path: HotPath, changed: Changed) -> float:
    heat = _heat(path, changed)
    return 0.0 if heat is None else heat.time_ms


def _plain(changed: Changed, path: HotPath | None) -> dict[str, Any]:
    plain = {key: value for key, value in asdict(changed).items() if key != "kind"}
    heat = None if path is None else _heat(path, changed)
    if heat is None:
        return plain
    return {**plain, "time_ms": round(heat.time_ms, 3), "share": round(heat.share, 4), "stages": heat.stages}


def _text(before: str, after: str, found: Mapping[str, list[Changed]], path: HotPath | None) -> str:
    from crystalperf.cli.text import printable

    parts = []
    if path is not None:
        parts.append(f"Only functions on the run's hot path, which has {path.sampled_ms / 1000:.1f} s of samples.\n\n")
    for kind, functions in found.items():
        parts.append(f"{_TITLES[kind]}: {counted(len(functions), 'function')}\n")
        for each in functions[:SHOWN]:
            hot = "" if path is None else f"{_time(path, each) / 1000:8.1f} s  "
            was = f", was {cut_left(each.old_name, 60)}" if each.old_name else ""
            shares = f"  {_shares(each.before)} → {_shares(each.after)}" if kind in ("label", "share") else ""
            parts.append(printable(f"  {hot}{each.qualified_name}{was}{shares}") + "\n")
            if each.why:
                parts.append(printable(f"      {'; '.join(each.why)}") + "\n")
        if len(functions) > SHOWN:
            parts.append(f"  {grouped(len(functions) - SHOWN)} more; --json has all\n")
    return "".join(parts)


def _shares(vector: Mapping[str, float] | None) -> str:
    """`net 80 % cpu 20 %`: the shares of 10 % or more, largest first."""
    ranked = sorted((vector or {}).items(), key=lambda each: -each[1])
    return " ".join(f"{name} {100 * share:.0f} %" for name, share in ranked if share >= 0.1)
