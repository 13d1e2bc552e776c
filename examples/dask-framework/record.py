"""Record real runs of Dask: `python record.py FOLDER WORKLOAD WORKERS THREADS [NAME]`.

Writes dask-report.html (task stream and profile) and state.msgpack.gz (dependencies) to FOLDER/NAME, and truth.json
with the wall-clock time of the work.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from pathlib import Path

import dask
from dask.distributed import Client, LocalCluster, performance_report, wait

PARTS = 16


def shuffled(folder: Path):
    """A generated dataframe, shuffled by a key and aggregated by it."""
    frame = dask.datasets.timeseries(
        start="2000-01-01", end="2000-02-10", freq="500ms", partition_freq="2d", dtypes={"key": int, "x": float}, seed=7
    )
    moved = frame.shuffle("key")
    return moved.groupby("key").x.agg(["mean", "std"])


@dask.delayed
def spin(number: int, seconds: float) -> int:
    """A fixed number of steps in Python, about `seconds` of CPU time."""
    total = number
    for step in range(int(seconds * 2.2e7)):
        total = (total * 31 + step) & 0xFFFF
    return total


@dask.delayed
def pair(one: int, other: int) -> int:
    total = one ^ other
    for step in range(int(0.25 * 2.2e7)):
        total = (total * 31 + step) & 0xFFFF
    return total


def tree(folder: Path):
    """32 tasks that only compute, combined two by two."""
    level = [spin(each, 0.5) for each in range(32)]
    while len(level) > 1:
        level = [pair(*level[place : place + 2]) for place in range(0, len(level), 2)]
    return level[0]


@dask.delayed
def fetch(number: int) -> bytes:
    """The response of a server, which takes 0.4 s."""
    from http.client import HTTPConnection

    connection = HTTPConnection("127.0.0.1", PORT, timeout=60)
    connection.request("GET", f"/{number}")
    return connection.getresponse().read()


@dask.delayed
def parse(body: bytes) -> int:
    total = 0
    for step in range(int(0.05 * 2.2e7)):
        total = (total * 31 + step) & 0xFFFF
    return total + len(body)


PORT = 8971


def fetching(folder: Path):
    """24 responses of a slow server, each parsed, then summed."""
    return dask.delayed(sum)([parse(fetch(each)) for each in range(24)])


class Server:
    """A server on this machine that answers each request after 0.4 s."""

    def __enter__(self):
        import threading
        from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

        class Slow(BaseHTTPRequestHandler):
            def do_GET(self):
                time.sleep(0.4)
                body = b"x" * 100_000
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", PORT), Slow)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __exit__(self, *_):
        self.server.shutdown()


WORKLOADS = {"shuffled": shuffled, "tree": tree, "fetching": fetching}


def main(folder: str, workload: str, workers: str, threads: str, name: str = "") -> None:
    place = Path(folder) / (name or f"{workload}-{workers}x{threads}")
    place.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")
    with (
        Server(),
        LocalCluster(n_workers=int(workers), threads_per_worker=int(threads), dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        client.submit(len, "warm").result()
        client.run(__import__, "pandas")
        work = WORKLOADS[workload](place)
        with performance_report(filename=str(place / "dask-report.html")):
            start = time.time()
            future = client.compute(work)
            wait(future)
            seconds = time.time() - start
            client.dump_cluster_state(str(place / "state"))
        time.sleep(1.2)  # until each worker has sent another heartbeat
        rows = client.run_on_scheduler(
            lambda dask_scheduler: [
                [*map(str, key), value]
                for key, value in dask_scheduler.cumulative_worker_metrics.items()
                if isinstance(key, tuple)
            ]
        )
        metrics = {"startstops": [], "scheduler": {"address": client.scheduler.address}, "metrics": rows}
        (place / "dask-metrics.json").write_text(json.dumps(metrics))
        (place / "truth.json").write_text(
            json.dumps({"seconds": seconds, "workers": int(workers), "threads": int(threads)})
        )
        print(place, f"{seconds:.2f} s")


if __name__ == "__main__":
    main(*sys.argv[1:])
