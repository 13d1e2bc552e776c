"""How many calls do types settle?  Every invoke instruction of a framework's archives, asked of the index.

    python -m lab.checks.typed spark-4.0.1 JARS [--beside JARS…]
    python -m lab.checks.typed flink-1.20.3 JARS [--beside JARS…]

JARS is a folder of the framework's own jars and others (pyspark ships Spark's, apache-flink-libraries Flink's); those
of the index are told by their classes.  Counted are the calls in written functions, by what indexer.typed says of them.
A method outside the framework is at hand where its class is in one of these jars, or in the JDK's index.  The second
table takes the index's own `calls`, one row a function and name: what the words alone settle, and what types do.
"""

from __future__ import annotations

import argparse
import sys
import time
import zipfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

import duckdb

from crystalperf.indexer.typed import Graph, Known, Meaning, Sources, read_jars, typed_calls, written_as
from crystalperf.indexes.exports import locate, nearest
from crystalperf.indexes.store import attach

SHOWN = 12

OPEN = ("accessor", "made", "no source", "nowhere", "outside, its class not at hand")


def sources_of(index_name: str) -> tuple[Sources, list[tuple[int, str, int | None]]]:
    """The functions and classes of an index, and its calls: caller, name, and the function where words settle it."""
    with duckdb.connect() as connection:
        attach(connection, locate(index_name), "index", "told")
        rows = connection.execute(
            "SELECT kind, regexp_extract(qualified_name, '[^.]+$'),"
            " concat_ws('.', nullif(package, ''), replace(class_name, '.', '$')), enclosing_id, file, first_line,"
            " last_line FROM told.functions ORDER BY function_id"
        ).fetchall()
        classes = dict(connection.execute("SELECT class_name, file FROM told.classes").fetchall())
        calls = connection.execute("SELECT caller_id, callee_name, callee_id FROM told.calls").fetchall()
    return Sources([Known(*row) for row in rows], classes), calls


def own_jars(jars: Iterable[Path], sources: Sources) -> tuple[list[Path], set[str]]:
    """The jars most of whose classes are in the index, and the names of the classes of all others."""
    own, outside = [], set[str]()
    for jar in jars:
        with zipfile.ZipFile(jar) as archive:
            entries = [each for each in archive.namelist() if each.endswith(".class") and "META-INF" not in each]
        names = [each.removesuffix(".class").replace("/", ".") for each in entries]
        outermost = {each for each in names if "$" not in each}
        if outermost and sum(each in sources.classes for each in outermost) > len(outermost) / 2:
            own.append(jar)
        else:
            outside.update(names)
    return own, outside


def outside_at_hand(outside: set[str]) -> set[str]:
    """Those and the classes of the JDK."""
    name = nearest("jdk-17")
    if name is None:
        return outside
    with duckdb.connect() as connection:
        attach(connection, locate(name), "index", "jdk")
        return outside | {row[0] for row in connection.execute("SELECT class_name FROM jdk.classes").fetchall()}


def reason(meaning: Meaning, at_hand: set[str]) -> str:
    """What is said of a call in the table."""
    if meaning.status == "outside":
        runtime = meaning.owner.startswith(("java.", "javax.", "scala.runtime.", "["))
        return "outside, its class at hand" if runtime or meaning.owner in at_hand else "outside, its class not at hand"
    return meaning.status


def shown(meaning: Meaning, sources: Sources, at_hand: set[str]) -> str:
    """The same, and of several functions why they are."""
    if meaning.status != "functions":
        return reason(meaning, at_hand)
    classes = [sources.functions[each].class_name for each in meaning.targets]
    if len(classes) == 1 and meaning.is_open:
        return "functions: one is known, a lambda or a class beyond 64 may stand in"
    # One that is not open has fields instead of the function in some classes.
    return "functions: overloads" if len(set(classes)) == 1 < len(classes) else "functions: by class hierarchy"


