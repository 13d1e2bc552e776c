"""`make bench`: the cost of commands, as whole processes, median of five.

    command                                   seconds   MiB
    crystalperf --help                           0.12    28

Times depend on the machine and its load; compare only rows of one run.  Index builds are measured if their sources are
in the user's cache.  `python -m lab.costs.bench WORD…` measures only commands with these words.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from crystalperf.indexes.exports import cache_folder, locate, prebuilt_folder
from lab.costs import made_log
from lab.costs.processes import Cost, cost

ROOT = Path(__file__).parents[2]
DEMO = ROOT / "lab" / "recordings" / "demo-q9"
PUBLIC = ROOT.parent / "shared" / "real-inputs" / "spark-eventlog" / "rapids-tools"
RUNS = 5
FRAMES = 1_000_000
TASKS = 1_000_000
SELECT = ("sql", "--index", "spark-4.0.1", "SELECT count(*) FROM functions")
PATCH, NEXT_PATCH = "spark-4.0.0", "spark-4.0.1"


@dataclass(frozen=True)
class Case:
    """A command of crystalperf; `fresh` empties the cache before every run, `frames` is the number of frames on stdin.

    `tasks` is the size of the generated log made.log (lab/costs/made_log.py).  `sources` are indexes whose sources must
    be in the cache, `before` runs once, and `forget` is removed from the cache before every run.
    """

    name: str
    arguments: tuple[str, ...]
    fresh: bool = False
    frames: int = 0
    tasks: int = 0
    sources: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    forget: str = ""


def cases() -> list[Case]:
    """The measured commands; those on public logs only if the logs are next to the checkout."""
    found = [
        Case("--help", ("--help",)),
        Case("analyze the demo, empty cache", ("analyze", str(DEMO)), fresh=True),
        Case("analyze the demo again", ("analyze", str(DEMO))),
        Case("the same with Spark's index alone", ("analyze", str(DEMO), "--index", "spark-4.0.1"), fresh=True),
        Case("sql over the Spark index, first use", SELECT, fresh=True),
        Case("sql over the Spark index", SELECT),
        Case(f"index resolve, {FRAMES:,} frames", ("index", "resolve", "--index", "spark-4.0.1"), frames=FRAMES),
        Case("index show, all indexes", ("index", "show", "BlockManager.getRemoteBytes")),
    ]
    for name in ("tasks_executors_fail_compressed_eventlog.zstd", "nds_q88_photon_db_13_3.zstd"):
        if (PUBLIC / name).exists():
            found.append(Case(f"profile {name[:32]}", ("profile", str(PUBLIC / name), "-o", "run.duckdb"), fresh=True))
    build = ("index", "build", NEXT_PATCH, "-o", "built.duckdb")
    if _fetched(NEXT_PATCH):
        found.append(Case(f"index build {NEXT_PATCH}", build, fresh=True, sources=(NEXT_PATCH,)))
    if _fetched(NEXT_PATCH) and _fetched(PATCH):
        before = ("index", "build", PATCH, "-o", "before.duckdb")
        both = (PATCH, NEXT_PATCH)
        found.append(
            Case(f"the same after {PATCH}", build, sources=both, before=before, forget=f"builds/{NEXT_PATCH}.kept")
        )
    made = ("profile", "made.log", "-o", "run.duckdb")
    found.append(Case(f"profile a generated log, {TASKS:,} tasks", made, fresh=True, tasks=TASKS))
    return found


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


def run(arguments: tuple[str, ...], home: Path, stdin: Path | None = None) -> Cost:
    """The cost of a command of crystalperf.  Raises LabError if it fails."""
    return cost([str(Path(sys.executable).with_name("crystalperf")), *arguments], home, stdin=stdin)


def _put_sources(case: Case, home: Path) -> None:
    for name in case.sources:
        target = home / "sources" / name
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            target.symlink_to(cache_folder() / "sources" / name)


def main() -> None:
    """Print the table."""
    print(f"{'command':45s} {'seconds':>8s} {'MiB':>6s}   median of {RUNS}")
    with tempfile.TemporaryDirectory() as scratch:
        os.chdir(scratch)
        for case in cases():
            if not all(word in case.name for word in sys.argv[1:]):
                continue
            measured = []
            home = Path(scratch) / "home"
            stdin = Path(scratch) / "frames" if case.frames else None
            if stdin is not None:
                write_frames(case.frames, stdin)
            if case.tasks:
                with open("made.log", "w", encoding="utf-8") as log:
                    made_log.write(log, case.tasks)
            _put_sources(case, home)
            if case.before:
                run(case.before, home)
            elif not case.fresh:
                run(case.arguments, home, stdin)  # unpacks the index and fills the page cache, once
            for number in range(RUNS):
                Path("run.duckdb").unlink(missing_ok=True)
                if case.forget:
                    (home / case.forget).unlink(missing_ok=True)
                place = Path(scratch) / f"{case.name}-{number}" if case.fresh else home
                _put_sources(case, place)
                measured.append(run(case.arguments, place, stdin))
            seconds, peak = (
                statistics.median(getattr(one, name) for one in measured) for name in ("wall_s", "peak_mib")
            )
            print(f"{case.name:45s} {seconds:8.2f} {peak:6.0f}", flush=True)
    exported = sum(each.stat().st_size for each in (prebuilt_folder() / NEXT_PATCH).iterdir())
    unpacked = locate(NEXT_PATCH).stat().st_size
    print(f"{NEXT_PATCH}: {unpacked / 1e6:.1f} MB as DuckDB, {exported / 1e6:.2f} MB as an export")


if __name__ == "__main__":
    main()
