"""examples/gzip-text: its text is the same for everyone, its README says what the tool answers, it finds the CPU."""

from __future__ import annotations

import gzip
import hashlib
import importlib.util
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from crystalperf import profile
from lab.errors import LabError
from lab.runs.cluster import find_java, find_spark
from lab.runs.orders import write_orders

EXAMPLE = Path(__file__).parent.parent / "examples" / "gzip-text"
TEXT_SHA256 = "b817c19811cbe50fe702d63cdb90d0f43e7e33d4a08438667ce2576a046c815f"


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"gzip_text_{name}", EXAMPLE / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def missing() -> str:
    try:
        find_spark()
        find_java()
    except LabError as error:
        return str(error)
    return ""


def test_the_text_is_the_same_whenever_it_is_made(tmp_path: Path) -> None:
    for name in ("once", "again"):
        (tmp_path / name).mkdir()
        write_orders(tmp_path / name, part_bytes=2_000_000, parts=2)
    once = sorted((tmp_path / "once").iterdir())
    assert [file.name for file in once] == ["part-m-00000.gz", "part-m-00001.gz"]
    assert [file.read_bytes() for file in once] == [(tmp_path / "again" / file.name).read_bytes() for file in once]
    texts = [gzip.decompress(file.read_bytes()) for file in once]
    # The text does not depend on the release of zlib or of Python; its compressed bytes may.
    assert hashlib.sha256(b"".join(texts)).hexdigest() == TEXT_SHA256


def test_the_text_is_whole_lines_in_many_alphabets(tmp_path: Path) -> None:
    write_orders(tmp_path, part_bytes=1_000_000, parts=1)
    text = gzip.decompress((tmp_path / "part-m-00000.gz").read_bytes())
    assert 1_000_000 <= len(text) < 1_001_000
    assert text.endswith(b"\n")
    rows = text.decode().split("\n")[:-1]
    assert {row.count(",") for row in rows} <= {8, 9, 10}
    assert [int(row.split(",")[0]) for row in rows] == list(range(len(rows)))
    # Else Java would decode it on its short cut for ASCII.
    assert sum(not row.isascii() for row in rows) > 0.9 * len(rows)
    assert {"Д", "Ε", "Ł", "ß"} <= set(text.decode())


@pytest.mark.later  # four commands, 9 s
@pytest.mark.skipif(shutil.which("bash") is None, reason="the README's commands need bash")
def test_the_readme_says_what_the_tool_answers() -> None:
    text = (EXAMPLE / "README.md").read_text(encoding="utf-8")
    now = load("readme").answered(text)
    wrong = [line for line in now.split("\n") if line not in text.split("\n")]
    assert not wrong, "python examples/gzip-text/readme.py brings it up to date; then read what its prose says"
    assert now == text
    assert now.count("$ crystalperf") == 4
    # The case's point, whatever the figures are.
    assert "Bottleneck of job:0: CPU" in now
    decode, decompress = now.index("org.apache.hadoop.io.Text.decode"), now.index("BuiltInGzipDecompressor.decompress")
    assert max(decode, decompress) < now.index("LineReader.readDefaultLine")


@pytest.mark.later  # starts Spark
@pytest.mark.skipif(bool(missing()), reason=missing())
def test_the_example_runs_and_finds_the_cpu(tmp_path: Path, crystalperf: Callable[..., tuple[int, str, str]]) -> None:
    (tmp_path / "text").mkdir()
    write_orders(tmp_path / "text", part_bytes=10_000_000, parts=8)
    # JFR samples one thread in native code at a time, so that the decompressor is seen eight times a second: a job of a
    # second (80 MB) is too short to say that it is among the first three.
    for part in sorted((tmp_path / "text").iterdir()):
        for copy in range(1, 9):
            part.with_name(f"copy-{copy}-{part.name}").hardlink_to(part)
    seconds = load("run").record(1, tmp_path / "text", tmp_path / "1-core")
    run = tmp_path / "run.duckdb"
    found = profile([tmp_path / "1-core"], output=run).debug(scope="job:0")
    assert found.runtime_ms / 1000 == pytest.approx(seconds, abs=0.1)
    assert found.bottleneck == "cpu"
    code, printed, _ = crystalperf("sql", (EXAMPLE / "functions.sql").read_text(), "--run", run, "--json")
    assert code == 0
    top = {row["function"].rpartition("io.")[2] for row in json.loads(printed)[:3]}
    assert {"Text.decode", "compress.zlib.BuiltInGzipDecompressor.decompress"} <= top
