"""Engines that run Spark's operators outside of its own code, in native code or on a GPU: their operators and metrics.

Names and meanings of metrics are those of Comet 1.2, Gluten 1.6 with Velox, Auron 8 (before: Blaze), RAPIDS 21 to 26,
and Photon of Databricks 13.3; docs/native-engines.md says which of them real logs have shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import field
from functools import lru_cache

from crystalperf.indexes.frozen import frozen
from crystalperf.indexes.regex import regex
from crystalperf.query.frameworks.spark.settings import flag

PYTHON_TIME = "time to run Python workers"
"""The metric of Python workers, which Spark 4.0 and newer have."""

Groups = tuple[tuple[str, ...], ...]
"""Metrics to add up; of each group only the largest, because the others are parts of it or the same by another name."""


@frozen
class Timing:
    """Timing metrics of operators: of their own work, and those that continue while rows are pulled from below."""

    own: Groups
    inclusive: tuple[str, ...] = ()

    def own_ms(self, metrics: Mapping[str, float]) -> float:
        """The time of an operator's own work."""
        return sum(max(metrics.get(name, 0.0) for name in group) for group in self.own) if metrics else 0.0

    def inclusive_ms(self, metrics: Mapping[str, float]) -> float:
        """The time of an operator with those below it; 0 if it has no such metric."""
        return max((metrics.get(name, 0.0) for name in self.inclusive), default=0.0) if metrics else 0.0


@frozen
class Engine:
    """An engine.

    key         its name in tables
    title       its name in sentences
    operators   what the names of its operators begin with
    plugin      in the values of settings that load it
    switch      the setting that turns it off
    timing      of its operators, with exceptions by kind of operator in `timing_of`
    computing   of its operators' time on CPUs, if it has threads of its own
    explained_by  the setting by which it says why operators stay on the JVM, and its value
    in_event_log  whether it says so in the event log, else in the driver's log
    """

    key: str
    title: str
    operators: re.Pattern[str]
    plugin: re.Pattern[str]
    switch: str
    timing: Timing
    timing_of: Mapping[str, Timing] = field(default_factory=dict)
    computing: Timing = Timing(())
    explained_by: tuple[str, str] | None = None
    in_event_log: bool = True


_SHUFFLE: Groups = (("shuffle write time",), ("fetch wait time",))

SPARK_TIMING = Timing(
    own=(("sort time",), ("scan time",), *_SHUFFLE), inclusive=("duration", "time in aggregation build", PYTHON_TIME)
)
"""Of Spark's own operators."""

_COMET_OWN = (
    "total time (in ms) spent in this operator",
    "Wall clock time elapsed for data decompression + decoding",
    "scan time",
    "time in conversion",
)
_COMET_SHUFFLE: Groups = (
    ("native shuffle writer time", "native shuffle time", "shuffle write time"),
    ("decoding and decompression time",),
    ("fetch wait time",),
)
COMET = Engine(
    key="comet",
    title="Comet",
    operators=regex(r"Comet(?=[A-Z])"),
    plugin=regex(r"org\.apache\.(spark\.CometPlugin|comet\.)"),
    switch="spark.comet.enabled",
    timing=Timing(
        own=(_COMET_OWN, ("Total time for joining",), *_COMET_SHUFFLE),
        inclusive=(
            *("Total time for collecting build-side of join", "time converting Spark batches to Arrow batches"),
            PYTHON_TIME,
        ),
    ),
    computing=Timing(
        own=(
            ("total time (in ms) spent in this operator",),
            ("Wall clock time elapsed for data decompression + decoding",),
            ("native shuffle writer time", "native shuffle time"),
        )
    ),
    explained_by=("spark.sql.extendedExplainProviders", "org.apache.comet.ExtendedExplainInfo"),
)

