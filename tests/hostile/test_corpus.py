"""Files that once hung the tool, ate its memory or were called a bug, replayed: an answer, or one sentence."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

Answer = Callable[..., tuple[int, str, str]]

CORPUS = sorted((Path(__file__).parent / "corpus").iterdir())
DATA = Path(__file__).parents[1] / "data"


@pytest.mark.parametrize("path", CORPUS, ids=lambda each: each.name)
def test_a_file_that_once_failed(
    path: Path, crystalperf: Answer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CRYSTALPERF_HOME", str(tmp_path / "home"))
    kind = path.name.partition(".")[2]
    # Samples alone are no run: they come with a log.
    with_log = (path, DATA / "eventlog" / "q9.zstd") if kind in ("jfr.gz", "collapsed.gz") else (path,)
    code, out, err = crystalperf("analyze", *with_log, "--json")
    assert code in (0, 1, 4)
    assert "bug" not in err
    assert json.loads(out)["schema"] == f"crystalperf.{'error' if code == 1 else 'verdict'}/1"
    assert err.count("\n") == (code == 1)
    if kind in ("log", "zip"):
        assert code in (0, 4)
    if code != 1:
        (run,) = (tmp_path / "home" / "runs").glob("*.duckdb")
        for arguments in (("debug", run), ("predict", run, "--set", "cores=2x")):
            code, out, err = crystalperf(*arguments)
            assert "bug" not in err
            assert (out == "") == (code == 1), out
