"""Real trainings of PyTorch, TensorFlow and JAX on this machine, with traces and the times of untraced steps.

    python -m lab.runs.training list
    python -m lab.runs.training pytorch -o DIR [--python PYTHON] [--only NAME …]
    python -m lab.runs.training tensorflow -o DIR --python PYTHON [--only NAME …] [--limit MINUTES] [--keep FOLDER]
    python -m lab.runs.training jax -o DIR --python PYTHON
    python -m lab.runs.training sweep -o DIR [--framework tensorflow --python PYTHON] [--only NAME …] [--limit MINUTES]

`sweep` runs PyTorch (ranks and gloo) or TensorFlow (a chief, other workers and a parameter server) with CPU quotas,
network rates and other numbers of ranks (root), each process on a separate node.  `python -m lab.score.training DIR`
predicts each configuration from its model's baseline.  Limits apply after all processes are ready to train.

Each configuration has a folder with its traces, the output of its processes and `steps.json`.  If it has that file, or
a row in DIR's `rows.jsonl`, it does not run again, so you can stop a series and continue it.  PYTHON is the interpreter
of an environment with the framework and without this project.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import random
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from lab.errors import LabError
from lab.machine.disk import data_files, drop_pages
from lab.machine.host import (
    SUBNET,
    Node,
    cache_dir,
    check_host,
    command_on,
    limit_rates,
    make_cgroups,
    shape_network,
    shared_machine,
    whole_disk,
)
from lab.runs.series import make_missing, read_lines, write_lines

TIMEOUT_S = 900.0


@dataclass(frozen=True)
class Configuration:
    """One configuration; `asked` are the job's arguments, `ranks` are processes of PyTorch or workers of TensorFlow.

    With `servers`, TensorFlow's variables are on that many parameter servers.  `cores` is each process' CPU time per
    second, `network_bps` the rate of its link in each direction, bits per second, `disk_bytes_per_s` the rate of
    reading example files, none of which is in the page cache; None for no limit.
    """

    name: str
    framework: str
    ranks: int = 1
    servers: int = 0
    asked: dict[str, Any] = field(default_factory=dict)
    cores: float | None = None
    network_bps: int | None = None
    disk_bytes_per_s: int | None = None


MBIT = MBYTE = 1_000_000

CONFIGURATIONS = (
    *(
        Configuration(f"torch-{model}-r{ranks}-t{threads}", "pytorch", ranks, 0, {"model": model, "threads": threads})
        for model in ("cnn", "transformer")
        for ranks in (1, 2, 3)
        for threads in (1, 2)
    ),
    *(
        Configuration(f"torch-input-l{loaders}", "pytorch", 1, 0, {"loaders": loaders, "read_ms": 4.0})
        for loaders in (0, 1, 2, 4)
    ),
    *(
        Configuration(f"tf-session-i{intra}-o{inter}", "tensorflow", 1, 0, {"intra": intra, "inter": inter})
        for intra in (1, 2)
        for inter in (1, 2)
    ),
    *(
        Configuration(f"tf-ps{servers}-w{ranks}", "tensorflow", ranks, servers)
        for servers in (1, 2)
        for ranks in (1, 2)
    ),
    *(
        Configuration(f"tf-input-{'queue' if queue else 'data'}", "tensorflow", 1, 0, {"queue": queue, "read_ms": 2.0})
        for queue in (False, True)
    ),
    Configuration("jax-mlp", "jax"),
    *(
        Configuration(
            f"scaling-{exchange}-r{ranks}",
            "pytorch",
            ranks,
            0,
            {"exchange": exchange, "batch": 64, "timed": 24},
            0.4,
            1000 * MBIT,
        )
        for exchange in ("server", "ring")
        for ranks in (1, 2, 3, 4)
    ),
)
SWEPT = (
    *(
        Configuration(
            f"{model}-r{ranks}-c{cores:g}-n{mbit}",
            "pytorch", ranks, 0, {"model": model, "timed": 24}, cores, mbit * MBIT,
        )
        for model in ("cnn", "transformer")
        for ranks in (2, 3)
        for cores in (0.2, 0.4, 0.6)
        for mbit in (50, 100, 200, 1000)
    ),
    *(
        Configuration(
            f"tf-w{workers}-c{cores:g}-n{mbit}",
            "tensorflow", workers, 1, {"timed": 4, "lasting_s": lasting_s}, cores, mbit * MBIT,
        )
        for workers in (2, 3)
        for cores in (0.2, 0.3, 0.45)
        for mbit, lasting_s in ((100, 45.0), (200, 25.0), (400, 15.0), (1000, 10.0))
    ),
    *(
        Configuration(
            f"{model}-r2-c0.6-n{mbit}-b{batch}",
            "pytorch", 2, 0, {"model": model, "timed": 24, "batch": batch}, 0.6, mbit * MBIT,
        )
        for model in ("cnn", "transformer")
        for mbit in (200, 1000)
        for batch in (8, 32, 64)
    ),
    *(
        Configuration(
            f"{'saved' if saved else 'files'}-r1-c{cores:g}-d{rate}",
            "pytorch", 1, 0, {"model": "cnn", "timed": 24, "stacks": True, "files": "examples", "saved": saved}, cores,
            1000 * MBIT, rate * MBYTE,
        )
        for saved in (False, True)
        for cores in (0.3, 0.6)
        for rate in (1, 2, 4, 8)
    ),
)  # fmt: skip
"""The configurations of `sweep`; workers of a parameter server need about forty steps to reach a steady state."""

_SEED = 20210714
_PER_BASE = 6
_BASES = (
    "cnn-r2-c0.6-n200", "transformer-r2-c0.6-n200", "tf-w2-c0.45-n200", "files-r1-c0.6-d2", "saved-r1-c0.6-d2",
)  # fmt: skip


def base_of(one: Configuration) -> Configuration:
    """The baseline of the same model; predictions start from its recorded run."""

    def job(each: Configuration) -> tuple[object, ...]:
        return each.framework, *(each.asked.get(name) for name in ("model", "files", "saved"))

    return next(each for each in SWEPT if each.name in _BASES and job(each) == job(one))


def role_of(one: Configuration) -> str:
    """Whether it is in the tuning set (even) and not in the test set (odd); baselines are in neither.

    For PyTorch the position decides (at 100 and 1 000 Mbit/s all are odd), for TensorFlow the hash of the name.
    """
    if one is base_of(one):
        return "base"
    place = SWEPT.index(one) if one.framework == "pytorch" else hashlib.sha256(one.name.encode()).digest()[-1]
    return "odd" if place % 2 else "even"


def planned(repetitions: int, framework: str = "pytorch") -> list[Configuration]:
    """The sweep's runs of a framework in a fixed random order, the baselines before every six; a repetition's name ends
    in its number."""
    rng, found, made = random.Random(_SEED), list[Configuration](), 0
    swept = [each for each in SWEPT if each.framework == framework]
    bases = [each for each in swept if base_of(each) is each]
    for repetition in range(repetitions):
        wanted = [each for each in swept if each not in bases]
        rng.shuffle(wanted)
        for place, each in enumerate(wanted):
            if place % _PER_BASE == 0:
                found += [replace(base, name=f"{base.name}.{made}") for base in bases]
                made += 1
            found.append(replace(each, name=f"{each.name}.{repetition}"))
    return found


def run(one: Configuration, python: str, out: Path) -> Path:
    """Run a configuration unless its step times exist; returns their file.  Raises LabError."""
    folder = out.absolute() / one.name
    kept = folder / "steps.json"
    if kept.exists():
        return kept
    shutil.rmtree(folder, ignore_errors=True)  # traces of a failed run would be mistaken for this run's
    folder.mkdir(parents=True)
    nodes = _nodes(one)
    with contextlib.ExitStack() as stack:
        if nodes:
            check_host(namespaces=True, limits=one.cores is not None)
            stack.enter_context(shared_machine(nodes))
            shape_network(nodes)
        start = {"pytorch": _pytorch, "tensorflow": _tensorflow, "jax": _jax}[one.framework]
        jobs = start(one, python, folder, nodes)
        if nodes:
            _let_go(jobs, nodes, folder, one.name)
        found = _finished(jobs, one.name)
    facts = {key: value for key, value in asdict(one).items() if key not in ("name", "framework")}
    building = kept.with_suffix(".tmp")
    building.write_text(json.dumps({**facts, "found": found}))
    building.replace(kept)
    return kept


def _nodes(one: Configuration) -> list[Node]:
    """A node for each rank of a configuration with limits; empty without limits."""
    if one.network_bps is None:
        return []
    return [
        Node(
            f"rank{rank}", f"{SUBNET}.{2 + rank}", one.network_bps, one.cores, protected=True,
            disk_bytes_per_s=one.disk_bytes_per_s, small_buffers=False,
        )
        for rank in range(one.ranks + one.servers)
    ]  # fmt: skip


def examples() -> Path:
    """The folder of example files that trainings read; they create missing ones."""
    return cache_dir() / "examples"


def _let_go(jobs: Sequence[Job], nodes: Sequence[Node], folder: Path, name: str) -> None:
    """Apply the CPU quotas after all jobs are ready, and start the training.  Raises LabError after TIMEOUT_S."""
    until = time.monotonic() + TIMEOUT_S
    while len(list(folder.glob("*.ready"))) < len(jobs):
        if any(each.process.poll() is not None for each in jobs):
            return  # the caller that waits for their end reports it
        if time.monotonic() > until:
            for each in jobs:
                each.process.kill()
            raise LabError(f"{name}: its jobs were not ready within {TIMEOUT_S:.0f} s")
        time.sleep(0.05)
    disk = None
    if any(each.disk_bytes_per_s for each in nodes):
        drop_pages(data_files([examples()]))
        disk = whole_disk(examples())
    for node in nodes:
        limit_rates(node, disk)
    (folder / "go").touch()


def run_all(wanted: Sequence[Configuration], python: str, out: Path, minutes: float | None) -> int:
    """Make the missing runs; returns the number still missing (lab.runs.series)."""
    kept = _rows(out)
    missing = [each for each in wanted if each.name not in kept and not (out / each.name / "steps.json").exists()]

    def made(one: Configuration) -> str:
        return str(run(one, python, out).parent)

    return make_missing(missing, made, lambda one: one.name, partial(write_rows, out), minutes=minutes)


def write_rows(out: Path) -> None:
    """Write OUT/rows.jsonl: for each run its arguments, and for each training process the median untraced step, the
    mean of the second half of them and the CPU time of one, ms.

    The CPU time of parameter servers is per step of one worker.  Rows of runs without a folder stay.
    """
    rows = _rows(out)
    for file in sorted(out.glob("*/steps.json")):
        reported = json.loads(file.read_text(encoding="utf-8"))
        trained = [one for one in reported["found"] if one["step_s"]]
        facts = {key: value for key, value in reported.items() if key != "found" and value is not None}
        facts["step_ms"] = [round(1e3 * statistics.median(one["step_s"]), 3) for one in trained]
        later = [one["step_s"][len(one["step_s"]) // 2 :] for one in trained]
        facts["settled_ms"] = [round(1e3 * statistics.mean(each), 3) for each in later]
        served = [one for one in reported["found"] if one.get("job") == "ps"]
        steps = sum(len(one["step_s"]) for one in trained)
        facts["cpu_ms"] = [round(1e3 * one["cpu_s"], 3) for one in trained if "cpu_s" in one]
        if served:
            facts["server_cpu_ms"] = [round(1e3 * one["cpu_s"] / steps, 3) for one in served]
        rows[file.parent.name] = json.dumps({"name": file.parent.name, **facts})
    write_lines(out, rows.values())


def _rows(out: Path) -> dict[str, str]:
    """The lines of OUT/rows.jsonl by their runs' names."""
    return read_lines(out, lambda row: str(row["name"]))


