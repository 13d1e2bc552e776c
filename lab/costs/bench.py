"""`make bench`: the cost of commands as whole processes, next to a named commit.

    | command | pairs | CPU s | s | MiB | c37e911: CPU s | s | MiB | CPU, ratio | s, ratio |
    |---|---:|---:|---:|---:|---:|---:|---:|---:|---:|
    | analyze the demo again | 9 | 0.21 | 0.22 | 60 | 0.82 | 0.68 | 155 | 0.26 | 0.32 |

`--against COMMIT` names the commit, without which only this checkout is measured.  Both run in turns, with the same
Python; figures are medians, ratios medians over pairs.  Times depend on the machine and its load; compare only rows of
one run.  Generated logs, traces and recordings are made first; public logs and sources of indexes are used if they are
on this machine.  `python -m lab.costs.bench WORD…` measures only commands with these words.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from crystalperf.indexes.exports import cache_folder, locate, prebuilt_folder
from lab.costs import made_log
from lab.costs.checkouts import ROOT, checkout, measured
from lab.costs.processes import Cost
from lab.errors import LabError
from lab.pages import head

DEMO = ROOT / "lab" / "recordings" / "demo-q9"
PUBLIC = ROOT.parent / "shared" / "real-inputs" / "spark-eventlog"
FRAMES = 1_000_000
TASKS = 1_000_000
SELECT = ("sql", "--index", "spark-4.0.1", "SELECT count(*) FROM functions")
PATCH, NEXT_PATCH = "spark-4.0.0", "spark-4.0.1"
PAIRS, FEWER_PAIRS = 9, 3
MADE, RUN = "made.log", "run.duckdb"


@dataclass(frozen=True)
class Case:
    """A command of crystalperf; `fresh` empties the cache before every run, `frames` is the number of frames on stdin.

    `tasks` is the size of the generated log made.log (lab/costs/made_log.py).  `sources` are indexes whose sources must
    be in the cache, `before` runs once, and `forget` is removed from the cache before every run.  `pairs` is the number
    of runs of each checkout.
    """

    name: str
    arguments: tuple[str, ...]
    fresh: bool = False
    frames: int = 0
    tasks: int = 0
    sources: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    forget: str = ""
    pairs: int = PAIRS


def cases(logs: Sequence[Path] = ()) -> list[Case]:
    """The measured commands: those on public logs and further `logs` only if the logs are on this machine."""
    found = [
        Case("--help", ("--help",)),
        Case("analyze the demo, empty cache", ("analyze", str(DEMO)), fresh=True),
        Case("analyze the demo again", ("analyze", str(DEMO))),
        *(Case(f"analyze {each.name}", ("analyze", str(each.absolute())), fresh=True) for each in logs),
        Case("sql over the Spark index, first use", SELECT, fresh=True),
        Case("sql over the Spark index", SELECT),
        Case(f"index resolve, {FRAMES:,} frames", ("index", "resolve", "--index", "spark-4.0.1"), frames=FRAMES),
        Case("index show, all indexes", ("index", "show", "BlockManager.getRemoteBytes")),
    ]
    for name in ("tasks_executors_fail_compressed_eventlog.zstd", "nds_q88_photon_db_13_3.zstd"):
        if (log := PUBLIC / "rapids-tools" / name).exists():
            found.append(Case(f"profile {name[:32]}", ("profile", str(log), "-o", RUN), fresh=True))
    if PUBLIC.is_dir():
        of_fleet = ("fleet", "build", str(PUBLIC), "-o", "fleet", "--processes", "2")
        found.append(Case("fleet build, public logs", of_fleet, fresh=True, pairs=FEWER_PAIRS))
    build = ("index", "build", NEXT_PATCH, "-o", "built.duckdb")
    if _fetched(NEXT_PATCH):
        found.append(Case(f"index build {NEXT_PATCH}", build, fresh=True, sources=(NEXT_PATCH,), pairs=FEWER_PAIRS))
    if _fetched(NEXT_PATCH) and _fetched(PATCH):
        before = ("index", "build", PATCH, "-o", "before.duckdb")
        kept = f"builds/{NEXT_PATCH}.kept"
        both = (PATCH, NEXT_PATCH)
        found.append(Case(f"the same after {PATCH}", build, sources=both, before=before, forget=kept))
    return [*found, *_of_many_tasks()]


def _of_many_tasks() -> Iterator[Case]:
    profile = ("profile", MADE, "-o", RUN)
    of = f"{TASKS:,} tasks"
    yield Case(f"profile, {of}", profile, fresh=True, tasks=TASKS, pairs=FEWER_PAIRS)
    yield Case(f"analyze, {of}", ("analyze", MADE), fresh=True, tasks=TASKS, pairs=FEWER_PAIRS)
    for name, setting in (("cores=2x", "cores=2x"), ("network=0.5x", "network=0.5x")):
        predict = ("predict", RUN, "--set", setting)
        yield Case(f"predict {name}, {of}", predict, tasks=TASKS, before=profile, pairs=FEWER_PAIRS)
    page = ("report", RUN, "-o", "run.html", "--force")
    yield Case(f"report, {of}", page, tasks=TASKS, before=profile, pairs=FEWER_PAIRS)


def _fetched(index_name: str) -> bool:
    return (cache_folder() / "sources" / index_name).is_dir()


def write_frames(count: int, path: Path) -> None:
    """Frames of the Spark index, each a line of one of its functions, in an order without pattern."""
    import duckdb

    with duckdb.connect(str(locate("spark-4.0.1")), read_only=True) as connection:
        connection.execute(
            f"""
            COPY (
                SELECT concat(class_name, '.', method, ':', first_line + (hash(number) % (last_line - first_line + 1)))
                FROM (
                    SELECT *, row_number() OVER (ORDER BY function_id) AS row
                    FROM (SELECT class_name, method, function_id FROM runtime_names)
                    JOIN (SELECT function_id, first_line, last_line FROM functions) USING (function_id)
                    WHERE NOT regexp_matches(method, '[^A-Za-z_]')
                ) JOIN (SELECT unnest(range({count})) AS number) ON row = 1 + hash(number, 1) % 50000
            ) TO '{path}' (HEADER false, QUOTE '', DELIMITER '\x01')
            """
        )


def costs(case: Case, places: Sequence[Path], scratch: Path) -> list[tuple[Cost, ...]]:
    """The costs of a command in each checkout, by turn.  Raises LabError where it fails."""
    stdin = scratch / "frames" if case.frames else None
    if stdin is not None and not stdin.exists():
        write_frames(case.frames, stdin)
    if case.tasks and not (scratch / MADE).exists():
        with (scratch / MADE).open("w", encoding="utf-8") as log:
            made_log.write(log, case.tasks)
    sides = [_Side(case, place, scratch / f"side-{number}", stdin) for number, place in enumerate(places)]
    for each in sides:
        each.prepare(scratch)
    found = []
    for turn in range(case.pairs):
        order = range(len(sides))
        taken = {number: sides[number].cost() for number in (reversed(order) if turn % 2 else order)}
        found.append(tuple(taken[number] for number in order))
    return found


@dataclass(frozen=True)
class _Side:
    """One checkout with a working folder and a cache of its own."""

    case: Case
    place: Path
    folder: Path
    stdin: Path | None

    @property
    def home(self) -> Path:
        return self.folder / "home"

    def prepare(self, scratch: Path) -> None:
        """Run what goes before; else the command itself, which compiles modules and fills the page cache."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()
        if (scratch / MADE).exists():
            (self.folder / MADE).symlink_to(scratch / MADE)
        self._put_sources()
        for arguments in (self.case.before, self.case.arguments):
            if arguments:
                self._run(arguments)

    def cost(self) -> Cost:
        """Of the command alone."""
        if self.case.fresh:
            shutil.rmtree(self.home, ignore_errors=True)
            shutil.rmtree(self.folder / "fleet", ignore_errors=True)
            (self.folder / RUN).unlink(missing_ok=True)
        if self.case.forget:
            (self.home / self.case.forget).unlink(missing_ok=True)
        self._put_sources()
        return self._run(self.case.arguments)

    def _run(self, arguments: Sequence[str]) -> Cost:
        os.chdir(self.folder)
        return measured(self.place, arguments, self.home, stdin=self.stdin)

    def _put_sources(self) -> None:
        self.home.mkdir(exist_ok=True)
        for name in self.case.sources:
            target = self.home / "sources" / name
            if not target.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                target.symlink_to(cache_folder() / "sources" / name)


