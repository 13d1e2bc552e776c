"""Record a real run of Ray: `python record.py FOLDER CPUS [fetching|mixed]`.

Starts Ray on this machine with that number of logical CPUs, and writes timeline.json and truth.json to
FOLDER/WORKLOAD-CPUS.  Each of 16 map tasks asks a server that takes 0.4 s and computes; each of 4 shuffle tasks reads
a part of all their results, computes and asks the server; a reduce task reads these.  Tasks of `fetching` hardly
compute, so a machine with two cores can run four of them at a time.  Those of `mixed` compute about as long as they
wait.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from threading import Thread

os.environ["RAY_PROFILING"] = "1"  # before Ray is imported: its workers then send the spans of profile()

import ray
from ray._private.profiling import profile

STEPS = {"fetching": 100_000, "mixed": 6_000_000}
"""Steps of a Python loop in each map and shuffle task."""

PORT = 8972


def spin(steps: int) -> int:
    total = 0
    for step in range(steps):
        total = (total * 31 + step) & 0xFFFF
    return total


def ask(number: int) -> bytes:
    """The response of a server, which takes 0.4 s; a task that waits in ray.get() instead would give its CPU back."""
    from http.client import HTTPConnection

    with profile("service"):
        connection = HTTPConnection("127.0.0.1", PORT, timeout=60)
        connection.request("GET", f"/{number}")
        return connection.getresponse().read()


@ray.remote(num_returns=4)
def fetch(number: int, steps: int) -> list[bytes]:
    """A response in four parts, one for each shuffle task."""
    body = ask(number)
    spin(steps)
    return [body[place::4] for place in range(4)]


@ray.remote
def shuffle(steps: int, *parts: bytes) -> int:
    spin(steps)
    return len(ask(len(parts))) + sum(map(len, parts))


@ray.remote
def add(*sums: int) -> int:
    time.sleep(0.2)
    return sum(sums)


@ray.remote(enable_task_events=False)
def warm() -> None:
    """Loads in a process what tasks need, and is in no timeline."""
    import http.client  # noqa: F401

    time.sleep(1)


def serve() -> None:
    """A server on this machine that answers each request after 0.4 s."""
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

    class Slow(BaseHTTPRequestHandler):
        def do_GET(self):
            time.sleep(0.4)
            body = b"x" * 1_000_000
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    Thread(target=ThreadingHTTPServer(("127.0.0.1", PORT), Slow).serve_forever, daemon=True).start()


def main(folder: str, cpus: str, workload: str = "fetching") -> None:
    place = Path(folder) / f"{workload}-{cpus}"
    place.mkdir(parents=True, exist_ok=True)
    serve()
    ray.init(num_cpus=int(cpus), include_dashboard=False, logging_level="ERROR", object_store_memory=200_000_000)
    ray.get([warm.remote() for _ in range(2 * int(cpus))])  # until Ray has started a process for each CPU
    time.sleep(5)
    steps, since = STEPS[workload], time.time()
    mapped = [fetch.remote(each, steps) for each in range(16)]
    ray.get(add.remote(*[shuffle.remote(steps, *[parts[place] for parts in mapped]) for place in range(4)]))
    seconds = time.time() - since
    time.sleep(3)  # until the workers have sent their events
    ray.timeline(str(place / "timeline.json"))
    (place / "truth.json").write_text(json.dumps({"seconds": seconds, "cpus": int(cpus), "started": since}))
    print(place, f"{seconds:.2f} s")


if __name__ == "__main__":
    main(*sys.argv[1:])
