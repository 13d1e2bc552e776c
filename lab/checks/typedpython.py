"""How many of Python's calls do types settle?  Every call of a package's sources, by what indexer.pytyped says of it.

    python -m lab.checks.typedpython python-3.11 pyspark-4.0.1 tensorflow-2.21.0

Sources are those of indexer/catalogue.toml, installed or fetched.  The first column of each counts the files that
are not reserved (indexer.labels.reserve): those are what the reader of types was written with.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Sequence

from crystalperf.indexer.catalogue import known_source
from crystalperf.indexer.labels.reserve import is_reserved
from crystalperf.indexer.pyfacts import PyFacts, read_facts
from crystalperf.indexer.pytyped import Linked, meaning

ROWS = {
    "function": "one function of the index",
    "functions": "several of a class hierarchy, or defined more than once",
    "outside": "a function outside the index, by module and name",
    "resolved": "**resolved: the three above**",
    "made": "a class without a constructor of its own",
}


def count(facts: Iterable[PyFacts], counted: frozenset[str]) -> Counter[str]:
    """Calls of some modules by what they mean; what is unknown by its reason."""
    linked = Linked.of(facts)
    numbers = {name: (number,) for number, name in enumerate(linked.functions)}
    found: Counter[str] = Counter()
    for module in sorted(counted & linked.modules.keys()):
        for call in linked.modules[module].calls:
            told = meaning(linked, numbers, call)
            found[told.owner if told.status == "unknown" else told.status] += 1
    return found


def table(columns: dict[str, Counter[str]]) -> list[str]:
    """Shares of each column's calls in %."""
    for each in columns.values():
        each["resolved"] = sum(each[status] for status in ("function", "functions", "outside"))
    reasons = sorted({reason for each in columns.values() for reason in each if reason not in ROWS})
    totals = {name: each.total() - each["resolved"] for name, each in columns.items()}
    reasons.sort(key=lambda reason: -sum(each[reason] / totals[name] for name, each in columns.items()))
    lines = ["| what a call means, % | " + " | ".join(columns) + " |", "|---|" + "---:|" * len(columns)]
    lines.append("| calls | " + " | ".join(f"{totals[each]:,}".replace(",", " ") for each in columns) + " |")
    for key in (*ROWS, *reasons):
        shares = (100 * each[key] / totals[name] for name, each in columns.items())
        words = ROWS.get(key, f"not known: {key}")
        lines.append(f"| {words} | " + " | ".join(f"{share:.1f}" for share in shares) + " |")
    return lines


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("index", nargs="+")
    given = parser.parse_args(arguments)
    columns: dict[str, Counter[str]] = {}
    for name in given.index:
        problems: list[tuple[str, str]] = []
        facts, open_modules, failed = [], set[str](), 0
        for each in known_source(name, problems).files(problems):
            if each.language != "python":
                continue
            found = read_facts(each.text, each.file)
            if found is None:
                failed += 1
                continue
            facts.append(found)
            if not is_reserved(each.file):
                open_modules.add(found.module)
        print(f"{name}: {len(facts)} files, {failed} not understood", file=sys.stderr)
        columns[f"{name}, not reserved"] = count(facts, frozenset(open_modules))
        columns[f"{name}, all"] = count(facts, frozenset(each.module for each in facts))
    print("\n".join(table(columns)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
