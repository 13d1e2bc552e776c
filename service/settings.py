"""What a service is started with: where it keeps things, who may reach it, and the limits of everything."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from pathlib import Path

from crystalperf.indexes.errors import Remedy, SettingError
from crystalperf.indexes.exports import prebuilt_folder

SHORTEST_TOKEN = 16
"""Characters; what is shorter can be guessed."""


@dataclass(frozen=True)
class Limits:
    """What is over one of these is refused in a sentence, with 408, 413, 429 or 503; bytes, seconds, numbers.

    upload        bytes of the files of one request together, their number, and how many requests may send at a time
    silent_s      how long a client may pause while it sends a head or a body, or while it takes an answer; from
                  slow_after_s on a body has slowest_bps bytes a second
    body_bytes    of a request in JSON or of a form
    jobs          profiles at a time, and those that wait; each may take so long, and so much memory and disk
    sql           statements at a time, and those that wait; each may take so long, so much memory, and answer so much
    askers        processes that answer questions, and the questions that wait; each may take so long and so much
                  memory; one that has grown beyond asker_bytes is replaced
    events        clients that follow a job at a time
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
    askers: int = 2
    waiting_questions: int = 64
    question_s: float = 120.0
    question_memory_bytes: int = 2 << 30
    asker_bytes: int = 256 << 20
    answers_bytes: int = 48 << 20
    events: int = 64


@dataclass(frozen=True)
class Settings:
    """`home` is CrystalPerf's own folder; `folders` are those below which a path may be named, `histories` the servers
    whose logs may be (service.origins).

    `hosts` are names by which the service may be asked for, beside localhost and addresses.  `token` is demanded of
    every request where it is not empty.
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
        """A sentence with the names of files in place of this machine's folders, which are nobody else's business."""
        for folder in (*(self.home / each for each in ("runs", "indexes", "prebuilt", "")), prebuilt_folder()):
            text = text.replace(f"{folder}/", "")
        return text

    def __post_init__(self) -> None:
        if self.token and len(self.token) < SHORTEST_TOKEN:
            raise SettingError(f"the token has {len(self.token)} characters, at least {SHORTEST_TOKEN} are expected")
        if not self.token and not is_loopback(self.host):
            raise SettingError(
                f"{self.host}: others can reach this address, so a token is needed", Remedy("set a token")
            )


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"
