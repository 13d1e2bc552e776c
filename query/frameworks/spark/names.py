"""Names of Spark's SQL operators: in plans, in generated code, in the classes that execute them.

Each name maps to a kind of operator, by which a sampled frame finds its node of the plan.  Generated code names the
operator in the prefix of a method (CodegenSupport.variablePrefix) and its place in the plan by the number of the
pipeline in the class: GeneratedIteratorForCodegenStage3 is WholeStageCodegen (3).
"""

from __future__ import annotations

import re

from crystalperf.indexes.regex import regex
from crystalperf.query.frameworks import OperatorFrame
from crystalperf.query.frameworks.spark.engines import spark_name

PIPELINE = "wholestagecodegen"

TITLES = {
    "code generation": "compiling generated code",
    "schema inference": "reading the schemas of files",
    "result": "packing rows for the driver",
    "exchange read": "reading shuffled rows",
    "exchange write": "writing shuffled rows",
    "scan": "reading input",
    "memoryscan": "cached rows",
    "python": "Python",
    "write": "writing output",
    "rdd": "code of RDDs",
}
"""The operator names of time whose kind has no node in the plan."""

_OWN_NAMES = (
    *("columnartorow", "sort", "filter", "project", "expand", "generate", "range", "sample", "coalesce", "union"),
    *("window", "deserializetoobject", "serializefromobject", "mapelements", "appendcolumns"),
    *("locallimit", "globallimit", "collectlimit"),
)
_PREFIXES = {
    **{name: name for name in _OWN_NAMES},
    "agg": "hashaggregate",
    "hashAgg": "hashaggregate",
    "sortAgg": "sortaggregate",
    "bhj": "broadcasthashjoin",
    "shj": "shuffledhashjoin",
    "smj": "sortmergejoin",
    "bnlj": "broadcastnestedloopjoin",
    "rdd": "scan",
    "scan": "scan",
    "batchscan": "scan",
    "memoryScan": "memoryscan",
}

# The frame nearest to the leaf of a stack decides; the first of these that matches a frame is used.
_CLASSES = tuple(
    (kind, regex(pattern))
    for kind, pattern in (
        (
            "code generation",
            r"org\.apache\.spark\.sql\.catalyst\.expressions\.codegen\.(CodeGenerator\$?|Generate\w+\$)\.",
        ),
        (
            "schema inference",
            r"org\.apache\.spark\.sql\.(execution\.datasources\.SchemaMergeUtils|catalyst\.(json|csv)\.\w*InferSchema"
            r"|.*ParquetFileFormat\$\.(\$anonfun\$)?(mergeSchemas|readParquetFooters))",
        ),
        ("python", r"org\.apache\.spark\.((api|sql\.execution)\.python\.|SparkEnv\.createPythonWorker)"),
        (
            "exchange read",
            r"org\.apache\.spark\.(storage\.(ShuffleBlockFetcherIterator|BufferReleasingInputStream)"
            r"|shuffle\.BlockStoreShuffleReader|shuffle\.(sort\.Sort)?ShuffleManager\.getReader"
            r"|sql\.execution\.(ShuffledRowRDD|UnsafeRowSerializerInstance\$\$anon\$2)|rdd\.(ShuffledRDD|CoGroupedRDD))",
        ),
        (
            "exchange write",
            r"org\.apache\.spark\.(shuffle\.(sort\.|ShuffleWriteProcessor|ShufflePartitionPairsWriter)"
            r"|sql\.execution\.exchange\.ShuffleExchangeExec)",
        ),
        (
            "write",
            r"org\.apache\.spark\.(sql\.execution\.datasources\.(File\w*Writer|\w+\.\w*(OutputWriter|WriteSupport)"
            r"|\w*OutputWriter|\w*WriteJob|WriteFiles|v2\.\w*Writ)|internal\.io\.(SparkHadoopWriter|\w+CommitProtocol))",
        ),
        (
            "scan",
            r"org\.apache\.spark\.(sql\.execution\.(FileSourceScan|RowDataSourceScan|DataSourceScan)"
            r"|sql\.execution\.datasources\.(FileScanRDD|RecordReaderIterator|HadoopFileLinesReader|DataSourceRDD"
            r"|(parquet|orc|csv|json|text|jdbc|v2|xml|binaryfile)\.)"
            r"|sql\.hive\.(\w*TableReader|execution\.HiveTableScan)|sql\.(kafka|avro)"
            r"|rdd\.(NewHadoopRDD|HadoopRDD|WholeText|BinaryFile|JdbcRDD))",
        ),
        ("memoryscan", r"org\.apache\.spark\.sql\.execution\.columnar\."),
        ("sort", r"org\.apache\.spark\.sql\.execution\.(UnsafeExternalRowSorter|SortExec)"),
        (
            "hashaggregate",
            r"org\.apache\.spark\.sql\.execution\.(UnsafeFixedWidthAggregationMap|UnsafeKVExternalSorter"
            r"|aggregate\.(TungstenAggregation|HashAggregate))",
        ),
        ("objecthashaggregate", r"org\.apache\.spark\.sql\.execution\.aggregate\.Object"),
        ("sortaggregate", r"org\.apache\.spark\.sql\.execution\.aggregate\.Sort"),
        ("sortmergejoin", r"org\.apache\.spark\.sql\.execution\.joins\.(SortMergeJoin|\w+OuterIterator|SMJ)"),
        ("window", r"org\.apache\.spark\.sql\.execution\.window\."),
        ("takeorderedandproject", r"org\.apache\.spark\.(sql\.execution\.TakeOrdered|util\.BoundedPriorityQueue)"),
        ("result", r"org\.apache\.spark\.sql\.execution\.SparkPlan\.(\$anonfun\$)?getByteArrayRdd"),
    )
)
_GENERATED = regex(r"\.GeneratedClass\$GeneratedIteratorForCodegenStage(\d{1,6})")
_METHOD = regex(r"([A-Za-z]+)_")
_EXEC = regex(r"org\.apache\.spark\.sql\.execution\.(?:\w+\.)*(\w+)Exec\b")
_NO_OPERATOR = {"wholestagecodegen", "inputadapter", "adaptivesparkplan", "unary", "binary", "leaf", "codegensupport"}
_RDD = regex(r"org\.apache\.spark\.rdd\.\w*RDD\$?\.")


