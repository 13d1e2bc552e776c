"""`make fuzz`: damaged event logs and recordings through the readers, thousands of them.

    python -m lab.damage.fuzz                          10 000 logs, 10 000 recordings, 1 000 times the commands
    python -m lab.damage.fuzz --count 500 --seed 7     fewer, and others
    python -m lab.damage.fuzz --only log --case 4711   one of them again, with its traceback

Each case is a real input with damage that its number and the seed decide (mutations.py).  It must end as tables or as
one sentence.  A traceback, contradicting tables, more than 20 s of CPU time or 1.5 GB of memory is a failure, printed
with what repeats it.  One log in twenty goes the whole way: profile, debug and a prediction.  A tenth as many cases
are commands as they are typed: a damaged log is profiled, some with a damaged recording beside it, and analyze, debug
or predict asks one question of it.
"""

from __future__ import annotations

import argparse
import gzip
import json
import multiprocessing
import os
import resource
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from io import StringIO
from multiprocessing.connection import Connection, wait
from pathlib import Path
from random import Random

import numpy as np

import crystalperf as cp
from cli.main import run as type_command
from indexes.errors import CrystalPerfError
from lab.damage.mutations import damaged_log, damaged_recording
from query.code.decide import StackTable
from query.discover import discover
from query.frameworks.known import get
from query.inputs.containers import head
from query.model.trace import Trace
from query.recordings import jfr
from query.samples.threadtime import thread_time

ROOT = Path(__file__).parents[2]
PUBLIC = ROOT.parent / "shared" / "real-inputs"
COUNT = 10_000
KINDS = ("log", "jfr", "command")
LONGEST_CPU_S = 20.0
LONGEST_S = 120.0
"""Wall-clock for a case on a machine that does other things too; CPU time is what is judged."""
MOST_MEMORY_BYTES = 1500 << 20
_HARD_LIMIT_BYTES = 8 << 30  # of addresses: what keeps a runaway from taking the machine along
_WHOLE_EVERY = 20
_COMMANDS_EVERY = 10
_CASES_PER_WORKER = 400  # a fresh process once in a while, so that its peak memory is of few cases
_COMMAND_LINES = 400
"""Of a log that is taken through the commands: its beginning and its end.  All of it is read where the kind is log."""
_WITH_RECORDING = 0.2
_WITH_ONE_INDEX = 0.8
_INDEX = "spark-3.5.9"
_LOG_BYTES = 3 << 20
_RECORDING_BYTES = 1 << 20


@dataclass(frozen=True)
class Sources:
    """The real inputs: lines of logs, bytes of recordings, by the names they are printed with."""

    logs: dict[str, list[bytes]]
    recordings: dict[str, bytes]


@dataclass(frozen=True)
class Case:
    kind: str
    number: int


@dataclass(frozen=True)
class Outcome:
    """`what` is read, refused or failed; `text` the sentence or the traceback."""

    case: Case
    source: str
    damage: str
    what: str
    text: str
    memory_bytes: int = 0


@dataclass
class Worker:
    process: multiprocessing.Process
    pipe: Connection
    case: Case | None = None
    since: float = 0.0
    cpu_s: float = 0.0
    done: int = field(default=0)


class ContradictionError(Exception):
    """Tables that no run can have."""


def load_sources() -> Sources:
    """All real logs and recordings there are; those of this repository only where the public ones are missing."""
    logs: dict[str, list[bytes]] = {}
    folders = [PUBLIC / "spark-eventlog", ROOT / "tests" / "data" / "runs", ROOT / "tests" / "data" / "eventlog"]
    for path in sorted(each for folder in folders for each in folder.rglob("*") if each.is_file()):
        try:
            found = discover([path]).applications
        except CrystalPerfError:
            continue
        for each in found:
            text = b"".join(head(part, _LOG_BYTES) for part in each.log.parts[:2])
            lines = [line for line in text[: text.rfind(b"\n")].split(b"\n") if line]
            if len(lines) > 2:
                logs[f"{path.parent.name}/{path.name}/{each.attempt}"] = lines
    recordings: dict[str, bytes] = {}
    for path in sorted([*PUBLIC.glob("jfr/recordings/**/*.jfr*"), *(ROOT / "lab" / "recordings").rglob("*.jfr*")]):
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        if len(data) > _RECORDING_BYTES:
            continue
        try:
            jfr.read(data)
        except jfr.JfrError:
            continue  # of an older format, or cut as it lies there: damage would change nothing
        recordings[f"{path.parent.name}/{path.name}"] = data
    return Sources(logs, recordings)


# One case, in a worker --------------------------------------------------------------------------------------------


