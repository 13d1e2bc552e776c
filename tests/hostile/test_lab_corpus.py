"""Files that once hung the tool, ate its memory or were called a bug, replayed: an answer, or one sentence."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from crystalperf.indexes.errors import CrystalPerfError
from crystalperf.query.frameworks.registry import get
from crystalperf.query.inputs.discover import discover
from lab.damage.cases import check_trace

Answer = Callable[..., tuple[int, str, str]]

CORPUS = sorted((Path(__file__).parent / "corpus").iterdir())
ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data"


@pytest.mark.few(4)
@pytest.mark.parametrize("path", CORPUS, ids=lambda each: each.name)
def test_a_file_that_once_failed(
    path: Path, crystalperf: Answer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CRYSTALPERF_HOME", str(tmp_path / "home"))
    with suppress(CrystalPerfError):
        for each in discover([path]).applications:
            check_trace(get(each.framework).reader.read(each.log))
    kind = path.name.partition(".")[2]
    # Samples alone are not a run: they come with a log.
    with_log = (path, DATA / "eventlog" / "q9.zstd") if kind in ("jfr.gz", "collapsed.gz") else (path,)
    code, out, err = crystalperf("analyze", *with_log, "--json")
    assert code in (0, 1)
    assert "bug" not in err
    assert json.loads(out)["schema"] == f"crystalperf.{'error' if code == 1 else 'verdict'}/2"
    assert err.count("\n") == (code == 1)
    if kind in ("log", "zip"):
        assert code == 0
    if code != 1:
        (run,) = (tmp_path / "home" / "runs").glob("*.duckdb")
        for arguments in (("debug", run), ("predict", run, "--set", "cores=2x")):
            code, out, err = crystalperf(*arguments)
            assert "bug" not in err
            assert (out == "") == (code == 1), out


def test_every_json_reader_handles_invalid_utf8() -> None:
    """Bytes that are not UTF-8 do not raise msgspec's DecodeError: four readers reported them as a bug."""
    for path in (ROOT / "query").rglob("*.py"):
        for line in path.read_text(encoding="utf-8").split("\n"):
            if "except" in line and "msgspec.DecodeError" in line:
                assert "UnicodeDecodeError" in line, f"{path}: {line.strip()}"
