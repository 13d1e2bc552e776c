"""Kill the service at random moments, and check that it loses nothing that it had confirmed.

    python -m lab.damage.kills --count 200 --seed 23

The command uploads small logs continuously, and deletes some of their runs.  At the end, every job that was accepted
with 202 must exist and have ended, every run that was reported as done and not deleted must answer, every run whose
deletion was confirmed must be gone, and there must be no incomplete files.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from lab.served import Served, free_port, start


@dataclass
class Observation:
    """Responses of the service, over all restarts."""

    jobs: dict[str, str] = field(default_factory=dict)
    """The application of each accepted job."""
    done: set[str] = field(default_factory=set)
    """Runs that were reported as done."""
    deleted: set[str] = field(default_factory=set)
    unsure: set[str] = field(default_factory=set)
    """Runs whose deletion was requested, but not confirmed."""


def small_log(number: int) -> bytes:
    """A log of a separate application, with one empty job."""
    lines = [
        {"Event": "SparkListenerLogStart", "Spark Version": "4.0.1"},
        {
            "Event": "SparkListenerApplicationStart",
            "App Name": f"number {number}",
            "App ID": f"app-{number:06}",
            "Timestamp": 1_700_000_000_000,
            "User": "u",
        },
        {"Event": "SparkListenerApplicationEnd", "Timestamp": 1_700_000_010_000},
    ]
    return "".join(json.dumps(each) + "\n" for each in lines).encode()


def ask(address: str, seen: Observation, ended: threading.Event, rng: random.Random) -> None:
    """Upload, poll and delete until cancelled; retries while the service is down."""
    number = 0
    with httpx.Client(base_url=address, timeout=30) as client:
        while not ended.is_set():
            try:
                number += 1
                app = f"app-{number:06}"
                sent = client.post("/api/runs", files={"files": (f"{number}.log", small_log(number))})
                if sent.status_code == 202:
                    seen.jobs[sent.json()["id"]] = app
                for job in client.get("/api/jobs?limit=500").json()["jobs"]:
                    if job["state"] == "done":
                        seen.done.add(job["run"])
                left = sorted(seen.done - seen.deleted - seen.unsure)
                if left and rng.random() < 0.2:
                    run = rng.choice(left)
                    seen.unsure.add(run)
                    if client.delete(f"/api/runs/{run}").status_code == 204:
                        seen.deleted.add(run)
                        seen.unsure.discard(run)
                time.sleep(rng.random() * 0.3)
            except (httpx.HTTPError, ValueError, KeyError):
                time.sleep(0.05)


def check(served: Served, seen: Observation) -> list[str]:
    """All losses, a sentence each."""
    lost = []
    jobs = {}
    for job_id in seen.jobs:
        found = served.get(f"/api/jobs/{job_id}")
        if found.status_code != 200:
            lost.append(f"job {job_id} was accepted and is missing")
            continue
        jobs[job_id] = served.job_over(job_id, 1200)
    for job_id, job in jobs.items():
        if job["state"] != "done" and "times during this job" not in (job["problem"] or ""):
            lost.append(f"job {job_id} ended as {job['state']}: {job['problem']}")
        elif job["state"] == "done":
            seen.done.add(job["run"])
    for run in sorted(seen.done - seen.deleted - seen.unsure):
        if served.get(f"/api/runs/{run}/debug").status_code != 200:
            lost.append(f"run {run} was reported as done and does not answer")
    lost += [
        f"run {run} was deleted and still exists"
        for run in sorted(seen.deleted)
        if served.get(f"/api/runs/{run}").is_success
    ]
    own = served.home / "service"
    for folder in (own / "uploads", own / "inputs"):
        lost += [f"{each.name} is left in {folder.name}" for each in folder.iterdir()]
    lost += [f"{each.name} is half written" for each in (own / "jobs").iterdir() if each.suffix != ".json"]
    return lost


def kill_again_and_again(home: Path, count: int, seed: int, longest_s: float = 4.0) -> tuple[Observation, list[str]]:
    """Kill a service `count` times, each at a random moment within seconds after its start; returns the losses."""
    rng, seen, ended, port = random.Random(seed), Observation(), threading.Event(), free_port()
    asking = threading.Thread(target=ask, args=(f"http://127.0.0.1:{port}", seen, ended, random.Random(seed + 1)))
    asking.start()
    try:
        for number in range(count):
            served = start(home, port=port)
            time.sleep(rng.random() * longest_s)
            served.kill()
            if number % 10 == 9:
                print(f"{number + 1} kills, {len(seen.jobs)} jobs accepted, {len(seen.deleted)} deleted", flush=True)
    finally:
        ended.set()
        asking.join()
    served = start(home, port=port)
    try:
        return seen, check(served, seen)
    finally:
        served.kill()


def main() -> None:
    """Kill, and print the losses."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=23)
    reported = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # `timeout` would leave its home behind
    with tempfile.TemporaryDirectory() as folder:
        seen, lost = kill_again_and_again(Path(folder) / "home", reported.count, reported.seed)
    print(f"{reported.count} kills, {len(seen.jobs)} jobs accepted, {len(seen.done)} runs done,"
          f" {len(seen.deleted)} deleted, lost: {len(lost)}")  # fmt: skip
    for each in lost:
        print(f"  {each}")
    raise SystemExit(1 if lost else 0)


if __name__ == "__main__":
    main()