def run_case(case: Case, seed: int, sources: Sources, folder: Path) -> Outcome:
    """Make one damaged input below `folder`, read it, and tell how that went.  Never raises."""
    random = Random(f"{case.kind} {seed} {case.number}")
    given = sources.recordings if case.kind == "jfr" else sources.logs
    source = random.choice(list(given))
    damage = ""
    try:
        if case.kind != "jfr":
            lines = sources.logs[source]
            if case.kind == "command" and len(lines) > _COMMAND_LINES:
                lines = [*lines[: _COMMAND_LINES - _COMMAND_LINES // 4], *lines[-(_COMMAND_LINES // 4) :]]
            files, damage = damaged_log(random, lines)
            paths = [folder / name for name in files]
            for path, text in zip(paths, files.values(), strict=True):
                path.parent.mkdir(exist_ok=True)
                path.write_bytes(text)
            if case.kind == "log":
                what, said = _read_log(folder, case.number % _WHOLE_EVERY == 0)
            else:
                if sources.recordings and random.random() < _WITH_RECORDING:
                    one, other = (sources.recordings[random.choice(list(sources.recordings))] for _ in range(2))
                    data, more = damaged_recording(random, one, other)
                    (folder / "executor-0.jfr").write_bytes(data)
                    damage = f"{damage}; recording: {more}"
                what, said = _type_commands(folder, random)
        else:
            other = sources.recordings[random.choice(list(given))]
            data, damage = damaged_recording(random, sources.recordings[source], other)
            what, said = _read_recording(data)
    except Exception:
        what, said = "failed", traceback.format_exc()
    finally:
        for path in sorted(folder.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
    return Outcome(case, source, damage, what, said)


def _read_log(folder: Path, whole: bool) -> tuple[str, str]:
    """Read what lies in a folder as a user would; contradictions are raised."""
    try:
        inputs = discover([folder])
        for each in inputs.applications:
            check_trace(get("spark").read(each.log))
        if whole and inputs.applications:
            run = cp.profile([folder], output=folder / "run.duckdb", app=_first(inputs.applications[0]))
            answer = run.debug()
            parts = sum(answer.resource_ms.values())
            if abs(parts - answer.runtime_ms) > 1e-3 * answer.runtime_ms + 1e-3:
                raise ContradictionError(f"a critical path of {answer.runtime_ms} ms has parts of {parts} ms")
            run.predict(cores="2x")
    except CrystalPerfError as error:
        return "refused", _one_sentence(str(error))
    return "read", ""


def _type_commands(folder: Path, random: Random) -> tuple[str, str]:
    """What a user types, as the command line takes it; an answer that breaks its contract is raised.

    A log is read once and asked one of the questions; each of them is as good at noticing what reading let through.
    Most runs take one index by name, since looking for those that fit takes as long as all else.
    """
    run = folder / "run.duckdb"
    index = ["--index", _INDEX] if random.random() < _WITH_ONE_INDEX else []
    asked = random.choice(
        (
            ("analyze", run),
            ("debug", run),
            ("debug", run, "--json"),
            ("predict", run, "--set", "cores=2x,4x", "--json"),
            ("predict", run, "--set", "network=2x"),
        )
    )
    commands = (("profile", folder, "-o", run, *index), asked)
    said = "", ""
    for command in commands if folder.exists() else ():
        arguments = [str(each) for each in command]
        out, err = StringIO(), StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            code = type_command(arguments)
        answer, message = out.getvalue(), err.getvalue()
        if code not in (0, 1, 4) or "bug of CrystalPerf" in message or "Traceback" in message:
            raise ContradictionError(f"{' '.join(arguments)} ended with {code}: {message}")
        if code == 1:
            _one_sentence(message)
            if answer and arguments[0] != "predict":
                raise ContradictionError(f"{' '.join(arguments)} failed, and yet answered: {answer[:200]}")
            said = "refused", message
        if arguments[-1] == "--json" and answer:
            json.loads(answer)
        if not run.exists():
            break
    return said if said[0] else ("read", "")


def _first(application: object) -> str:
    app_id, attempt = (getattr(application, name) for name in ("app_id", "attempt"))
    return app_id if attempt is None else f"{app_id}/{attempt}"


def _read_recording(data: bytes) -> tuple[str, str]:
    try:
        recording = jfr.read(data)
    except jfr.JfrError as error:
        return "refused", _one_sentence(str(error))
    time_on_threads = thread_time(recording)
    numbers = StackTable(get("spark")).add(recording)
    if len(time_on_threads.stack):
        numbers[time_on_threads.stack]
    if (time_on_threads.weight_ms < 0).any():
        raise ContradictionError("a sample stands for a negative time")
    if len(recording.samples) and recording.samples.thread.max() >= len(recording.threads):
        raise ContradictionError("a sample is of a thread that there is not")
    return "read", ""


def _one_sentence(text: str) -> str:
    if not text.strip() or "\n" in text.strip():
        raise ContradictionError(f"an error is not one sentence: {text!r}")
    return text


def check_trace(trace: Trace) -> None:
    """What must hold of every log's tables, however damaged it was."""
    duration, units = trace.run["duration_ms"], trace.units
    launch, finish = np.asarray(units["launch_ms"]), np.asarray(units["finish_ms"])
    if not 0 <= duration < np.inf:
        raise ContradictionError(f"a run of {duration} ms")
    if not ((launch >= 0) & (finish >= launch) & (finish <= duration + 1e-6)).all():
        raise ContradictionError("a task lies outside its run or ends before it starts")
    if len(np.unique(units["unit_id"])) != len(launch):
        raise ContradictionError("two tasks have one id")
    for name, column in (*units.items(), *trace.raw["spark_tasks"].items()):
        if name.endswith(("_ms", "_bytes")) and (np.ma.filled(np.ma.asarray(column), 0) < 0).any():
            raise ContradictionError(f"a task's {name} is negative")


def _work(pipe: Connection, seed: int, sources: Sources) -> None:
    """A worker: cases come in, outcomes go out, until the parent hangs up."""
    resource.setrlimit(resource.RLIMIT_AS, (_HARD_LIMIT_BYTES, _HARD_LIMIT_BYTES))
    with tempfile.TemporaryDirectory(prefix="crystalperf-fuzz-") as folder:
        os.environ["CRYSTALPERF_HOME"] = f"{folder}/home"
        place = Path(folder) / "case"
        while True:
            try:
                case = pipe.recv()
            except EOFError:
                return
            if case is None:
                return
            place.mkdir(exist_ok=True)
            outcome = run_case(case, seed, sources, place)
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
            pipe.send(Outcome(**{**outcome.__dict__, "memory_bytes": memory}))


# All cases, in the parent -----------------------------------------------------------------------------------------


def fuzz(cases: Sequence[Case], seed: int, jobs: int, sources: Sources) -> Iterator[Outcome]:
    """The outcomes of all cases as they come in; a worker that hangs or dies is one too, and is replaced."""
    waiting = list(reversed(cases))
    workers: list[Worker] = []
    try:
        while waiting or any(each.case for each in workers):
            workers = [each for each in workers if each.process.is_alive() or each.case]
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
                each.case, each.done = None, each.done + 1
                if outcome.what == "failed" or each.done >= _CASES_PER_WORKER:
                    _stop(each)
                    workers.remove(each)
    finally:
        for each in workers:
            _stop(each)


def _started(seed: int, sources: Sources) -> Worker:
    context = multiprocessing.get_context("fork")  # the sources are shared, not copied
    ours, theirs = context.Pipe()
    process = context.Process(target=_work, args=(theirs, seed, sources), daemon=True)
    process.start()
    theirs.close()
    return Worker(process, ours)  # type: ignore[arg-type]


def _outcome(worker: Worker) -> Outcome | None:
    """What a busy worker says, or what its silence means; None where there is nothing yet."""
    assert worker.case is not None
    if worker.pipe.poll():
        try:
            outcome: Outcome = worker.pipe.recv()
        except (EOFError, OSError):
            worker.process.join(5)
            return Outcome(worker.case, "", "", "failed", f"the process died ({worker.process.exitcode})")
        if outcome.what != "failed" and outcome.memory_bytes > MOST_MEMORY_BYTES:
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
    worker.pipe.close()
    worker.process.join(2)
    if worker.process.is_alive():
        worker.process.kill()
        worker.process.join()


def _cpu_s(pid: int | None) -> float:
    try:
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; 1 where a case failed."""
    parser = argparse.ArgumentParser(prog="python -m lab.damage.fuzz", description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=COUNT, metavar="N", help=f"of each kind (default {COUNT})")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="default 0")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="processes (default: CPUs)")
    parser.add_argument("--only", choices=KINDS, help="one kind of input")
    parser.add_argument("--case", type=int, metavar="N", help="only this case, here, with its traceback")
    parser.add_argument("--from", type=int, default=0, dest="first", metavar="N", help="number of the first case")
    given = parser.parse_args(arguments)
    sources = load_sources()
    kinds = [kind for kind in KINDS if given.only in (None, kind)]
    if given.case is not None:
        cases = [Case(kind, given.case) for kind in kinds]
    else:
        cases = [
            Case(kind, given.first + number)
            for number in range(given.count)
            for kind in kinds
            if kind != "command" or given.only == kind or number % _COMMANDS_EVERY == 0
        ]
    print(f"{len(cases)} cases of {len(sources.logs)} logs and {len(sources.recordings)} recordings", flush=True)
    begin = time.monotonic()
    counts: Counter[tuple[str, str]] = Counter()
    memory = 0
    for done, outcome in enumerate(fuzz(cases, given.seed, given.jobs, sources), 1):
        counts[outcome.case.kind, outcome.what] += 1
        memory = max(memory, outcome.memory_bytes)
        if outcome.what == "failed" or given.case is not None:
            again = (
                f"python -m lab.damage.fuzz --seed {given.seed} --only {outcome.case.kind} --case {outcome.case.number}"
            )
            print(f"{outcome.what}: {again}\n  {outcome.source}: {outcome.damage}\n{outcome.text}", flush=True)
        if done % 1000 == 0:
            print(f"{done} done after {time.monotonic() - begin:.0f} s", flush=True)
    for (kind, what), count in sorted(counts.items()):
        print(f"{kind:7s} {what:8s} {count:6d}")
    print(f"{time.monotonic() - begin:.0f} s, at most {memory >> 20} MiB in a process")
    return 1 if any(what == "failed" for _, what in counts) else 0


if __name__ == "__main__":
    sys.exit(main())
