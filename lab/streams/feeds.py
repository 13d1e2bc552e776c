"""Sources of JSON rows for a streaming query: files that arrive in a folder, or a topic of a real Kafka broker."""

from __future__ import annotations

import base64
import contextlib
import math
import socket
import subprocess
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

from lab.errors import LabError
from lab.runs.cluster import find_java
from lab.runs.maven import fetched, fetched_all
from lab.streams.suite import Configuration

KAFKA = "4.0.0"
"""The version of the broker."""

CONNECTOR = (
    ("org.apache.spark", "spark-sql-kafka-0-10_2.13", "4.0.1"),
    ("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", "4.0.0"),
    ("org.apache.kafka", "kafka-clients", "3.9.1"),
    ("org.apache.commons", "commons-pool2", "2.12.0"),
)
"""Spark's connector for Kafka, and those of the jars that it needs which Spark does not have."""

WAVE_S, WAVE = 12, 0.6
"""The rate of a varied stream is a wave around its mean: its length in seconds, and its height over the mean."""

_WITHOUT = "leave out the job kafka"
_FILES_PER_S = 2
_EPOCH_S = 1_767_225_600  # of event times, 2026-01-01
_DUPLICATES = 10  # one row in so many is a duplicate
_START_S = 60
_BROKER = """process.roles=broker,controller
node.id=1
controller.quorum.voters=1@localhost:{controller}
listeners=PLAINTEXT://localhost:{port},CONTROLLER://localhost:{controller}
advertised.listeners=PLAINTEXT://localhost:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs={folder}
num.partitions=2
offsets.topic.replication.factor=1
"""


class Files:
    """Moves files that are written before into the folder of a stream, at the rate of the configuration."""

    def __init__(self, one: Configuration, folder: Path, seconds: int) -> None:
        self._ready, self.folder = folder / "ready", folder / "arriving"
        for each in (self._ready, self.folder):
            each.mkdir(parents=True)
        self._count, number = seconds * _FILES_PER_S, 0
        for place in range(self._count):
            at_s = place / _FILES_PER_S
            wave = 1 + (WAVE * math.sin(2 * math.pi * at_s / WAVE_S) if one.varied else 0.0)
            rows = round(one.rate / _FILES_PER_S * wave)
            text = "".join(_row(each, at_s) for each in range(number, number + rows))
            (self._ready / f"{place:05d}.json").write_text(text, encoding="utf-8")
            number += rows
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._move, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()

    def _move(self) -> None:
        begin = time.monotonic()
        for place in range(self._count):
            if self._stopped.wait(max(begin + place / _FILES_PER_S - time.monotonic(), 0.0)):
                return
            (self._ready / f"{place:05d}.json").rename(self.folder / f"{place:05d}.json")


def _row(number: int, at_s: float) -> str:
    identity = number - number % _DUPLICATES // (_DUPLICATES - 1)
    user, amount = number * 7919 % 100_000, number % 1000
    return f'{{"id":{identity},"at":{_EPOCH_S + at_s:.3f},"user":"u{user}","amount":{amount}.25}}\n'


class Topic:
    """A producer of its own process that sends rows to a topic, at the rate of the configuration."""

    def __init__(self, one: Configuration, address: str, topic: str, seconds: int) -> None:
        java, source = find_java(), Path(__file__).with_name("Producer.java")
        wave = (WAVE if one.varied else 0.0, WAVE_S)
        arguments = [address, topic, *map(str, (one.rate, seconds, *wave))]
        command = [str(java), "-Xmx256m", "-XX:+UseSerialGC", "-cp", f"{broker_jars()}/*", str(source), *arguments]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert self._process.stdout is not None
        if self._process.stdout.readline().strip() != b"ready":
            raise LabError(f"The producer of {one.name} did not start.")

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait()


def broker_jars() -> Path:
    return fetched_all("org.apache.kafka", "kafka_2.13", KAFKA, _WITHOUT)


def connector_jars() -> str:
    """The jars of Spark's connector for Kafka, as spark.jars has them."""
    return ",".join(str(fetched(*each, _WITHOUT)) for each in CONNECTOR)


@contextlib.contextmanager
def broker(folder: Path) -> Iterator[str]:
    """A Kafka broker of one node in KRaft mode, and its address.  Raises LabError if it does not start."""
    folder.mkdir(parents=True)
    port, controller = _free_port(), _free_port()
    settings, log = folder / "server.properties", folder / "broker.log"
    text = _BROKER.format(port=port, controller=controller, folder=folder / "data")
    settings.write_text(text, encoding="utf-8")
    java = [str(find_java()), "-Xmx512m", "-XX:+UseSerialGC", "-cp", f"{broker_jars()}/*"]
    cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    formatting = [*java, "kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(settings)]
    with open(log, "wb") as output:
        subprocess.run(formatting, stdout=output, stderr=output, timeout=_START_S, check=False)
        process = subprocess.Popen([*java, "kafka.Kafka", str(settings)], stdout=output, stderr=output)
    try:
        _wait_until_open(port, process, log)
        yield f"localhost:{port}"
    finally:
        process.terminate()
        process.wait()


def _free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("localhost", 0))
        return int(listening.getsockname()[1])


def _wait_until_open(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + _START_S
    while True:
        with contextlib.suppress(OSError), socket.create_connection(("localhost", port), timeout=1):
            return
        if process.poll() is not None or time.monotonic() > deadline:
            raise LabError(f"Kafka did not start; its log is {log}.")
        time.sleep(0.2)
