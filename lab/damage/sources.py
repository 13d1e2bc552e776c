"""The real inputs that `make fuzz` damages: all logs, archives, recordings and stacks there are."""

from __future__ import annotations

import gzip
import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import crystalperf as cp
from crystalperf.indexes.errors import CrystalPerfError
from crystalperf.query.inputs.containers import head
from crystalperf.query.inputs.discover import discover
from crystalperf.query.recordings import collapsed, jfr
from crystalperf.query.trace.records import Problems

ROOT = Path(__file__).parents[2]
PUBLIC = ROOT.parent / "shared" / "real-inputs"
_LOG_BYTES = 3 << 20
_DOCUMENT_BYTES = 1 << 20
_RECORDING_BYTES = 1 << 20
_TRACE_BYTES = 1 << 20
_EVENTS = 3000


@dataclass(frozen=True)
class Sources:
    """The real inputs, by their printed names.

    `logs` are the lines of event logs, `documents` are logs that are one JSON value, of any framework, `recordings` are
    of JFR, `stacks` are collapsed.  `folders` are runs of training and of streams: the names and contents of their
    files, one or several each.  `runs` are run files.
    """

    logs: dict[str, list[bytes]] = field(default_factory=dict)
    recordings: dict[str, bytes] = field(default_factory=dict)
    documents: dict[str, bytes] = field(default_factory=dict)
    stacks: dict[str, bytes] = field(default_factory=dict)
    folders: dict[str, dict[str, bytes]] = field(default_factory=dict)
    runs: dict[str, bytes] = field(default_factory=dict)

    def of_framework(self, framework: str) -> list[str]:
        """The names of folders with runs of a framework."""
        return [name for name in self.folders if name.startswith(f"{framework}: ")]


def load_sources(kinds: Collection[str] = (), *, public: bool = True) -> Sources:
    """All readable inputs of the public collection, if it is available, and of this repository.

    If not `public`, some of the repository's own, the same in each checkout: for continuous integration.

    For the kind `run` alone only run files, because reading all recordings takes half a minute.
    """
    found = Sources()
    data = ROOT / "tests" / "data"
    if not kinds or "run" in kinds:
        found.runs.update(run_files())
    if set(kinds) == {"run"}:
        return found
    shared = PUBLIC if public else Path("/nonexistent")
    recordings = ROOT / "lab" / "recordings" / ("." if public else "demo-q9")
    for path in _files(shared / "spark-eventlog", data / "runs", data / "eventlog"):
        for name, text in _logs(path):
            lines = [line for line in text[: text.rfind(b"\n")].split(b"\n") if line]
            if len(lines) > 2:
                found.logs[name] = lines
    for path in _files(shared / "flink", shared / "pytorch", shared / "tensorflow", data / "flink"):
        for name, text in _logs(path):  # of any supported framework
            if len(text) < _DOCUMENT_BYTES and text.lstrip()[:1] in (b"{", b"["):
                found.documents[name] = text
    for path in _files(shared / "jfr" / "recordings", recordings, data / "acme"):
        if ".jfr" in path.suffixes and len(text := _unpacked(path)) <= _RECORDING_BYTES:
            try:
                jfr.read(text)
            except jfr.JfrError:
                continue  # of an older format, or already truncated: damage would change nothing
            found.recordings[f"{path.parent.name}/{path.name}"] = text
    for path in _files(shared / "jfr" / "collapsed", data / "collapsed"):
        try:
            collapsed.read(str(path), Problems())
        except CrystalPerfError:
            continue
        found.stacks[path.name] = _unpacked(path)
    for place in (shared / "tensorflow", shared / "pytorch", data / "training", data / "flink"):
        found.folders.update(_folders(place))
    return found


def run_files() -> dict[str, bytes]:
    """A run file of each framework, profiled from small inputs of the repository."""
    data, found = ROOT / "tests" / "data", {}
    with TemporaryDirectory() as folder:
        for name, inputs in {
            "spark": [ROOT / "lab" / "recordings" / "demo-q9"],
            "flink": [data / "flink" / f"ads-12000.{kind}.gz" for kind in ("json", "series")],
            "pytorch": [data / "training" / "torch-2-ranks"],
            "tensorflow": [data / "training" / "tensorflow-xplane"],
        }.items():
            output = Path(folder) / "run.duckdb"
            output.unlink(missing_ok=True)
            try:
                cp.profile(inputs, output=output)
            except CrystalPerfError:
                continue  # the checkout lacks the input
            found[name] = output.read_bytes()
    return found


def _folders(place: Path) -> Iterator[tuple[str, dict[str, bytes]]]:
    """The runs of training and of streams in a folder, by framework and the path of their first file."""
    if not place.is_dir():
        return
    try:
        applications = discover([place]).applications
    except CrystalPerfError:
        return
    for each in applications:
        paths = [Path(part.path) for part in each.log.parts]
        files = {path.name: _short_trace(_unpacked(path)) for path in paths}
        is_stream = any(name.endswith(".series.gz") for name in files)
        if (each.framework != "flink" or is_stream) and max(map(len, files.values())) <= _TRACE_BYTES:
            yield f"{'stream' if is_stream else each.framework}: {paths[0].parent.name}/{paths[0].name}", files


def _short_trace(text: bytes) -> bytes:
    """A Chrome trace with only its first events, enough for a step or two; other files unchanged."""
    if len(text) <= _DOCUMENT_BYTES or text.lstrip()[:1] not in (b"{", b"["):
        return text
    trace = json.loads(text)
    if isinstance(trace, list):
        return json.dumps(trace[:_EVENTS]).encode()
    events = trace.get("traceEvents") or []
    return json.dumps({**trace, "traceEvents": events[:_EVENTS]}).encode()


def _files(*folders: Path) -> list[Path]:
    return sorted(each for folder in folders for each in folder.rglob("*") if each.is_file())


def _logs(path: Path) -> Iterator[tuple[str, bytes]]:
    """The beginnings of the logs in a file, unpacked."""
    try:
        found = discover([path]).applications
    except CrystalPerfError:
        return
    for each in found:
        yield (
            f"{path.parent.name}/{path.name}/{each.attempt}",
            b"".join(head(part, _LOG_BYTES) for part in each.log.parts[:2]),
        )


def _unpacked(path: Path) -> bytes:
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
