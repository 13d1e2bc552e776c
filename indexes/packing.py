"""Packing of exports: the columns that an export omits because others imply them, and the queries that restore them."""

from __future__ import annotations

from pathlib import Path

from crystalperf.indexes import guard
from crystalperf.indexes.resources import resources

# {alias} is the database.  Each pair of queries turns a table into the file's columns and back; the content hash shows
# whether that lost anything.
NAME_IN_SYMBOL = (
    # spark 4.0.1 org/apache/spark/rdd/RDD#map().inner(+1). → org.apache.spark.rdd.RDD.map.inner
    "replace(replace(replace(replace(regexp_replace(regexp_replace(symbol, '^[^ ]+ [^ ]+ ', ''),"
    r" '(\(\)|\(\+\d+\))\.$', ''), '().', '.'), '`', ''), '/', '.'), '#', '.')"
)
_CLASS_IN_SYMBOL = (
    # After the package, without functions: spark 4.0.1 org/apache/spark/rdd/RDD#Inner#map().inner(). → RDD.Inner
    "nullif(rtrim(replace(replace(regexp_replace(substr(symbol, length(regexp_extract(symbol, '^[^ ]+ [^ ]+ ')) + 1"
    " + CASE package WHEN '' THEN 0 ELSE length(replace(package, '::', '.')) + 1 END),"
    r" '(`[^`]*`|[^#./`]*)\((\+\d+)?\)\.', '', 'g'), '#', '.'), '`', ''), '.'), '')"
)
# Without a group, a regular expression takes a third of the time.
NAME = (
    "coalesce(split_part(qualified_name, '.', -1), replace(split_part("
    r"regexp_extract(symbol, '(?:`[^`.#/]*`|[^.#/ ]*)\(\+?\d*\)\.$'), '(', 1), '`', ''))"
)
"""The part after the last dot of a function's qualified name, packed or not."""

CLASS = f"CASE WHEN class_name IS NULL THEN {_CLASS_IN_SYMBOL} ELSE nullif(class_name, '') END"

MODEL, MEASURED = "model", "measured"
"""Origins of a function's shares."""

# The last share of a vector is 1 minus the others.
_LAST = resources()[-1]
_LAST_SHARES = (_LAST, f"code_{_LAST}", f"doc_{_LAST}")
# Without documentation, code decides alone; and the confidence is mostly the largest share.
_FIRST_SHARES = resources()[:-1]
_LARGEST_SHARE = f"greatest({', '.join(resources())})"
CLASS_OF_FUNCTION = "concat_ws('.', nullif(package, ''), replace(f.class_name, '.', '$'))"
_METHOD_OF_FUNCTION = "split_part(qualified_name, '.', -1)"
_CALLED_AS = (  # a constructor by its class
    "CASE split_part(qualified_name, '.', -1) WHEN '<init>' THEN split_part(class_name, '.', -1)"
    " ELSE split_part(qualified_name, '.', -1) END"
)
# The classifiers' results have a separate file, so that a new model leaves the larger file unchanged.
_SHARES = [f"{part}{each}" for part in ("code_", "doc_", "") for each in _FIRST_SHARES]
_OF_LABELS = (*_SHARES, "confidence", "source", "decided_by")
_LEFT = " - ".join(f"coalesce({each}, code_{each})::DOUBLE" for each in _FIRST_SHARES)
PACKED_SHARES = ", ".join(f"{each}, code_{each}" for each in _FIRST_SHARES) + f", NULL::FLOAT AS {_LAST}"
WHOLE_SHARES = ", ".join(f"{each}, code_{each}" for each in _FIRST_SHARES) + f", {_LAST}"
SHARES = {
    **{each: f"coalesce({each}, code_{each})" for each in _FIRST_SHARES},
    _LAST: f"coalesce({_LAST}, round(1 - {_LEFT}, 3)::FLOAT)",
}
"""Shares by both classifiers: PACKED_SHARES in the vectors of an export, WHOLE_SHARES in the functions of an index."""

