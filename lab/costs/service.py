"""The cost of the service: latency under load, predictions, and memory over many requests.

    python -m lab.costs.service --runs 1000 --seconds 60 --requests 100000

The home has one run, the demo's log unless you name another run file, under many names, as hard links.  The service
would compute the same answers for each in the background; so they are computed once, and stored for the others in the
service's own format.  Requests come in an open loop: at a fixed rate, even if earlier ones have no response yet, and a
latency counts from the time at which its request was due.  Every response is compared with the correct one.  Latencies
depend on the machine's load, which is printed; CPU time is the service's own.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import os
import random
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from crystalperf import profile
from crystalperf.service.answers import Answers
from crystalperf.service.catalog import Catalog
from lab.served import ROOT, Served, serving

QUESTIONS = (("summary", "null"), ("verdict", "null"), ("header", "null"), ("debug", '{"scope": "all"}'))
"""The answers that the service computes for each run, with the facts of the query, in JSON."""

POINTS = 10
"""Number of memory measurements."""

IDLE_S = 10.0
"""Maximum idle time of a connection before it is replaced: the service closes it after 15 s."""


@dataclass
class Reported:
    """The results of requests: latencies in ms, and lost or wrong responses."""

    ms: list[float] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def line(self, name: str) -> str:
        """p50 and p99, in a line."""
        found = sorted(self.ms)
        p50, p99 = (found[min(len(found) - 1, int(len(found) * share))] for share in (0.5, 0.99))
        return (
            f"{name}: {len(found)} requests, p50 {p50:.1f} ms, p99 {p99:.1f} ms, largest {found[-1]:.1f} ms,"
            f" lost or wrong {len(self.wrong)}"
        )


class Client:
    """Connections that stay open, to one service."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._free: list[tuple[float, asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def get(self, path: str) -> tuple[int, bytes]:
        """Status and body of a response with a Content-Length."""
        while self._free and time.monotonic() - self._free[0][0] > IDLE_S:
            self._free.pop(0)[2].close()
        if self._free:
            _, reader, writer = self._free.pop()
        else:
            reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept-Encoding: gzip\r\n\r\n".encode())
        head = await reader.readuntil(b"\r\n\r\n")
        lines = head.decode("latin-1").lower().split("\r\n")
        length = next(int(line.split(":")[1]) for line in lines if line.startswith("content-length:"))
        body = await reader.readexactly(length)
        self._free.append((time.monotonic(), reader, writer))
        return int(lines[0].split()[1]), body

    def close(self) -> None:
        """Close them."""
        for _, _, writer in self._free:
            writer.close()


def fill(home: Path, run: Path, count: int) -> None:
    """The home: one run under many names."""
    folder = home / "runs"
    folder.mkdir(parents=True)
    for number in range(count):
        os.link(run, folder / f"run-{number:04}.duckdb")


def spread(served: Served, first: str) -> None:
    """Store the computed answers of one run for all others."""
    answers, catalog = Answers(served.home / "service" / "answers", 1 << 20), Catalog(served.home / "runs")
    catalog.scan()
    known = catalog.entries[first]
    reported = {(question, text): answers.find(known, question, json.loads(text)) for question, text in QUESTIONS}
    for entry in catalog.entries.values():
        if entry.name != first:
            for (question, text), content in reported.items():
                assert content is not None
                answers.put(entry, question, json.loads(text), content)


Right = Callable[[str, int, bytes], bool]
"""Whether a response is correct, from the requested path, the status and the body."""


async def _ask(client: Client, path: str, right: Right, due: float, reported: Reported) -> None:
    """Send a request, and record the time from when it was due to its response."""
    try:
        status, body = await client.get(path)
        if not right(path, status, body):
            reported.wrong.append(f"{path}: {status}")
    except (OSError, asyncio.IncompleteReadError, StopIteration) as error:
        reported.wrong.append(f"{path}: {error!r}")
    reported.ms.append(1000 * (time.perf_counter() - due))


async def open_loop(port: int, paths: Callable[[int], str], right: Right, per_s: float, count: int) -> Reported:
    """Send requests at a fixed rate."""
    client, reported, begin = Client(port), Reported(), time.perf_counter()
    async with asyncio.TaskGroup() as under_way:
        for number in range(count):
            due = begin + number / per_s
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            under_way.create_task(_ask(client, paths(number), right, due, reported))
    client.close()
    return reported


async def closed_loop(port: int, paths: Callable[[int], str], right: Right, count: int, at_a_time: int) -> Reported:
    """Send requests as fast as responses arrive, several at a time."""
    client, reported, numbers = Client(port), Reported(), iter(range(count))

    async def some() -> None:
        for number in numbers:
            await _ask(client, paths(number), right, time.perf_counter(), reported)

    await asyncio.gather(*(some() for _ in range(at_a_time)))
    client.close()
    return reported


