"""The configuration with which a Flink cluster writes archives and samples of its jobs.

lab/flink/ records with the same flags, so that the printed configuration is tested.
"""

from __future__ import annotations

from typing import Any

from crystalperf.query.frameworks import Setup
from crystalperf.query.recordings.flags import jfr_flag


def facts(folder: str) -> dict[str, Any]:
    """Flink's settings by name; if a recording's name is a folder, each process chooses a file name in it."""
    return {
        "jobmanager.archive.fs.dir": f"file://{folder or '/'}",
        "metrics.fetcher.update-interval": 1000,
        "env.java.opts.jobmanager": jfr_flag(f"{folder}/"),
        "env.java.opts.taskmanager": jfr_flag(f"{folder}/"),
    }


def text(folder: str) -> str:
    """A fragment of Flink's configuration (conf/config.yaml, flink-conf.yaml before 1.19) with prose as comments."""
    found = facts(folder)
    options = [f'{key}: "{found[key]}"' for key in ("env.java.opts.jobmanager", "env.java.opts.taskmanager")]
    return "\n".join(
        [
            "# Add these lines to conf/config.yaml (before Flink 1.19: conf/flink-conf.yaml), and restart the cluster.",
            f"# First make the folder on every node: mkdir -p {folder or '/'}",
            "# Without it, all processes write their recordings to one file, and archives are lost.",
            "",
            "# 1. Set a folder for the archive of each job. Flink writes it when the job ends; CrystalPerf reads it.",
            f"jobmanager.archive.fs.dir: {found['jobmanager.archive.fs.dir']}",
            "",
            "# 2. For a stream, refresh metrics every second (Flink's default is 10 s): while the job runs,",
            "# `crystalperf collect flink` polls them once a second.",
            f"metrics.fetcher.update-interval: {found['metrics.fetcher.update-interval']}  # ms",
            "",
            "# 3. Record stack samples with Java Flight Recorder (Java 17 or newer). Each process writes its recording",
            "# when it ends: stop the TaskManagers after the job (bin/taskmanager.sh stop). While one runs, this",
            f"# writes its samples: jcmd PID JFR.dump filename={folder}/taskmanager-NAME.jfr",
            *options,
            "",
            "# 4. Start each TaskManager with a unique -D taskmanager.resource-id=NAME: CrystalPerf matches recordings",
            "# to TaskManagers by this name, or else by the names of their subtasks' threads. On Kubernetes and YARN,",
            "# Flink sets it.",
            "",
            f"# 5. After the job, run: crystalperf analyze {folder or '/'}",
            "",
        ]
    )


SETUP = Setup(lambda job: text(job.folder), lambda job: facts(job.folder), needs_folder=True)