PACKED = {
    "functions": f"SELECT * EXCLUDE ({', '.join((*_OF_LABELS, *_LAST_SHARES))}) REPLACE ("
    f"nullif(qualified_name, {NAME_IN_SYMBOL}) AS qualified_name,"
    f" CASE WHEN class_name IS DISTINCT FROM {_CLASS_IN_SYMBOL} THEN coalesce(class_name, '') END AS class_name,"
    " last_line - first_line AS last_line, function_id - enclosing_id AS enclosing_id)"
    " FROM {alias}.functions ORDER BY function_id",
    "vectors": f"SELECT function_id, {', '.join(_OF_LABELS)} FROM (SELECT * REPLACE ("
    + ", ".join(f"nullif({each}, code_{each}) AS {each}" for each in _FIRST_SHARES)
    + f", nullif(confidence, {_LARGEST_SHARE}) AS confidence, nullif(source, '{MODEL}') AS source)"
    " FROM {alias}.functions) ORDER BY function_id",
    "classes": "SELECT * FROM {alias}.classes ORDER BY file, first_line, class_name",
    "runtime_names": f"SELECT function_id, nullif(method, {_METHOD_OF_FUNCTION}) AS method,"
    f" nullif(r.class_name, {CLASS_OF_FUNCTION}) AS class_name FROM {{alias}}.runtime_names r"
    " JOIN {alias}.functions f USING (function_id) ORDER BY function_id, method, class_name",
    "calls": f"SELECT caller_id, callee_id, nullif(callee_name, {_CALLED_AS}) AS callee_name FROM {{alias}}.calls"
    " LEFT JOIN {alias}.functions ON function_id = callee_id ORDER BY caller_id, callee_id, callee_name",
    "build_warnings": "SELECT * FROM {alias}.build_warnings ORDER BY ALL",
}
UNPACKED = {
    "functions": "SELECT * REPLACE ("
    f"coalesce(confidence, {_LARGEST_SHARE}) AS confidence, coalesce(source, '{MODEL}') AS source)"
    " FROM (SELECT * REPLACE ("
    f"coalesce(qualified_name, {NAME_IN_SYMBOL}) AS qualified_name,"
    f" {CLASS} AS class_name,"
    " first_line + last_line AS last_line, function_id - enclosing_id AS enclosing_id), "
    + ", ".join(
        f"round(1 - {' - '.join(f'{share.removesuffix(_LAST)}{each}::DOUBLE' for each in _FIRST_SHARES)}, 3)::FLOAT"
        f" AS {share}"
        for share in _LAST_SHARES
    )
    + " FROM (SELECT * REPLACE ("
    + ", ".join(f"coalesce({each}, code_{each}) AS {each}" for each in _FIRST_SHARES)
    + ") FROM {file})) ORDER BY function_id",
    "runtime_names": f"SELECT function_id, coalesce(method, {_METHOD_OF_FUNCTION}) AS method,"
    f" coalesce(r.class_name, {CLASS_OF_FUNCTION}) AS class_name FROM {{file}} r"
    " JOIN {functions} f USING (function_id) ORDER BY class_name, method, function_id",
    "calls": f"SELECT caller_id, coalesce(callee_name, {_CALLED_AS}) AS callee_name, callee_id FROM {{file}}"
    " LEFT JOIN {functions} ON function_id = callee_id ORDER BY caller_id, callee_name",
}


def unpacking(table: str, folder: Path, functions: str, chosen: str = "true") -> str:
    """The query that unpacks the chosen rows of a table of an export; `functions` names its functions table."""
    rows = f"(SELECT * FROM {read_parquet(folder, table)} WHERE {chosen})"
    if table == "functions":
        rows = f"(SELECT * FROM {rows} JOIN {read_parquet(folder, 'vectors')} USING (function_id))"
    return UNPACKED.get(table, "SELECT * FROM {file}").format(file=rows, functions=functions)


def read_parquet(folder: Path, table: str) -> str:
    """SQL: a table of an export in its packed form."""
    return f"read_parquet({guard.quoted(str(folder / f'{table}.parquet'))})"
