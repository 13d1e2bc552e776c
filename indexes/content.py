"""The content hash of an index: a hash of its rows, not of its bytes.

Two builds from the same sources and model have the same hash, whatever version of DuckDB wrote them.  Exporting and
importing an index keeps its hash.
"""

from __future__ import annotations

import hashlib

import duckdb
import numpy as np

from crystalperf.indexes.errors import IndexFileError
from crystalperf.indexes.schema import tables

_ORDER = {
    "functions": "function_id",
    "classes": "class_name, file, first_line, last_line",
    "runtime_names": "class_name, method, function_id",
    "calls": "caller_id, callee_name",
    "build_warnings": "file, problem",
}

_NOT_CONTENT = ("built_at", "tool_version", "content_hash", "arguments", "build_seconds")
"""Metadata on how and when the file came to be; everything else is part of its content."""


def content_hash(connection: duckdb.DuckDBPyConnection, alias: str) -> str:
    """SHA-256, in hex, of all rows of the index attached under `alias`.

    Raises IndexFileError for a text that contains a NUL.
    """
    digest = hashlib.sha256()
    facts = connection.execute(f"SELECT key, value FROM {alias}.metadata ORDER BY key").fetchall()
    for key, value in facts:
        if "\0" in key + value:
            raise IndexFileError(f"its metadata '{key[:40]!r}' contains a NUL; the index is damaged or forged")
        if key not in _NOT_CONTENT:
            digest.update(f"{key}\0{value}\0".encode())
    for table in tables("index"):
        if table.name == "metadata":
            continue
        columns = ", ".join(column.name for column in table.columns)
        rows = connection.execute(f"SELECT {columns} FROM {alias}.{table.name} ORDER BY {_ORDER[table.name]}")
        for name, values in rows.fetchnumpy().items():
            digest.update(f"{table.name}.{name}\0".encode())
            _add_column(digest, values)
    return digest.hexdigest()


def _add_column(digest: hashlib._Hash, values: np.ndarray | np.ma.MaskedArray) -> None:
    """Add a column to the digest: first its nulls, then its values as little-endian numbers or as separated UTF-8."""
    missing = np.ma.getmaskarray(values)
    data = np.ma.getdata(values)
    if data.dtype == object:
        if any("\0" in text for text in data if isinstance(text, str)):
            raise IndexFileError("a text in it contains a NUL; the index is damaged or forged")
        texts = ["" if absent or text is None else text for text, absent in zip(data, missing, strict=True)]
        missing = missing | np.fromiter((text is None for text in data), dtype=bool, count=len(data))
        digest.update(np.packbits(missing).tobytes())
        digest.update("\0".join(texts).encode("utf-8", "surrogatepass"))
    else:
        digest.update(np.packbits(missing).tobytes())
        # Adding zero makes -0.0 a plain zero: the two are equal, and an export does not distinguish them.
        plain = np.where(missing, np.zeros(1, data.dtype), data) + np.zeros(1, data.dtype)
        digest.update(plain.astype(data.dtype.newbyteorder("<")).tobytes())