def row(name: str, found: Sequence[tuple[Cost, ...]]) -> str:
    """A row of the table: figures of this checkout, of the other, and the ratios of one to the other."""
    cells = [name, str(len(found))]
    for side in range(len(found[0])):
        cpu_s, wall_s, mib = (
            statistics.median(getattr(turn[side], part) for turn in found) for part in ("cpu_s", "wall_s", "peak_mib")
        )
        cells += [f"{cpu_s:.2f}", f"{wall_s:.2f}", f"{mib:.0f}"]
    if len(found[0]) > 1:
        for part in ("cpu_s", "wall_s"):
            cells.append(f"{statistics.median(getattr(now, part) / getattr(then, part) for now, then in found):.2f}")
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", metavar="WORD")
    parser.add_argument("--against", metavar="COMMIT", default="")
    parser.add_argument("--without", action="append", default=[], metavar="WORD", help="leave out commands with it")
    parser.add_argument("--log", type=Path, action="append", default=[], help="a further log to analyze")
    given = parser.parse_args()
    titles = "command | >pairs | >CPU s | >s | >MiB"
    if given.against:
        titles += f" | >{given.against}: CPU s | >s | >MiB | >CPU, ratio | >s, ratio"
    wanted = [
        each
        for each in cases(given.log)
        if all(word in each.name for word in given.words) and not any(word in each.name for word in given.without)
    ]
    with ExitStack() as opened:
        scratch = Path(opened.enter_context(tempfile.TemporaryDirectory()))
        places = [ROOT]
        if given.against:
            places.append(opened.enter_context(checkout(given.against, scratch)))
        print(*head(titles), sep="\n", flush=True)
        for case in wanted:
            try:
                print(row(case.name, costs(case, places, scratch)), flush=True)
            except LabError as error:  # a commit may lack the command
                print(f"{case.name}: {error}", file=sys.stderr, flush=True)
        os.chdir(ROOT)
    exported = sum(each.stat().st_size for each in (prebuilt_folder() / NEXT_PATCH).iterdir())
    unpacked = locate(NEXT_PATCH).stat().st_size
    print(f"\n{NEXT_PATCH}: {unpacked / 1e6:.1f} MB as DuckDB, {exported / 1e6:.2f} MB as an export")


if __name__ == "__main__":
    main()
