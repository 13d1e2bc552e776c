"""The list of device APIs: well formed, found by names of every kind, and held against functions that were measured."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

import pytest

from crystalperf import indexer
from crystalperf.indexes import resources
from crystalperf.indexes.apis import device_api, device_apis

MEASURED = Path(indexer.__path__[0]) / "labels" / "measured.tsv"

COMPUTED = {
    # On a small file system in memory, making a file or a folder is the kernel's computing.
    "java.io.File.createNewFile",
    "java.io.File.createTempFile",
    "java.io.File.mkdir",
    "java.io.File.mkdirs",
    "java.io.FileOutputStream.<init>",
    "java.nio.file.Files.createDirectories",
    "java.nio.file.Files.createTempFile",
    "sun.nio.fs.UnixFileSystemProvider.createDirectory",
    # Calls that do not block hand over bytes that are there, or that fit, and go on.
    "io.netty.channel.socket.nio.NioSocketChannel.doReadBytes",
    "io.netty.channel.socket.nio.NioSocketChannel.doWrite",
    "io.netty.channel.socket.nio.NioSocketChannel.doWriteBytes",
    "java.net.DatagramSocket.send",
    # Without its native library it waits for a program that sets permissions.
    "org.apache.hadoop.fs.RawLocalFileSystem.create",
}
"""Measured functions of the list that spent most of their time on something else, by why."""


def test_every_entry_has_a_resource_and_a_reason() -> None:
    places: Counter[tuple[str, str]] = Counter()
    for api in device_apis():
        assert api.resource in resources()
        assert api.resource != "cpu"
        assert api.why
        assert api.classes or api.packages
        for place in (*api.classes, *api.packages):
            places.update((place, method) for method in api.methods or ("",))
    assert [each for each, count in places.items() if count > 1] == []


@pytest.mark.parametrize(
    ("class_name", "method", "resource"),
    [
        ("java.io.FileInputStream", "read", "disk"),
        ("java.io.FileInputStream", "getFD", None),
        ("java.net.Socket$SocketInputStream", "read", "net"),
        ("org.apache.hadoop.fs.s3a.S3AInputStream", "read", "net"),
        ("org.apache.hadoop.hdfs.DFSInputStream", "seek", "net"),
        ("java.util.HashMap", "get", None),
        ("os", "listdir", "disk"),
        ("ossaudiodev", "open", None),
        ("io", "open", "disk"),
        ("os.path", "exists", "disk"),
        ("os.path", "join", None),
        ("io.netty.channel.pool.SimpleChannelPool", "open", None),
        ("_pywrap_file_io", "FileExists", "disk"),
        ("_pywrap_file_io.WritableFile", "append", "disk"),
        ("", "read", None),
    ],
)
def test_listed_device_apis_have_their_resource(class_name: str, method: str, resource: str | None) -> None:
    found = device_api(class_name, method)
    assert (found.resource if found else None) == resource


def test_measured_functions_agree_with_the_list() -> None:
    """Of the measured functions that are on it, all but those named above spent most of their time as it says."""
    agree, differ = 0, set()
    with MEASURED.open(encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream, delimiter="\t"):
            class_name, _, method = row["qualified_name"].removeprefix("Lib.").rpartition(".")
            api = device_api(class_name, method)
            if api is None:
                continue
            if api.resource == row["label"]:
                agree += 1
            else:
                differ.add(f"{class_name}.{method}")
    assert differ == COMPUTED
    assert agree >= 162
