"""One run: a cluster, a job, the data that CrystalPerf collects, and the ground truth."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lab.errors import LabError
from lab.flink.cluster import FlinkCluster, FlinkConfig, start_cluster, wait_for
from lab.flink.truth import WARM_UP_S, ThreadTimes, ages
from lab.flink.workloads import Workload, client, write_data
from lab.machine.host import cache_dir

JOB_TIMEOUT_S = 300.0
_COLLECT_TIMEOUT_S = 60.0


@dataclass(frozen=True)
class FlinkRun:
    """A workload and its cluster."""

    workload: Workload
    cluster: FlinkConfig


def run_once(run: FlinkRun, home: Path, jobs: Path, out: Path) -> dict[str, Any]:
    """Run a job once; returns its row, which is also written to `out`/run.json.  Raises LabError.

    `out` then has `collected/` from `crystalperf collect`, `archive/` from the JobManager, `recordings/` with a flight
    recording of each TaskManager, `ages/` with the ages of a stream's records, and `logs/`.
    """
    out = out.absolute()
    workload = run.workload
    data = cache_dir() / "flink"
    if not workload.is_stream:
        write_data(data, workload.records)
    out.mkdir(parents=True, exist_ok=True)
    with start_cluster(run.cluster, home, jobs, out) as cluster:
        pids = {name: process.pid for name, process in cluster.processes.items()}
        cluster.begin()
        with ThreadTimes(pids) as times, (out / "logs/client.log").open("wb") as log:
            began = time.time()
            submitted = subprocess.Popen(
                client(workload, cluster, data), stdout=log, stderr=log, start_new_session=True
            )
            try:
                job = _submitted(cluster, submitted)
                collector = _collector(cluster, out)
                if workload.is_stream:
                    time.sleep(min(WARM_UP_S, workload.seconds))
                    times.mark()
                code = submitted.wait(JOB_TIMEOUT_S)
                ended = time.time()
            except subprocess.TimeoutExpired:
                raise LabError(
                    f"the job did not end within {JOB_TIMEOUT_S:.0f} s; {out / 'logs'} may say why"
                ) from None
            finally:
                if submitted.poll() is None:
                    os.killpg(submitted.pid, signal.SIGKILL)
        if code:
            raise LabError(f"the job ended with code {code}; {out / 'logs/client.log'} says why")
        wait_for(lambda: bool(_archives(out, job)), "archive", 30.0)
        facts = _archived(_archives(out, job)[0], job)
        try:
            collector.wait(_COLLECT_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            collector.send_signal(signal.SIGINT)
            collector.wait(_COLLECT_TIMEOUT_S)
    shutil.rmtree(out / "tmp", ignore_errors=True)
    seen = ages(out / "ages") if workload.is_stream else None
    row = {
        "workload": asdict(workload),
        "cluster": asdict(run.cluster),
        "job": job,
        "state": facts["state"],
        "wall_ms": (ended - began) * 1e3,
        "job_ms": facts["duration"],
        "ages": None if seen is None else asdict(seen),
        "threads_ms": times.by_name(),
    }
    (out / "run.json").write_text(json.dumps(row, indent=1) + "\n", encoding="utf-8")
    return row


def _archives(out: Path, job: str) -> list[Path]:
    """The archive of a job, which Flink 2.3 stores below its application's; both may have the same name."""
    return [each for each in (out / "archive").rglob(job) if each.is_file()]


def _archived(file: Path, job: str) -> dict[str, Any]:
    """The JobManager's final state of a job; its responses are cached, and may still say that the job runs."""
    pages = json.loads(file.read_text(encoding="utf-8"))["archive"]
    found: dict[str, Any] = next(json.loads(each["json"]) for each in pages if each["path"] == f"/jobs/{job}")
    return found


def _submitted(cluster: FlinkCluster, client_process: subprocess.Popen[bytes]) -> str:
    """The id of the job once it runs.  Raises LabError if its client ended before."""
    found: list[str] = []

    def runs() -> bool:
        jobs = cluster.asked("/jobs/overview").get("jobs", [])
        found.extend(each["jid"] for each in jobs)  # type: ignore[attr-defined]
        if not found and client_process.poll() not in (None, 0):
            raise LabError(f"the job was not submitted; {cluster.out / 'logs/client.log'} says why")
        return bool(found)

    wait_for(runs, "job", 120.0)
    return found[0]


def _collector(cluster: FlinkCluster, out: Path) -> subprocess.Popen[bytes]:
    """`crystalperf collect` on the JobManager's node, as a user runs it."""
    command = [
        sys.executable,
        "-m",
        "crystalperf.cli.main",
        "collect",
        "flink",
        cluster.address,
        "-o",
        str(out / "collected"),
    ]
    with (out / "logs/collect.log").open("wb") as log:
        return subprocess.Popen(cluster.compared(command), stdout=log, stderr=log, start_new_session=True)
