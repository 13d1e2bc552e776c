"""Whether a person submits an application's work, in a shell, in a notebook or through a server.

Evidence in the log: the Scala shell and the notebooks built on it set spark.repl.class.uri, and the others have fixed
application names.  A run in deploy mode cluster, which no shell supports, and one started by a Databricks job are
programs.  A notebook of plain Python looks like a program.
"""

from __future__ import annotations

from collections.abc import Mapping

from crystalperf.indexes.regex import regex

_NAMES = regex(
    r"Spark shell|PySparkShell|SparkR|Databricks Shell|Zeppelin|livy-session-\d+|Thrift JDBC/ODBC Server"
    r"|Spark Connect server"
)


def interactive(name: str | None, properties: Mapping[str, str]) -> bool | None:
    """See query.inputs.reader.Reader.attended."""
    if properties.get("spark.databricks.clusterSource", "").upper() == "JOB":
        return False
    if "spark.repl.class.uri" in properties or _NAMES.fullmatch(name or ""):
        return True
    return False if properties.get("spark.submit.deployMode") == "cluster" else None