def cpu_ms(pid: int) -> float:
    """CPU time of a process, user and system, without its children."""
    parts = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return 1000 * (int(parts[11]) + int(parts[12])) / os.sysconf("SC_CLK_TCK")


def memory_mib(pid: int) -> float:
    """Proportional memory of a process and its children, in MiB: shared pages count once."""
    found = 0
    children = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True, check=False).stdout.split()
    for each in (str(pid), *children):
        try:
            lines = Path(f"/proc/{each}/smaps_rollup").read_text().split("\n")
        except OSError:
            continue
        found += next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return found / 1024


def measure(run: Path | None, runs: int, seconds: float, requests: int) -> None:
    """All measurements, a line each."""
    with tempfile.TemporaryDirectory(dir=None if run is None else run.parent) as folder:
        home = Path(folder) / "home"
        fill(home, run or _demo(Path(folder)), runs)
        with serving(home) as served:
            _wait_for_one(served)
            first = next(
                each["run"] for each in served.get("/api/runs?limit=500").json()["runs"] if each["state"] == "ready"
            )
            right_debug = served.get(f"/api/runs/{first}/debug").json()
        spread(served, first)
        with serving(home) as served:
            asyncio.run(_asked(served, runs, seconds, requests, right_debug))


def _demo(folder: Path) -> Path:
    """A run file of the demo's log."""
    recorded = ROOT / "lab" / "recordings" / "demo-q9"
    return profile(next(recorded.glob("eventlog*")), output=folder / "demo.duckdb").path


def _wait_for_one(served: Served) -> None:
    while not any(each["state"] == "ready" for each in served.get("/api/runs?limit=500").json()["runs"]):
        time.sleep(0.2)


async def _asked(served: Served, runs: int, seconds: float, requests: int, right_debug: object) -> None:
    rng, known = random.Random(23), set()

    def paths(number: int) -> str:
        if number % 2:
            return f"/api/runs/run-{rng.randrange(runs):04}/debug"
        sort = rng.choice(("run", "-duration_ms", "-kept_at_ms"))
        return f"/api/runs?sort={sort}&offset={rng.randrange(runs // 50) * 50}"

    def right(path: str, status: int, body: bytes) -> bool:
        if status != 200:
            return False
        if "/debug" not in path:
            return len(json.loads(gzip.decompress(body))["runs"]) == min(50, runs)
        if body not in known:  # check the same bytes once
            if json.loads(gzip.decompress(body)) != right_debug:
                return False
            known.add(body)
        return True

    print(f"{runs} runs; memory at the start {memory_mib(served.process.pid):.0f} MiB", flush=True)
    begin, before_ms = time.monotonic(), cpu_ms(served.process.pid)
    reported = await open_loop(served.port, paths, right, 100.0, int(100 * seconds))
    used_ms = (cpu_ms(served.process.pid) - before_ms) / max(len(reported.ms), 1)
    print(reported.line("list and debug, 100 a second, open loop"))
    for each in reported.wrong[:10]:
        print(f"  {each}")
    print(
        f"  took {time.monotonic() - begin:.1f} s; {used_ms:.2f} ms of CPU time a request; {os.cpu_count()} cores,"
        f" load {os.getloadavg()[0]:.1f}",
        flush=True,
    )

    def answers(path: str, status: int, body: bytes) -> bool:
        return status == 200

    for name, settings in (
        ("not cached", [f"cores={n}" for n in range(3, 33)]),
        ("asked before", ["cores=3"] * 200),
    ):
        addresses = [f"/api/runs/run-0000/predict?set={setting}" for setting in settings]
        found = await closed_loop(served.port, addresses.__getitem__, answers, len(addresses), 1)
        if name == "not cached":
            found.ms = found.ms[1:]  # the first reads the run
        print(found.line(f"predictions {name}, one at a time"), flush=True)
    most = 0.0
    for part in range(POINTS):
        reported = await closed_loop(served.port, paths, right, requests // POINTS, 8)
        used = memory_mib(served.process.pid)
        most = max(most, used)
        print(
            f"{(part + 1) * requests // POINTS} requests: {used:.0f} MiB, lost or wrong {len(reported.wrong)}",
            flush=True,
        )
    print(f"peak memory of the service with all its processes: {most:.0f} MiB")


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("run", type=Path, metavar="RUN", nargs="?", help="a run file (default: of the demo's log)")
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--requests", type=int, default=100_000)
    reported = parser.parse_args()
    measure(reported.run and reported.run.absolute(), reported.runs, reported.seconds, reported.requests)


if __name__ == "__main__":
    main()
