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
            "# The archive of each job, written when the job ends: it is what is read.",
            f"jobmanager.archive.fs.dir: {found['jobmanager.archive.fs.dir']}",
            "",
            "# Of a stream, `crystalperf collect flink` asks for figures once a second: Flink renews them every 10 s.",
            f"metrics.fetcher.update-interval: {found['metrics.fetcher.update-interval']}  # ms",
            "",
            "# Stack samples, by Java's own flight recorder (Java 17 or newer), written when a process ends.",
            *options,
            "",
            "# Recordings are tied to TaskManagers by this name: give each TaskManager its own, for example with",
            "# -D taskmanager.resource-id=NAME where it is started (Kubernetes and YARN do so by themselves).",
            "",
            f"# Then: crystalperf analyze {folder or '/'}",
            "",
        ]
    )


SETUP = Setup(lambda job: text(job.folder), lambda job: facts(job.folder))
