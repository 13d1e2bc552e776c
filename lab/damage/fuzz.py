"""`make fuzz`: read thousands of damaged logs, recordings and stacks with the readers and the command line.

    python -m lab.damage.fuzz                          10 000 of each kind
    python -m lab.damage.fuzz --count 500 --seed 7     fewer, with another seed
    python -m lab.damage.fuzz --from 500 --count 500   the next ones of the same seed
    python -m lab.damage.fuzz --own --count 6 --seed 52    the cases of continuous integration (`make hostile`)
    python -m lab.damage.fuzz --only log --case 4711   repeat one case, with its traceback

Each case is a real input (sources.py) with damage that follows from its number and the seed (mutations.py).  A reader
or a whole command line processes it, and the result is judged (cases.py): it must be tables, an answer or one sentence.
Failures are a traceback, contradicting tables, an answer that breaks its contract, a crash, more than 20 s of CPU time
and more than 1.5 GB of memory.  The command that repeats a failure is printed.
"""

from __future__ import annotations

import argparse
import gc
import multiprocessing
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path

from crystalperf.cli.main import FEWER_COLLECTIONS
from lab.damage.cases import KINDS, Case, Outcome, run_case
from lab.damage.sources import Sources, load_sources

COUNT = 10_000
LONGEST_CPU_S = 20.0
LONGEST_S = 300.0
"""Wall-clock limit of a case, for a busy machine; the CPU time is judged."""
MAX_MEMORY_BYTES = 1500 << 20
_HARD_LIMIT_BYTES = 8 << 30  # address space: a limit for a case that uses too much memory
_CASES_PER_WORKER = 400  # then a new process, so that its peak memory is of few cases


@dataclass
class Worker:
    process: multiprocessing.Process
    pipe: Connection
    folder: Path
    case: Case | None = None
    since: float = 0.0
    cpu_s: float = 0.0
    done: int = field(default=0)


def _work(pipe: Connection, seed: int, sources: Sources, folder: Path) -> None:
    """A worker: receives cases and sends outcomes until the parent sends None or is gone."""
    resource.setrlimit(resource.RLIMIT_AS, (_HARD_LIMIT_BYTES, _HARD_LIMIT_BYTES))
    gc.freeze()
    gc.set_threshold(FEWER_COLLECTIONS)  # as the command line does
    os.environ["CRYSTALPERF_HOME"] = f"{folder}/home"
    os.environ["TMPDIR"] = tempfile.tempdir = str(folder)  # what a killed case leaves is removed with the folder
    place = folder / "case"
    with suppress(EOFError):
        while (case := pipe.recv()) is not None:
            place.mkdir(exist_ok=True)
            outcome = run_case(case, seed, sources, place)
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
            pipe.send(Outcome(**{**outcome.__dict__, "memory_bytes": memory}))


# All cases, in the parent -----------------------------------------------------------------------------------------


def fuzz(cases: Sequence[Case], seed: int, jobs: int, sources: Sources) -> Iterator[Outcome]:
    """The outcomes of all cases as they arrive; a worker that hangs or dies is an outcome too, and is replaced."""
    waiting = list(reversed(cases))
    workers: list[Worker] = []
    try:
        while waiting or any(each.case for each in workers):
            for each in [each for each in workers if each.case is None and not each.process.is_alive()]:
                _stop(each)
                workers.remove(each)
            while len(workers) < min(jobs, len(waiting) + sum(each.case is not None for each in workers)):
                workers.append(_started(seed, sources))
            for each in workers:
                if each.case is None and waiting:
                    each.case = waiting.pop()
                    each.since, each.cpu_s = time.monotonic(), _cpu_s(each.process.pid)
                    each.pipe.send(each.case)
            wait([each.pipe for each in workers if each.case], timeout=1.0)
            for each in list(workers):
                if each.case is None:
                    continue
                outcome = _outcome(each)
                if outcome is None:
                    continue
                yield outcome
                each.done += 1
                if outcome.what != "failed":
                    each.case = None
                if each.case or each.done >= _CASES_PER_WORKER:
                    _stop(each)
                    workers.remove(each)
    finally:
        for each in workers:
            _stop(each)


def _started(seed: int, sources: Sources) -> Worker:
    context = multiprocessing.get_context("fork")  # the sources are shared, not copied
    ours, theirs = context.Pipe()
    folder = Path(tempfile.mkdtemp(prefix="crystalperf-fuzz-"))
    process = context.Process(target=_work, args=(theirs, seed, sources, folder), daemon=True)
    process.start()
    theirs.close()
    return Worker(process, ours, folder)  # type: ignore[arg-type]


