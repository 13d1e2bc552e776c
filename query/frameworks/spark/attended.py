"""Whether a person submits what an application runs, at a shell, in a notebook or through a server.

What the log says: the Scala shell and the notebooks built on it set spark.repl.class.uri, and the others keep the name
that they give their application.  A program is what runs in deploy mode cluster, where no shell can, and what a
Databricks job started.  A notebook of plain Python looks like a program.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_NAMES = re.compile(
    r"Spark shell|PySparkShell|SparkR|Databricks Shell|Zeppelin|livy-session-\d+|Thrift JDBC/ODBC Server"
    r"|Spark Connect server"
)


def attended(name: str | None, properties: Mapping[str, str]) -> bool | None:
    """See query.inputs.reader.Reader.attended."""
    if properties.get("spark.databricks.clusterSource", "").upper() == "JOB":
        return False
    if "spark.repl.class.uri" in properties or _NAMES.fullmatch(name or ""):
        return True
    return False if properties.get("spark.submit.deployMode") == "cluster" else None
