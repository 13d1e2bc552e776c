"""No setting and no version that a log may bear stops the answer."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import crystalperf as cp
from crystalperf.query.frameworks.registry import get
from crystalperf.query.frameworks.spark import settings
from crystalperf.query.frameworks.spark.memory import usable_bytes
from crystalperf.query.inputs.containers import LogFile, Part, batches
from crystalperf.query.trace.records import Problems

Answer = Callable[..., tuple[int, str, str]]
DATA = Path(__file__).parents[1] / "data"

ODD = ("auto", "", " ", "-1", "1e3", "NaN", "inf", "²", "٣", "9" * 400, "0", "200.0", "1,000", "${x}", "64MB", "true")


@pytest.fixture(scope="module")
def lines() -> list[bytes]:
    log = LogFile("q9", (Part(str(DATA / "eventlog" / "q9.zstd")),))
    return [line for batch in batches(log, Problems()) for line in batch.lines]


def changed(lines: list[bytes], path: Path, properties: dict[str, str], version: str | None = None) -> Path:
    """The log with other settings and another version."""
    found = []
    for line in lines:
        event = (
            json.loads(line) if line.startswith((b'{"Event":"SparkListenerEnv', b'{"Event":"SparkListenerLog')) else {}
        )
        if "Spark Properties" in event:
            event["Spark Properties"].update(properties)
        if "Spark Version" in event and version is not None:
            event["Spark Version"] = version
        found.append(json.dumps(event).replace('"Event": ', '"Event":').encode() if event else line)
    path.write_bytes(b"\n".join(found) + b"\n")
    return path


@pytest.mark.few(3)
@pytest.mark.parametrize("value", ODD, ids=ascii)
def test_any_value_of_a_setting_is_answered(value: str, lines: list[bytes], tmp_path: Path) -> None:
    log = changed(lines, tmp_path / "log", dict.fromkeys(settings.READ, value) | {"spark.master": f"local[{value}]"})
    run = cp.profile([log], output=tmp_path / "run.duckdb")
    assert run.debug().runtime_ms > 0
    for changes in ({"cores": "2x"}, {"memory": "2x"}, {"workers": "2x"}):
        run.predict(**changes)
    meanings = {each.meaning for each in run.header().problems}
    for key, read in settings.READ.items():
        note = f"{key}={' '.join(value.split())}"
        kept = bool(value.strip())
        assert any(each.startswith(note[:60]) for each in meanings) == (read(value) is None and kept), key


def test_auto_partitions_are_reported_and_answered(lines: list[bytes], tmp_path: Path, crystalperf: Answer) -> None:
    log = changed(lines, tmp_path / "log", {"spark.sql.shuffle.partitions": "auto"})
    code, out, err = crystalperf("analyze", log, "-o", tmp_path / "run.duckdb")
    assert (code, err) == (0, "")
    assert out
    code, out, _ = crystalperf("predict", tmp_path / "run.duckdb", "--set", "cores=2x", "--json")
    assert code == 0
    meanings = " ".join(each.meaning for each in cp.open_run(tmp_path / "run.duckdb").header().problems)
    assert "spark.sql.shuffle.partitions=auto" in meanings


VERSIONS = {
    "v3.5.1": "spark-3.5.1",
    "3.5.1": "spark-3.5.1",
    "4.0.0 SNAPSHOT": "spark-4.0.0",
    "4.0.0-SNAPSHOT": "spark-4.0.0-SNAPSHOT",
    "3.5.1 (build 7)": "spark-3.5.1",
    "3.3.2.3.3.7190.0-91": "spark-3.3.2.3.3.7190.0-91",
    "3.5.0-amzn-1": "spark-3.5.0-amzn-1",
    "4": "spark-4",
    "custom": None,
    "": None,
    "../../etc": None,
    "-1": None,
    "٣.٥": None,
    "9" * 5000: "spark-999999999",
    "3.5.1\x1b[31m": "spark-3.5.1",
}


@pytest.mark.few(3)
@pytest.mark.parametrize("version", VERSIONS, ids=lambda each: ascii(each)[:30])
def test_every_version_is_answered_for(version: str, lines: list[bytes], tmp_path: Path) -> None:
    found = VERSIONS[version]
    assert get("spark").reader.frames.sources(version) == ((found,) if found else ())
    log = changed(lines, tmp_path / "log", {}, version)
    run = cp.profile([log], output=tmp_path / "run.duckdb")
    answer = run.verdict()
    assert answer is not None
    reported = any("is not a version of Spark" in each.meaning for each in run.header().problems)
    assert reported == (found is None and bool(version))


@pytest.mark.few(1)
@pytest.mark.parametrize("cores", [1e9, 2**31 - 1, 20_000])
def test_absurd_core_counts_are_ignored(cores: float, lines: list[bytes], tmp_path: Path) -> None:
    found = []
    for line in lines:
        if line.startswith(b'{"Event":"SparkListenerExecutorAdded"'):
            event: dict[str, Any] = json.loads(line)
            event["Executor Info"]["Total Cores"] = int(cores)
            line = json.dumps(event).replace('"Event": ', '"Event":').encode()
        found.append(line)
    (tmp_path / "log").write_bytes(b"\n".join(found) + b"\n")
    run = cp.profile([tmp_path / "log"], output=tmp_path / "run.duckdb")
    assert run.debug().runtime_ms > 0
    assert any("cores" in each.meaning for each in run.header().problems)


def test_invalid_memory_fraction_is_ignored() -> None:
    assert usable_bytes(1e9, {"spark.memory.fraction": "0.5"}) < usable_bytes(1e9, {})
    for odd in ODD:
        assert usable_bytes(1e9, {"spark.memory.fraction": odd}) == usable_bytes(1e9, {})
