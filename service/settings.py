"""Settings of a service: its folders, hosts, token and limits."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from pathlib import Path

from crystalperf.indexes.errors import Remedy, SettingError
from crystalperf.indexes.exports import prebuilt_folder

SHORTEST_TOKEN = 16
"""Minimum characters of a token; a shorter one can be guessed."""


@dataclass(frozen=True)
class Limits:
    """Limits of the service, in bytes, seconds or numbers.  Beyond them it refuses with 408, 413, 429 or 503.

    upload…       total bytes and number of files of one request; concurrent uploads
    silent_s      maximum pause of a client while it sends a head or a body, or reads a response; after slow_after_s a
                  body must arrive at slowest_bps bytes a second or more
    body_bytes    size of a JSON body or a form
    jobs          concurrent and waiting profiling jobs, and the time, memory and disk of each
    sql           concurrent and waiting statements, and the time, memory and answer size of each
    query         query processes and waiting queries, and the time and memory of each; a process that has grown beyond
                  query_process_bytes is replaced
    events        concurrent clients that follow a job
    """

    upload_bytes: int = 2 << 30
    upload_files: int = 200
    uploads: int = 4
    silent_s: float = 30.0
    slow_after_s: float = 60.0
    slowest_bps: int = 1024
    body_bytes: int = 1 << 20
    jobs: int = 1
    waiting_jobs: int = 16
    job_s: float = 1800.0
    job_memory_bytes: int = 4 << 30
    job_file_bytes: int = 16 << 30
    sql: int = 2
    waiting_sql: int = 8
    sql_s: float = 30.0
    sql_memory_bytes: int = 1 << 30
    sql_answer_bytes: int = 32 << 20
    sql_runs: int = 100
    query_processes: int = 2
    waiting_questions: int = 64
    question_s: float = 120.0
    question_memory_bytes: int = 2 << 30
    query_process_bytes: int = 256 << 20
    answers_bytes: int = 48 << 20
    events: int = 64


@dataclass(frozen=True)
class Settings:
    """The configuration of a service.

    `home` is CrystalPerf's folder.  A job may read paths below `folders`, and logs of the servers `histories`
    (service.origins).  `hosts` are accepted host names besides localhost and IP addresses.  Every request must have the
    `token`, unless that is empty.
    """

    home: Path
    host: str = "127.0.0.1"
    port: int = 8090
    token: str = ""
    folders: tuple[Path, ...] = ()
    histories: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    limits: Limits = field(default_factory=Limits)

    def named(self, text: str) -> str:
        """A sentence with file names instead of full paths, to hide this machine's folders."""
        for folder in (*(self.home / each for each in ("runs", "indexes", "prebuilt", "")), prebuilt_folder()):
            text = text.replace(f"{folder}/", "")
        return text

    def __post_init__(self) -> None:
        if self.token and len(self.token) < SHORTEST_TOKEN:
            raise SettingError(f"the token has {len(self.token)} characters; use at least {SHORTEST_TOKEN}")
        if not self.token and not is_loopback(self.host):
            raise SettingError(
                f"{self.host}: other machines can reach this address, so the service needs a token",
                Remedy("set a token"),
            )


def is_loopback(host: str) -> bool:
    """Whether an address is reachable from this machine only."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"
