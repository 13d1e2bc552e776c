"""Stacks that end in a compressor, a cipher or a checksum: they compute, whatever the label of the caller is."""

from __future__ import annotations

import re

import duckdb
import pytest

from crystalperf.query.attribution.code.decide import attributed_frames
from crystalperf.query.attribution.code.names import CODEC_CALLS, FILE_CALLS, SOCKET_CALLS

NAMES = ("cpu", "disk", "net")
FRAMEWORK, CODEC, FILE, PARKED = range(4)


@pytest.mark.parametrize(
    ("frame", "is_codec"),
    [
        ("net.jpountz.lz4.LZ4JNI.LZ4_compress_limitedOutput", True),
        ("com.github.luben.zstd.ZstdOutputStreamNoFinalizer.write", True),
        ("org.xerial.snappy.SnappyNative.rawCompress", True),
        ("java.util.zip.CRC32.update", True),
        ("java.util.zip.Deflater.deflateBytesBytes", True),
        ("com.sun.crypto.provider.AESCrypt.encryptBlock", True),
        ("java.util.zip.ZipFile.getEntry", False),
        ("java.util.zip.CheckedInputStream.read", False),
        ("org.apache.spark.io.LZ4CompressionCodec.compressedOutputStream", False),
        ("java.io.FileOutputStream.writeBytes", False),
    ],
)
def test_codecs_are_known_by_class(frame: str, is_codec: bool) -> None:
    assert (re.search(CODEC_CALLS, frame) is not None) == is_codec
    assert not (is_codec and (re.search(FILE_CALLS, frame) or re.search(SOCKET_CALLS, frame)))


@pytest.mark.parametrize(
    ("stack", "vector"),
    [
        ([CODEC, FRAMEWORK], (1.0, 0.0, 0.0)),
        # The file is nearer to the leaf than the codec's stream.
        ([FILE, CODEC, FRAMEWORK], (0.0, 1.0, 0.0)),
        ([CODEC, FILE, FRAMEWORK], (1.0, 0.0, 0.0)),
        # A codec that waits for its input does not compute.
        ([PARKED, CODEC, FRAMEWORK], (0.1, 0.7, 0.2)),
        ([FRAMEWORK, CODEC], (0.1, 0.7, 0.2)),
    ],
)
def test_the_call_nearest_the_leaf_decides(stack: list[int], vector: tuple[float, float, float]) -> None:
    connection = duckdb.connect()
    connection.execute(
        f"""
        CREATE TABLE frames AS FROM (VALUES ({FRAMEWORK}, NULL, NULL), ({CODEC}, NULL, 'cpu'), ({FILE}, NULL, 'disk'),
            ({PARKED}, 'wait', NULL)) AS t(frame_id, role, device);
        CREATE TABLE resolved AS SELECT {FRAMEWORK} AS frame_id, 'spark' AS index_name, 'writeToStream' AS symbol,
            0.1 AS cpu, 0.7 AS disk, 0.2 AS net;
        CREATE TABLE stack_frames (stack_id INTEGER, depth INTEGER, frame_id INTEGER);
        """
    )
    connection.executemany("INSERT INTO stack_frames VALUES (0, ?, ?)", list(enumerate(stack)))
    found = connection.execute(f"SELECT symbol, {', '.join(NAMES)} FROM ({attributed_frames(NAMES)})").fetchall()
    assert found == [("writeToStream", *(pytest.approx(each) for each in vector))]
