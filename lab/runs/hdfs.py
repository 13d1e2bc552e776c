"""A storage node: HDFS (one NameNode, one DataNode) as plain processes, so that input comes over the network.

The classes are those of Hadoop's own test cluster, of the version that pyspark's jars carry. The file system's folders
stay in the cache with the data in them, so that a run only starts the two daemons.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from xml.sax.saxutils import escape

from lab.errors import LabError
from lab.machine.host import cache_dir
from lab.runs.maven import fetched

PORT = 8020
HEAP = "256m"
COMMAND_TIMEOUT_S = 600
# The daemons start with each run and do little: the quick compiler and the small collector start them soonest.
_JAVA_FLAGS = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", f"-Xmx{HEAP}")
_PACKAGE = "org.apache.hadoop"
NAMENODE = f"{_PACKAGE}.hdfs.server.namenode.NameNode"
DATANODE = f"{_PACKAGE}.hdfs.server.datanode.DataNode"
READY = r"processReport .*: from storage"

_LOGGING = """\
rootLogger.level = info
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{ISO8601} %p %c{1}: %m%n
"""


def hadoop_version(spark: Path) -> str:
    """Version of the Hadoop client among Spark's jars."""
    for jar in sorted((spark / "jars").glob("hadoop-client-api-*.jar")):
        return jar.stem.removeprefix("hadoop-client-api-")
    raise LabError(f"{spark}/jars has no hadoop-client-api; the lab needs pyspark with Hadoop in it.")


def fetch_hdfs(spark: Path) -> Path:
    """Hadoop's daemons as one jar, fetched once with Maven into the lab's cache."""
    return fetched(_PACKAGE, "hadoop-client-minicluster", hadoop_version(spark), "use --storage local")


def store_folder(data: Path) -> Path:
    """The folder in the cache of the file system with one data set."""
    return cache_dir() / "hdfs" / f"{data.parent.name}-{data.name}"


def missing(store: Path, names: Sequence[str]) -> list[str]:
    """The files or folders among these that a file system lacks."""
    filled = store / "filled"
    held = filled.read_text().split("\n") if filled.exists() else []
    return [name for name in names if name not in held]


def write_configuration(folder: Path, store: Path, address: str) -> Path:
    """The two daemons' configuration; ``folder`` is then the first entry of their class path."""
    values = {
        "fs.defaultFS": f"hdfs://{address}:{PORT}",
        "hadoop.tmp.dir": str(folder / "tmp"),
        "dfs.namenode.name.dir": (store / "name").as_uri(),
        "dfs.datanode.data.dir": (store / "data").as_uri(),
        "dfs.replication": "1",
        "dfs.permissions.enabled": "false",
        "dfs.namenode.rpc-bind-host": address,
        "dfs.namenode.http-address": f"{address}:0",
        "dfs.datanode.hostname": address,
        "dfs.datanode.address": f"{address}:0",
        "dfs.datanode.ipc.address": f"{address}:0",
        "dfs.datanode.http.address": f"{address}:0",
        # A namespace has no name service.
        "dfs.namenode.datanode.registration.ip-hostname-check": "false",
        "dfs.namenode.safemode.extension": "0",
    }
    folder.mkdir(parents=True, exist_ok=True)
    properties = "".join(
        f"<property><name>{name}</name><value>{escape(value)}</value></property>\n" for name, value in values.items()
    )
    for file in ("core-site.xml", "hdfs-site.xml"):
        (folder / file).write_text(f"<configuration>\n{properties}</configuration>\n")
    (folder / "log4j2.properties").write_text(_LOGGING)
    return folder


def hadoop_command(java: Path, spark: Path, configuration: Path, class_name: str, *arguments: str) -> list[str]:
    """The command of a Hadoop program."""
    class_path = f"{configuration}:{fetch_hdfs(spark)}:{spark}/jars/*"
    return [str(java), *_JAVA_FLAGS, "-cp", class_path, class_name, *arguments]


def format_store(java: Path, spark: Path, configuration: Path, store: Path) -> None:
    """Create an empty file system if there is none, or only part of one."""
    if (store / "filled").exists():
        return
    shutil.rmtree(store, ignore_errors=True)
    store.mkdir(parents=True)
    _run(hadoop_command(java, spark, configuration, NAMENODE, "-format", "-nonInteractive"), "make a file system")
    (store / "filled").write_text("")


def fill_command(java: Path, spark: Path, configuration: Path, data: Path, names: Sequence[str]) -> list[str]:
    """The command, to be run on the storage node, that copies files or folders of a data set to the root."""
    sources = [str(data / name) for name in names]
    return hadoop_command(java, spark, configuration, f"{_PACKAGE}.fs.FsShell", "-put", "-f", *sources, "/")


def fill(command: Sequence[str], store: Path, names: Sequence[str]) -> None:
    """Run ``fill_command``, and record the content of the file system."""
    print("copying the data to the storage node, once …", file=sys.stderr)
    _run(command, "copy the data")
    held = set((store / "filled").read_text().split("\n")) | set(names)
    (store / "filled").write_text("\n".join(sorted(held - {""})))


def _run(command: Sequence[str], what: str) -> None:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=COMMAND_TIMEOUT_S, check=False, env=os.environ
        )
    except subprocess.TimeoutExpired:
        raise LabError(f"HDFS did not {what} within {COMMAND_TIMEOUT_S} s.") from None
    if done.returncode != 0:
        lines = [line for line in re.split(r"\n", done.stderr + done.stdout) if line.strip()]
        raise LabError(f"HDFS could not {what} ({lines[-1].strip() if lines else done.returncode}).")
