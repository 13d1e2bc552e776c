"""A service in a separate process, as users start it, with a separate home; for tests and measurements."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

ROOT = Path(__file__).parent.parent


@dataclass
class Served:
    """A service that runs, and a client for it."""

    home: Path
    port: int
    process: subprocess.Popen[bytes]
    client: httpx.Client = field(init=False)

    def __post_init__(self) -> None:
        self.client = httpx.Client(base_url=f"http://127.0.0.1:{self.port}", timeout=120)

    def get(self, path: str, **settings: Any) -> httpx.Response:
        """The response to GET."""
        return self.client.get(path, **settings)

    def post(self, path: str, json: Any = None, **settings: Any) -> httpx.Response:
        """The response to POST."""
        return self.client.post(path, json=json, **settings)

    def job_over(self, job_id: str, within_s: float = 180.0) -> dict[str, Any]:
        """The job, after it has ended."""
        until = time.monotonic() + within_s
        while time.monotonic() < until:
            job: dict[str, Any] = self.get(f"/api/jobs/{job_id}").json()
            if job["state"] not in ("waiting", "running"):
                return job
            time.sleep(0.1)
        raise AssertionError(f"job {job_id} has not ended after {within_s} s")

    def kill(self) -> None:
        """Kill it like a crash, without a clean shutdown."""
        self.process.kill()
        self.process.wait()
        self.client.close()


def free_port() -> int:
    """A free port of this machine."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def start(home: Path, *arguments: str, port: int = 0, environment: dict[str, str] | None = None) -> Served:
    """Start a service over a home; returns when it responds."""
    port = port or free_port()
    command = [
        sys.executable,
        "-m",
        "crystalperf.cli.main",
        "serve",
        "--home",
        str(home),
        "--port",
        str(port),
        *arguments,
    ]
    log = (home.parent / f"served-{port}.log").open("ab")
    with log:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**os.environ, **(environment or {})},
        )
    served = Served(home, port, process)
    until = time.monotonic() + 120
    while True:
        try:
            if served.get("/health").status_code == 200:
                return served
        except httpx.TransportError:
            pass
        if process.poll() is not None or time.monotonic() > until:
            process.kill()
            process.wait()
            served.client.close()
            raise AssertionError(f"the service did not start: {Path(log.name).read_text()[-2000:]}")
        time.sleep(0.1)


@contextmanager
def serving(home: Path, runs: Sequence[Path] = (), *arguments: str, token: str = "") -> Iterator[Served]:
    """A service over a home with copies of these run files; it is stopped afterwards, and must end."""

    (home / "runs").mkdir(parents=True, exist_ok=True)
    for each in runs:
        shutil.copy(each, home / "runs" / each.name)
    served = start(home, *arguments, environment={"CRYSTALPERF_TOKEN": token} if token else None)
    try:
        yield served
    finally:
        served.client.close()
        served.process.send_signal(signal.SIGTERM)
        try:
            served.process.wait(60)
        finally:
            served.process.kill()
            served.process.wait()