_VELOX_TIMES = (
    *("filter", "project", "expand", "window", "limit", "sort", "merge join", "hash build", "hash probe", "sample"),
    *("nested loop join build", "nested loop join probe", "aggregation", "rowConstruction", "extraction", "generate"),
    *("stream preProjection", "buffer preProjection", "postProjection", "union", "write"),
)
GLUTEN = Engine(
    key="gluten",
    title="Gluten",
    operators=regex(
        r"\w*Transformer\b|Velox(?=[A-Z])|(RowTo)?(CH|Velox)(Native)?Columnar|RowToVelox|CHNative|Cudf(?=[A-Z])"
        r"|Columnar(?!ToRow\b)(?=[A-Z])|GlutenDelta |NativeScan hive"
    ),
    plugin=regex(r"(org\.apache\.gluten|io\.glutenproject)\."),
    switch="spark.gluten.enabled",
    timing=Timing(
        own=(
            ("time of scan and filter", "time of scan"),
            *((f"time of {work}",) for work in _VELOX_TIMES),
            ("time to build preProjection",),
            ("time to convert",),
            ("shuffle wall time", "shuffle write time"),
            ("time to decompress",),
            ("time to deserialize",),
            ("fetch wait time",),
        ),
        inclusive=("duration", "time of operator input", "time of reducer input", "time of broadcast input"),
    ),
    explained_by=("spark.gluten.ui.enabled", "true"),
)

AURON = Engine(
    key="auron",
    title="Auron",
    operators=regex(r"Native(?=[A-Z])|ConvertToNative\b"),
    plugin=regex(r"org\.apache\.spark\.sql\.(auron|blaze)\.|org\.apache\.auron\."),
    switch="spark.auron.enabled",
    timing=Timing(
        own=(
            ("Native.elapsed_compute",),
            ("Native.shuffle_write_total_time", "shuffle write time"),
            ("Native.shuffle_read_total_time", "fetch wait time"),
        )
    ),
)

_GPU_WORK = ("op time", "op time (legacy)")
RAPIDS = Engine(
    key="rapids",
    title="RAPIDS",
    operators=regex(r"Gpu(?=[A-Z])"),
    plugin=regex(r"com\.nvidia\.spark\."),
    switch="spark.rapids.sql.enabled",
    timing=Timing(
        own=(
            (*_GPU_WORK, "scan time", "sort time", "GPU time"),
            ("op time (shuffle write partitioning)",),
            ("op time (shuffle read)",),
            *_SHUFFLE,
        ),
        inclusive=("total time", PYTHON_TIME),
    ),
    timing_of={
        each: Timing(own=((*_GPU_WORK, "total time", "GPU time"),)) for each in ("columnartorow", "rowtocolumnar")
    },
    explained_by=("spark.rapids.sql.explain", "NOT_ON_GPU"),
    in_event_log=False,
)

PHOTON = Engine(
    key="photon",
    title="Photon",
    operators=regex(r"Photon(?=[A-Z])"),
    plugin=regex(r"(?!)"),  # a property of the cluster, in no setting
    switch="spark.databricks.photon.enabled",
    timing=Timing(own=(("exclusive time", "fetch wait time"),)),
)

ENGINES = (COMET, GLUTEN, RAPIDS, PHOTON, AURON)
BY_KEY = {each.key: each for each in ENGINES}

SPILLS = frozenset(
    {
        "spill size",  # Spark's own
        *("total spilled bytes", "Total spilled bytes", "disk spilled bytes"),  # Comet
        *("bytes written for spilling", "number of spilled bytes", "shuffle bytes spilled"),  # Gluten
        *("bytes written for spilling of hash build", "bytes written for spilling of hash probe"),
        *("Native.mem_spill_size", "Native.disk_spill_size"),  # Auron
        *("bytes spilled from GPU", "bytes spilled to host", "bytes spilled to disk"),  # RAPIDS before 22.04
        *("num bytes spilled to disk due to memory pressure",),  # Photon
        *("num bytes spilled from left side", "num bytes spilled from right side"),
    }
)
"""Metrics of the bytes that an operator spilled."""

_NAMES = 1000
"""Names of operators whose engines are remembered: each stage of a query asks for all operators of its plan."""

_LOADING = ("spark.plugins", "spark.sql.extensions", "spark.shuffle.manager")


@lru_cache(_NAMES)
def engine_of(name: str) -> Engine | None:
    """The engine of an operator, by its name in a plan; None for Spark's own."""
    return next((each for each in ENGINES if each.operators.match(name)), None)


@lru_cache(_NAMES)
def timing_of(name: str, kind: str) -> Timing:
    """The timing metrics of an operator of that name and kind."""
    engine = engine_of(name)
    return SPARK_TIMING if engine is None else engine.timing_of.get(kind, engine.timing)