@dataclass(frozen=True)
class Job:
    """One process of a training; `said` is the file of its output."""

    process: subprocess.Popen[str]
    said: Path


def _job(
    python: str, script: str, asked: dict[str, Any], said: Path, more: Mapping[str, str], node: Node | None = None
) -> Job:
    command = [python, str(Path(__file__).parent / script), json.dumps(asked)]
    if node is not None:
        command = command_on(node, command, in_namespace=True, cgroups=make_cgroups(node))
    pipe, environment = subprocess.PIPE, {**os.environ, **more}
    with said.open("w", encoding="utf-8") as stderr:
        try:
            process = subprocess.Popen(command, env=environment, text=True, stdin=pipe, stdout=pipe, stderr=stderr)
        except OSError as error:
            raise LabError(f"{command[0]}: cannot be started ({error.strerror}); --python names another") from error
    return Job(process, said)


def _pytorch(one: Configuration, python: str, folder: Path, nodes: Sequence[Node]) -> list[Job]:
    port, asked = str(_ports(1)[0]), {**one.asked, "out": str(folder / "traces")}
    if "files" in asked:
        asked["files"] = str(examples())
    group = {"WORLD_SIZE": str(one.ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    if nodes:
        group |= {"MASTER_ADDR": nodes[0].address, "GLOO_SOCKET_IFNAME": "eth0"}
        asked["held"] = str(folder)
    return [
        _job(python, "torch_job.py", asked, folder / f"rank{rank}.log", {**group, "RANK": str(rank)}, node)
        for rank, node in enumerate(nodes or [None] * one.ranks)
    ]


def _tensorflow(one: Configuration, python: str, folder: Path, nodes: Sequence[Node]) -> list[Job]:
    """Start the workers first, the chief before the others; parameter servers serve until their input ends."""
    asked = {**one.asked, "out": str(folder / "traces")}
    if nodes:
        asked["held"] = str(folder)
    if not one.servers:
        return [_job(python, "tf_job.py", asked, folder / "worker0.log", {}, *nodes)]
    roles = [("worker", task) for task in range(one.ranks)] + [("ps", task) for task in range(one.servers)]
    hosts = [each.address for each in nodes] or ["127.0.0.1"] * len(roles)
    addresses = [f"{host}:{port}" for host, port in zip(hosts, _ports(len(roles)), strict=True)]
    asked["cluster"] = {"worker": addresses[: one.ranks], "ps": addresses[one.ranks :]}
    places: Sequence[Node | None] = nodes or [None] * len(roles)
    return [
        _job(python, "tf_job.py", {**asked, "job": job, "task": task}, folder / f"{job}{task}.log", {}, node)
        for (job, task), node in zip(roles, places, strict=True)
    ]


def _jax(one: Configuration, python: str, folder: Path, _nodes: Sequence[Node]) -> list[Job]:
    return [_job(python, "jax_job.py", {**one.asked, "out": str(folder / "traces")}, folder / "jax.log", {})]


def _ports(count: int) -> list[int]:
    """Free ports."""
    held = [socket.socket() for _ in range(count)]
    try:
        for each in held:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in held]
    finally:
        for each in held:
            each.close()


def _finished(jobs: Sequence[Job], name: str) -> list[dict[str, Any]]:
    """The output of the jobs, in order.  Raises LabError if one failed."""
    found: list[dict[str, Any]] = []
    try:
        for each in jobs:
            printed, _ = each.process.communicate(timeout=TIMEOUT_S)
            reported = [line for line in printed.splitlines() if line.startswith("{")]
            if each.process.returncode or not reported:
                complaint = each.said.read_text(encoding="utf-8", errors="replace").strip()[-300:]
                raise LabError(f"{name}: a job ended with code {each.process.returncode}: {complaint} ({each.said})")
            found += [json.loads(line) for line in reported]
    except subprocess.TimeoutExpired as error:
        raise LabError(f"{name}: a job did not end within {TIMEOUT_S:.0f} s") from error
    finally:
        for each in jobs:
            if each.process.poll() is None:
                each.process.kill()
                each.process.wait()
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; 0, or 1 with one sentence on stderr."""
    parser = argparse.ArgumentParser(prog="python -m lab.runs.training", description="run real trainings")
    parser.add_argument("what", choices=("list", "pytorch", "tensorflow", "jax", "sweep"))
    parser.add_argument("-o", "--out", type=Path, default=Path("lab-runs/training"), metavar="DIR")
    parser.add_argument(
        "--framework", choices=("pytorch", "tensorflow"), default="pytorch", help="the framework of the sweep"
    )
    parser.add_argument("--python", default=sys.executable, metavar="PYTHON")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME")
    parser.add_argument(
        "--repetitions", type=int, default=1, metavar="N", help="runs of each configuration of the sweep"
    )
    parser.add_argument("--limit", type=float, metavar="MINUTES", help="start no run after that")
    given = parser.parse_args(arguments)
    if given.what == "list":
        print("\n".join(each.name for each in CONFIGURATIONS))
        return 0
    chosen = planned(given.repetitions, given.framework) if given.what == "sweep" else CONFIGURATIONS
    wanted = [each for each in chosen if given.what in (each.framework, "sweep")]
    wanted = [each for each in wanted if not given.only or each.name in given.only]
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # end like Ctrl-C, without losing rows
    try:
        left = run_all(wanted, given.python, given.out, given.limit)
    except (LabError, KeyboardInterrupt) as error:
        print(f"python -m lab.runs.training: {str(error) or 'interrupted'}", file=sys.stderr)
        return 1
    print(f"{left} runs are missing; run the same command to continue", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