def _outcome(worker: Worker) -> Outcome | None:
    """The outcome of a busy worker, or of its crash or timeout; None if there is none yet."""
    assert worker.case is not None
    if worker.pipe.poll():
        try:
            outcome: Outcome = worker.pipe.recv()
        except (EOFError, OSError):
            worker.process.join(5)
            return Outcome(worker.case, "", "", "failed", f"the process died ({worker.process.exitcode})")
        if outcome.what != "failed" and outcome.memory_bytes > MAX_MEMORY_BYTES:
            text = f"{outcome.memory_bytes >> 20} MiB of memory"
            return Outcome(outcome.case, outcome.source, outcome.damage, "failed", text)
        return outcome
    if not worker.process.is_alive():
        return Outcome(worker.case, "", "", "failed", f"the process died ({worker.process.exitcode})")
    cpu_s = _cpu_s(worker.process.pid) - worker.cpu_s
    if cpu_s > LONGEST_CPU_S or time.monotonic() - worker.since > LONGEST_S:
        return Outcome(worker.case, "", "", "failed", f"no answer after {cpu_s:.0f} s of CPU time")
    return None


def _stop(worker: Worker) -> None:
    """End a worker, at once if it has a case, and remove its folder: a killed worker cannot."""
    if worker.case is None:
        with suppress(OSError):
            worker.pipe.send(None)  # closing the pipe is not enough: a forked worker has a copy of this end
        worker.process.join(2)
    if worker.process.is_alive():
        worker.process.kill()
        worker.process.join()
    worker.pipe.close()
    shutil.rmtree(worker.folder, ignore_errors=True)


def _cpu_s(pid: int | None) -> float:
    try:
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def _until_interrupted(outcomes: Iterator[Outcome]) -> Iterator[Outcome]:
    """The outcomes until the user interrupts; those so far are counted."""
    try:
        yield from outcomes
    except KeyboardInterrupt:
        print("interrupted; results so far:", flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; 1 if a case failed."""
    parser = argparse.ArgumentParser(prog="python -m lab.damage.fuzz", description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=COUNT, metavar="N", help=f"cases of each kind (default {COUNT})")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="default 0")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="processes (default: CPUs)")
    parser.add_argument("--only", choices=KINDS, help="one kind of input")
    parser.add_argument("--case", type=int, metavar="N", help="only this case, in this process, with its traceback")
    parser.add_argument("--from", type=int, default=0, dest="first", metavar="N", help="number of the first case")
    parser.add_argument("--own", action="store_true", help="only inputs of this repository, the same everywhere")
    given = parser.parse_args(arguments)
    kinds = [kind for kind in KINDS if given.only in (None, kind)]
    sources = load_sources(kinds, public=not given.own)
    if given.case is not None:
        cases = [Case(kind, given.case) for kind in kinds]
    else:
        cases = [Case(kind, given.first + number) for number in range(given.count) for kind in kinds]
    print(
        f"{len(cases)} cases of {len(sources.logs)} logs, {len(sources.documents)} archives,"
        f" {len(sources.recordings)} recordings, {len(sources.stacks)} files of stacks,"
        f" {len(sources.folders)} runs of training and streams, {len(sources.runs)} run files",
        flush=True,
    )
    begin = time.monotonic()
    counts: Counter[tuple[str, str]] = Counter()
    memory = 0
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # `timeout` ends it as Ctrl-C does
    outcomes = fuzz(cases, given.seed, given.jobs, sources)
    for done, outcome in enumerate(_until_interrupted(outcomes), 1):
        counts[outcome.case.kind, outcome.what] += 1
        memory = max(memory, outcome.memory_bytes)
        if outcome.what == "failed" or given.case is not None:
            own = " --own" if given.own else ""
            chosen = f"--seed {given.seed}{own} --only {outcome.case.kind} --case {outcome.case.number}"
            again = f"python -m lab.damage.fuzz {chosen}"
            print(f"{outcome.what}: {again}\n  {outcome.source}: {outcome.damage}\n{outcome.text}", flush=True)
        if done % 1000 == 0:
            print(f"{done} done after {time.monotonic() - begin:.0f} s", flush=True)
    for (kind, what), count in sorted(counts.items()):
        print(f"{kind:10s} {what:8s} {count:6d}")
    print(f"{time.monotonic() - begin:.0f} s, at most {memory >> 20} MiB in a process")
    return 1 if any(what == "failed" for _, what in counts) else 0


if __name__ == "__main__":
    sys.exit(main())
