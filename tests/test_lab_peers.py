"""The lab measures others as whole processes on the same log."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import zstandard

from lab.costs import peers
from lab.errors import LabError
from tests.refusals import refused


def test_each_command_reads_the_plain_log_in_every_round(tmp_path: Path) -> None:
    log = tmp_path / "log.zstd"
    log.write_bytes(zstandard.compress(b"a line\n"))
    reported = tmp_path / "reported"

    def command(name: str) -> peers.Line:
        program = f"import sys; open({str(reported)!r}, 'a').write({name!r} + open(sys.argv[1]).read())"
        return lambda plain, _: [sys.executable, "-c", program, str(plain)]

    costs = peers.measured(log, {"one": command("one: "), "other": command("other: ")}, rounds=2)
    assert reported.read_text().splitlines() == ["one: a line", "other: a line"] * 3
    assert all(each.wall_s > 0 and each.cpu_s > 0 and each.peak_mib > 1 for each in costs.values())


def test_failed_peer_gives_no_measurement(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "print('no such class'); exit(3)"]
    with pytest.raises(LabError, match="no such class"):
        peers.cost(command, tmp_path, said=tmp_path / "said")


def test_profiler_without_output_gives_no_measurement(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("a line\n")
    with refused(LabError):
        peers.measured(tmp_path / "log", {"spark-rapids-tools profiling": lambda *_: [sys.executable, "-c", ""]}, 1)
