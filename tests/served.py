"""A service in a process of its own, as users start it, with a home of its own."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

ROOT = Path(__file__).parent.parent


class Served:
    """A service that runs, and a client for it."""

    def __init__(self, home: Path, port: int) -> None:
        self.home, self.port = home, port
        self.client = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=120)
        self.get = self.client.get

    def post(self, path: str, json: Any = None, **settings: Any) -> httpx.Response:
        return self.client.post(path, json=json, **settings)

    def job_over(self, job_id: str, within_s: float = 180.0) -> dict[str, Any]:
        """The job, once it is over."""
        until = time.monotonic() + within_s
        while time.monotonic() < until:
            job: dict[str, Any] = self.get(f"/api/jobs/{job_id}").json()
            if job["state"] not in ("waiting", "running"):
                return job
            time.sleep(0.1)
        raise AssertionError(f"job {job_id} is not over after {within_s} s")


def free_port() -> int:
    """A port of this machine that no process has."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


@contextmanager
def serving(home: Path, runs: Sequence[Path] = (), *arguments: str) -> Iterator[Served]:
    """Serve a home with copies of these run files.  SIGTERM must end the service afterwards."""
    (home / "runs").mkdir(parents=True, exist_ok=True)
    for each in runs:
        shutil.copy(each, home / "runs" / each.name)
    served = Served(home, free_port())
    command = [sys.executable, "-m", "crystalperf.cli.main", "serve", "--home", str(home), "--port", str(served.port)]
    log = home.parent / f"served-{served.port}.log"
    with log.open("wb") as output, served.client:
        process = subprocess.Popen(
            [*command, *arguments], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
        try:
            _wait_until_up(served, process, log)
            yield served
            process.send_signal(signal.SIGTERM)
            process.wait(60)
        finally:
            process.kill()
            process.wait()


def _wait_until_up(served: Served, process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + 120
    while time.monotonic() < until and process.poll() is None:
        try:
            if served.get("/health").status_code == 200:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.1)
    raise AssertionError(f"the service did not start: {log.read_text()[-2000:]}")
