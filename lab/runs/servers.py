"""``python -m lab.runs.servers connect|thrift --out DIR``: the event log of a server with two clients.

Two users send a Spark Connect server, or a Thrift server, statements of known weight: `ana` three heavy ones and a
light one, `bob` two light ones and one that fails.  The statements of each client come one after the other, both
clients at the same time.  Connect's client needs the packages of ``pyspark[connect]``.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from lab.errors import LabError
from lab.runs import recorded
from lab.runs.cluster import find_spark, spark_environment

CLASSES = {
    "connect": "org.apache.spark.sql.connect.service.SparkConnectServer",
    "thrift": "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2",
}
NAMES = {"connect": "Spark Connect server", "thrift": "Thrift JDBC/ODBC Server"}
"""As Spark's own scripts that start the servers name them."""

START_S, CLIENT_S, STOP_S = 90.0, 180.0, 30.0

_HEAVY = "SELECT count(DISTINCT sha2(sha2(CAST(id AS STRING), 512), 512)) AS hashes FROM range({})"
_LIGHT = "SELECT sum(id) AS total FROM range({})"
STATEMENTS = {
    "ana": (*(_HEAVY.format(rows) for rows in (300_000, 600_000, 900_000)), _LIGHT.format(1_000)),
    "bob": (_LIGHT.format(2_000), _LIGHT.format(3_000), "SELECT missing FROM range(10)"),
}


def record(kind: str, out: Path) -> Path:
    """The log of a server of a kind whose clients sent STATEMENTS.  Raises LabError if it cannot be made."""
    shutil.rmtree(out, ignore_errors=True)
    (out / "logs").mkdir(parents=True)
    with _server(kind, out) as port:
        clients = {
            user: subprocess.Popen(
                _client(kind, port, user),
                env=spark_environment(),
                cwd=out,
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
            )
            for user in STATEMENTS
            for log in [(out / f"{user}.txt").open("wb")]
        }
        for user, client in clients.items():
            try:
                client.wait(CLIENT_S)
            except subprocess.TimeoutExpired:
                client.kill()
                raise LabError(f"The client of {user} did not end; see {out / f'{user}.txt'}.") from None
    logs = sorted((out / "logs").iterdir())
    if len(logs) != 1:
        raise LabError(f"{len(logs)} event logs instead of one in {out / 'logs'}; see {out / 'server.txt'}.")
    return logs[0]


@contextmanager
def _server(kind: str, out: Path) -> Iterator[int]:
    """A server of two slots; its port."""
    port = _free_port()
    settings = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.dir": (out / "logs").as_uri(),
        "spark.local.dir": str(out / "scratch"),
        "spark.sql.warehouse.dir": str(out / "warehouse"),
        "spark.sql.shuffle.partitions": "4",
        "spark.ui.enabled": "false",
    }
    words = [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
    if kind == "connect":
        words += ["--conf", f"spark.connect.grpc.binding.port={port}"]
    else:
        for name, value in (("port", port), ("bind.host", "localhost")):
            words += ["--hiveconf", f"hive.server2.thrift.{name}={value}"]
    command = [str(find_spark() / "bin" / "spark-submit"), "--master", "local[2]", "--class", CLASSES[kind]]
    command += ["--name", NAMES[kind], *words]
    with (out / "server.txt").open("wb") as log:
        server = subprocess.Popen(
            command, env=spark_environment(), cwd=out, stdout=log, stderr=log, start_new_session=True
        )
        try:
            _await(port, server, out / "server.txt")
            yield port
        finally:
            with suppress(ProcessLookupError):
                os.killpg(server.pid, signal.SIGTERM)  # Spark ends its log
            with suppress(subprocess.TimeoutExpired):
                server.wait(STOP_S)
            with suppress(ProcessLookupError):
                os.killpg(server.pid, signal.SIGKILL)


def _await(port: int, server: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + START_S
    while time.monotonic() < end and server.poll() is None:
        with suppress(OSError), socket.create_connection(("localhost", port), 1.0):
            return
        time.sleep(0.5)
    raise LabError(f"The server did not start in {START_S:.0f} s; see {log}.")


def _client(kind: str, port: int, user: str) -> list[str]:
    if kind == "connect":
        return [sys.executable, __file__, "client", f"sc://localhost:{port}/;user_id={user}", user]
    beeline = [str(find_spark() / "bin" / "spark-class"), "org.apache.hive.beeline.BeeLine", "--force=true"]
    statements = [word for each in STATEMENTS[user] for word in ("-e", each)]
    return [*beeline, "-u", f"jdbc:hive2://localhost:{port}", "-n", user, *statements]


def _send(address: str, user: str) -> None:
    """The client of Connect, in a process of its own."""
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.remote(address).getOrCreate()
    for each in STATEMENTS[user]:
        try:
            print(spark.sql(each).collect())
        except Exception as error:  # one of them is to fail
            print(type(error).__name__, error)
    spark.range(1000).selectExpr("id % 7 AS part").groupBy("part").count().collect()
    spark.stop()


def _free_port() -> int:
    with socket.create_server(("localhost", 0)) as server:
        return int(server.getsockname()[1])


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; 0, or 1 with one sentence on stderr."""
    return recorded.run("lab.runs.servers", __doc__, CLASSES, record, arguments)


if __name__ == "__main__":
    if sys.argv[1:2] == ["client"]:
        _send(*sys.argv[2:4])
    else:
        sys.exit(main())