def configured(properties: Mapping[str, str]) -> Engine | None:
    """The engine that a run's settings load and do not turn off."""
    loaded = " ".join(properties.get(each, "") for each in _LOADING)
    found = next((each for each in ENGINES if each.plugin.search(loaded)), None)
    return None if found is None or flag(properties.get(found.switch)) is False else found


def engine_of_plan(names: Iterable[str]) -> Engine | None:
    """The engine of most operators of a plan; None if all are Spark's."""
    counts: dict[str, int] = {}
    for name in names:
        if (engine := engine_of(name)) is not None:
            counts[engine.key] = counts.get(engine.key, 0) + 1
    return BY_KEY[max(counts, key=lambda key: counts[key])] if counts else None


# Names ----------------------------------------------------------------------------------------------------------------

_SAME = {
    "Agg": "HashAggregate",
    "GroupingAgg": "HashAggregate",
    "FlushableHashAggregate": "HashAggregate",
    "RegularHashAggregate": "HashAggregate",
    "HashJoin": "ShuffledHashJoin",
    "ShuffledSizedHashJoin": "ShuffledHashJoin",
    "ShuffledSymmetricHashJoin": "ShuffledHashJoin",
    "ShuffledAsymmetricHashJoin": "ShuffledHashJoin",
    "BroadcastJoin": "BroadcastHashJoin",
    "WindowExec": "Window",
    "RunningWindow": "Window",
    "BatchedBoundedWindow": "Window",
    "Explode": "Generate",
    "TopN": "TakeOrderedAndProject",
    "TopK": "TakeOrderedAndProject",
    "TakeOrdered": "TakeOrderedAndProject",
    "PartialTakeOrdered": "TakeOrderedAndProject",
    "RenameColumns": "Project",
    "NativeWrite": "WriteFiles",
    "ParquetSink": "WriteFiles",
    "OrcSink": "WriteFiles",
    "ParquetInsert": "WriteFiles",
    "MapInBatch": "MapInArrow",
    "ShuffleExchange": "Exchange",
    "ColumnarExchange": "Exchange",
    "ShuffleExchangeSink": "Exchange",
    "ShuffleExchangeSource": "Exchange",
    "ColumnarBroadcastExchange": "BroadcastExchange",
    "NativeColumnarToRow": "ColumnarToRow",
    "ColumnarToCarrierRow": "ColumnarToRow",
    "BroadcastToRow": "ColumnarToRow",
    "SparkRowToColumnar": "RowToColumnar",
    "SparkColumnarToColumnar": "RowToColumnar",
    "ConvertToNative": "RowToColumnar",
    "FileSourceScan": "Scan",
    "FileScan": "Scan",
    "NativeScan": "Scan",
    "ParquetScan": "Scan parquet",
    "OrcScan": "Scan orc",
    "CsvNativeScan": "Scan csv",
    "IcebergNativeScan": "Scan iceberg",
    "IcebergTableScan": "Scan iceberg",
}
"""Names of engines' operators without their prefix, and Spark's own names of what does the same."""

_PREFIX = regex(r"^(Comet|Gpu|Photon|Velox|Cudf|CHNative|Native)(?=[A-Z])")
_FROM_ROWS = regex(r"RowTo(Velox|CHNative)?Columnar\b")
_SUFFIX = regex(r"(?:Exec)?Transformer$")


def spark_name(name: str) -> str:
    """The name that Spark has for what an operator of an engine does; of Spark's own operators their name.

    >>> spark_name("CometNativeScan parquet t"), spark_name("FilterExecTransformer"), spark_name("Exchange")
    ('Scan parquet t', 'Filter', 'Exchange')
    """
    if engine_of(name) is None or name.startswith("WholeStageCodegen"):
        return name
    word, blank, rest = name.strip().partition(" ")
    word, bracket, note = word.partition("(")
    if _FROM_ROWS.match(word):
        word = "RowToColumnar"
    word = _SUFFIX.sub("", word)
    if word not in _SAME:
        word = _PREFIX.sub("", word)
    word = _SAME.get(word, word)
    return f"{word}{bracket}{note}{blank}{rest}"
