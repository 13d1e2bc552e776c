"""Where shuffled data are, if not in files of the executors that wrote them: remote services, and merged blocks.

Settings: Celeborn's and Uniffle's guides for Spark, and of the engines that have shuffle managers of their own for them
(Gluten, Comet, Auron).  Push-based shuffle: org.apache.spark.util.JsonProtocol, Spark 3.5 and newer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import duckdb

from crystalperf.indexes.regex import regex
from crystalperf.query.execution.execution import Execution
from crystalperf.query.frameworks.spark.remarks import PushedShuffle, RemoteShuffle
from crystalperf.query.results.remarks import Remark

MANAGER = "spark.shuffle.manager"

_SERVICES = (
    ("Celeborn", regex(r"celeborn|\.rss\.RssShuffleManager$", re.IGNORECASE)),  # and its predecessor
    ("Uniffle", regex(r"uniffle|shuffle\.(Delegation)?RssShuffleManager$", re.IGNORECASE)),
)
"""Remote shuffle services, and the classes of their shuffle managers."""


def remote_service(properties: Mapping[str, str]) -> str | None:
    """The remote service that keeps a run's shuffled data; None if executors keep them."""
    manager = properties.get(MANAGER, "")
    return next((name for name, pattern in _SERVICES if pattern.search(manager)), None)


def remarks(connection: duckdb.DuckDBPyConnection, execution: Execution) -> list[Remark]:
    """The remote service that kept shuffled data of a scope, or what push-based shuffle merged of them."""
    volumes = execution.volumes
    written, read = int(volumes.exchange_write.sum()), int((volumes.remote_read + volumes.local_read).sum())
    service = remote_service(execution.properties)
    if service is not None and (written or read):
        return [RemoteShuffle(service, written, read)]
    merged, fallbacks = connection.execute(
        """
        SELECT coalesce(sum(merged_read_bytes), 0)::BIGINT, coalesce(sum(merge_fallbacks), 0)::BIGINT
        FROM spark_tasks JOIN tasks USING (task_id)
        WHERE finish_ms > $start AND launch_ms < $end AND (merged_read_bytes <> 0 OR merge_fallbacks <> 0)
        """,
        {"start": execution.scope.start_ms, "end": execution.scope.end_ms},
    ).fetchall()[0]
    if not merged and not fallbacks:
        return []
    return [PushedShuffle(merged, max(read, merged), fallbacks)]
