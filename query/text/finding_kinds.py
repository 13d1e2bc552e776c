"""The tables of all kinds of findings, causes of stragglers and refusals in docs/reference.

    python -m crystalperf.query.text.finding_kinds --write docs/reference/reading-the-output.md
    python -m crystalperf.query.text.finding_kinds --write docs/reference/settings.md

The meaning of a kind is the first sentence of its docstring, up to a semicolon.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Sequence
from dataclasses import fields
from inspect import cleandoc
from pathlib import Path

from crystalperf.query.frameworks.registry import get
from crystalperf.query.inputs.registry import BUILT_IN, package_of
from crystalperf.query.results.findings import Finding, StragglerCause
from crystalperf.query.results.kinds import Kind
from crystalperf.query.results.refusals import Refusal

_ALL, _TRAINING = "all", "training"


def tables() -> dict[str, str]:
    """The tables as Markdown, by their marks in the page."""
    titles = {f"{package_of(name)}.": get(name).title for name in BUILT_IN}  # imports all kinds

    def of_framework(kind: type[Kind]) -> str:
        package = kind.__module__
        if package.startswith("crystalperf.query.frameworks.ml.training."):
            return _TRAINING
        return next((title for prefix, title in titles.items() if package.startswith(prefix)), _ALL)

    order = [_ALL, *titles.values(), _TRAINING]

    def rows(base: type[Kind]) -> list[tuple[str, ...]]:
        kinds = [each for each in _kinds(base) if each.__module__.startswith("crystalperf.")]
        return [
            (of_framework(each), each.kind, _meaning(each), _evidence(each, base))
            for each in sorted(kinds, key=lambda each: (order.index(of_framework(each)), each.kind))
        ]

    causes = [
        (each.kind, _meaning(each), _evidence(each, StragglerCause))
        for each in sorted(_kinds(StragglerCause), key=lambda each: each.kind)
    ]
    return {
        "finding kinds": _table("| runs of | kind | meaning | evidence in JSON |\n|---|---|---|---|\n", rows(Finding)),
        "straggler causes": _table("| cause | meaning | evidence in JSON |\n|---|---|---|\n", causes),
        "refusals": _table("| runs of | kind | meaning | data in JSON |\n|---|---|---|---|\n", rows(Refusal)),
    }


def _kinds(base: type[Kind]) -> Iterator[type[Kind]]:
    """All classes below `base` with a key of their own."""
    for each in base.__subclasses__():
        if "kind" in vars(each):
            yield each
        yield from _kinds(each)


def _meaning(kind: type[Kind]) -> str:
    paragraph = " ".join(cleandoc(kind.__doc__ or "").split("\n\n")[0].split())
    sentence = re.split(r"(?<=\.) (?=[A-Z`])", paragraph)[0]
    return sentence.partition("; ")[0].rstrip(".") + "."


def _evidence(kind: type[Kind], base: type[Kind]) -> str:
    common = {each.name for each in fields(base)}
    return ", ".join(f"`{each.name}`" for each in fields(kind) if each.name not in common)


def _table(head: str, rows: Sequence[tuple[str, ...]]) -> str:
    keyed = [[f"`{cell}`" if number == len(row) - 3 else cell for number, cell in enumerate(row)] for row in rows]
    return head + "".join(f"| {' | '.join(row)} |\n" for row in keyed)


def with_tables(page: str) -> str:
    """A page with its tables written again."""
    for mark, table in tables().items():
        between = re.compile(rf"(?<=<!-- {mark} -->\n).*?(?=<!-- end of {mark} -->)", re.DOTALL)
        page = between.sub(lambda _match, table=table: table, page)  # type: ignore[misc]
    return page


def main() -> None:
    """Write the tables between the marks of a page."""
    parser = argparse.ArgumentParser(description="write the tables of all kinds of findings between a page's marks")
    parser.add_argument("--write", type=Path, required=True, metavar="PAGE")
    page: Path = parser.parse_args().write
    page.write_text(with_tables(page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