def of_frame(class_name: str, method: str) -> OperatorFrame | None:
    """The operator that a frame of a task works for; None for one that may work for any."""
    if generated := _GENERATED.search(class_name):
        prefix = _METHOD.match(method)
        return OperatorFrame(_PREFIXES.get(prefix[1], PIPELINE) if prefix else PIPELINE, int(generated[1]))
    if not class_name.startswith("org.apache.spark."):
        return None
    name = f"{class_name}.{method}"
    for kind, pattern in _CLASSES:
        if pattern.match(name):
            return OperatorFrame(kind)
    if (executed := _EXEC.match(class_name)) and (kind := executed[1].lower()) not in _NO_OPERATOR:
        return OperatorFrame(kind)
    return OperatorFrame("rdd", weak=True) if _RDD.match(name) else None


_ATTRIBUTE = regex(r"([A-Za-z_][\w.]*)#\d+")
_LISTED = 3


def title(name: str, detail: str | None, location: str | None) -> str:
    """A node's name with details for users: the columns of its keys, the last folder of its scan."""
    kind = of_node(name).kind
    text = detail or ""
    if kind == "scan" and location:
        paths = re.findall(r"/([^/\[\],\s]+)/?(?=[,\]\s]|$)", location)
        return f"{name.strip()} {paths[0]}" if paths else name.strip()
    if kind.endswith("join") and (sides := re.findall(r"\[([^\]]*)\]", text)):
        keys = [_columns(side) for side in sides[:2]]
        return f"{name} on {' = '.join(each for each in keys if each)}" if all(keys) else name
    if kind in ("exchange", "sort", "window", "takeorderedandproject") or kind.endswith("aggregate"):
        if kind.endswith("aggregate"):
            found = re.search(r"keys?=\[([^\]]*)\]", text)
        elif kind == "exchange":
            found = re.search(r"\w+partitioning\(([^)]*)\)", text)
        else:
            found = re.search(r"\[([^\]]*)\]", text)
        columns = _columns(found[1]) if found else ""
        return f"{name} by {columns}" if columns else name
    return name.strip()


def _columns(text: str) -> str:
    """The first few columns in an expression."""
    names = list(dict.fromkeys(_ATTRIBUTE.findall(text)))
    return ", ".join(names[:_LISTED]) + (" …" if len(names) > _LISTED else "")


_NODE = regex(r"(\w+)(?: \((\d{1,6})\))?")


def of_node(name: str) -> OperatorFrame:
    """The kind of a plan's node by its name, and the number of the pipeline if it is one."""
    name = spark_name(name)
    match = _NODE.match(name)
    word = match[1].lower() if match else name.lower()
    number = int(match[2]) if match and match[2] else None
    if word == PIPELINE:
        return OperatorFrame(word, number)
    if re.search(r"Python|Pandas|InArrow|ArrowEval", name):
        return OperatorFrame("python")
    if word in ("scan", "batchscan", "filescan", "hivetablescan"):
        return OperatorFrame("scan")
    if word in ("inmemorytablescan", "memoryscan"):
        return OperatorFrame("memoryscan")
    if word in ("execute", "writefiles", "appenddata", "overwritebyexpression", "overwritepartitionsdynamic"):
        return OperatorFrame("write")
    if word in ("exchange", "shuffleexchange"):
        return OperatorFrame("exchange")
    return OperatorFrame(word)