RESOLVED = ("function", "functions: by class hierarchy", "outside, its class at hand", "field")
"""What is called resolved: a function, a set by class hierarchy, a known method outside, a field's accessor."""


def report(
    graph: Graph, sources: Sources, calls: Sequence[tuple[int, str, int | None]], at_hand: set[str]
) -> list[str]:
    """The two tables."""
    sites: Counter[str] = Counter()
    unknown: Counter[str] = Counter()
    by_name: dict[tuple[int, str], set[Meaning]] = defaultdict(set)
    for caller, meaning in typed_calls(graph, sources):
        told = reason(meaning, at_hand)
        sites[shown(meaning, sources, at_hand)] += 1
        if told in OPEN:
            unknown[f"{told}: {meaning.owner}.{meaning.name}"] += 1
        for name in written_as(meaning):
            by_name[caller, name].add(meaning)
    total = sites.total()
    lines = [f"{total} calls in written functions", "", "| what a call means | calls | % |", "|---|---:|---:|"]
    lines += [f"| {what} | {count} | {100 * count / total:.1f} |" for what, count in sites.most_common()]
    resolved = sum(sites[each] for each in RESOLVED)
    lines += [f"| **resolved: {', '.join(RESOLVED)}** | {resolved} | {100 * resolved / total:.1f} |"]
    other = total - sites["field"] - sites["accessor"]
    share = 100 * (resolved - sites["field"]) / other
    lines += [
        f"| the same, of the {other} that do not read or set a field | {resolved - sites['field']} | {share:.1f} |"
    ]
    seen = {caller for caller, _ in by_name}
    rows: Counter[str] = Counter()
    wrong = 0
    for caller, name, callee in calls:
        if caller not in seen:
            rows["its function has no class file here"] += 1
            continue
        meanings = by_name.get((caller, name), set())
        targets = {each for meaning in meanings for each in meaning.targets}
        statuses = {meaning.status for meaning in meanings}
        if callee is not None:
            rows["words: a function"] += 1
            wrong += bool(targets) and callee not in targets
        if len(targets) == 1 and statuses <= {"function"}:
            rows["types: a function"] += 1
        elif targets:
            rows["types: several functions"] += 1
        elif statuses:
            elsewhere = statuses <= {"outside", "field"}
            rows["types: outside, or a field" if elsewhere else "types: made by a compiler or without source"] += 1
        else:
            rows["types: no such call"] += 1
    asked = len(calls) - rows["its function has no class file here"]
    lines += ["", f"{asked} rows of calls whose function has class files", "", "| by | rows | % |", "|---|---:|---:|"]
    lines += [f"| {what} | {count} | {100 * count / asked:.1f} |" for what, count in sorted(rows.items())]
    lines += ["", f"words name a function that types do not: {wrong}"]
    for told in OPEN:
        most = [(what, count) for what, count in unknown.most_common() if what.startswith(f"{told}:")][:SHOWN]
        lines += ["", *(f"    {count:6} {what}" for what, count in most)]
    return lines


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("index")
    parser.add_argument("jars", type=Path)
    parser.add_argument("--beside", type=Path, nargs="*", default=[], help="folders of jars of others")
    given = parser.parse_args(arguments)
    sources, calls = sources_of(given.index)
    jars = sorted(given.jars.glob("*.jar"))
    own, outside = own_jars([*jars, *(jar for folder in given.beside for jar in folder.glob("*.jar"))], sources)
    started = time.process_time()
    graph = read_jars(own)
    seconds = time.process_time() - started
    print(f"{len(own)} jars, {len(graph.classes)} classes ({len(graph.problems)} damaged): {seconds:.1f} s of CPU")
    print("\n".join(report(graph, sources, calls, outside_at_hand(outside))))
    print(f"{time.process_time() - started:.1f} s of CPU in all")
    return 0


if __name__ == "__main__":
    sys.exit(main())
