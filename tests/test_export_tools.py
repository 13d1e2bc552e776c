"""Each export is opened by its own tool: speedscope, `go tool pprof`, the published messages of Perfetto and OTLP.

speedscope comes with the page's packages (`npm --prefix web ci`); the messages with the extra `lab`.
"""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.reading import profiled, rows
from tests.test_export_run import SESSION, STREAM, TRAINING, by_leaf, written

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from crystalperf.query.run import Run

pytestmark = pytest.mark.later

ROOT = Path(__file__).parent.parent
SPEEDSCOPE = ROOT / "web/node_modules/speedscope/dist/release/index.html"


@pytest.fixture(params=["spark", "no samples", "training", "session", "stream"])
def run(request: pytest.FixtureRequest) -> Run:
    names = {"spark": "demo_run", "no samples": "demo_log_run"}
    if request.param in names:
        found: Run = request.getfixturevalue(names[request.param])
        return found
    return profiled(*{"training": TRAINING, "session": SESSION, "stream": STREAM}[request.param])


def test_speedscope_opens_its_export(chromium: Browser, run: Run, tmp_path: Path) -> None:
    if not SPEEDSCOPE.is_file():
        pytest.skip("speedscope is not installed (npm --prefix web ci)")
    path = tmp_path / "run.speedscope.json"
    run.export("speedscope", path)
    file = json.loads(path.read_bytes())
    page = chromium.new_page()
    page.set_default_timeout(120_000)
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    page.goto(SPEEDSCOPE.as_uri())
    page.set_input_files("input[type=file]", path)
    first = file["profiles"][file["activeProfileIndex"]]
    frames = [each["name"] for each in file["shared"]["frames"]]
    time_ms: Counter[str] = Counter()
    for stack, weight in zip(first["samples"], first["weights"], strict=True):
        time_ms[frames[stack[-1]]] += weight
    page.get_by_text("Sandwich").click()
    page.get_by_text(time_ms.most_common(1)[0][0], exact=True).first.wait_for()
    title = page.title()
    page.close()
    assert not wrong
    assert title.startswith(file["name"])


def test_go_s_pprof_reads_its_export(run: Run, tmp_path: Path) -> None:
    go = shutil.which("go")
    if go is None:
        pytest.skip("Go is not installed (Debian: apt-get install golang-go)")
    path = tmp_path / "run.pb.gz"
    run.export("pprof", path)
    done = subprocess.run(
        [go, "tool", "pprof", "-tags", "-unit=ms", str(path)], capture_output=True, text=True, check=True
    )
    resources = done.stdout.partition(" resource: Total")[2].partition("\n\n")[0]
    found = {name: float(time_ms) for time_ms, name in re.findall(r"([\d.]+)ms \([ \d.]+%\): (\w+)", resources)}
    expected = {name: time_ms for name, time_ms in by_leaf(written(run, "collapsed")).items() if time_ms > 1}
    assert {name: time_ms for name, time_ms in found.items() if time_ms > 1} == pytest.approx(expected, rel=0.01)
    top = [go, "tool", "pprof", "-top", "-tagroot=worker,stage", "-tagleaf=resource", str(path)]
    assert "Type: time" in subprocess.run(top, capture_output=True, text=True, check=True).stdout


def unknown_fields(message: Any, unknown: Any) -> int:
    """Fields that a message's published definition does not have, those of nested messages included."""
    count = len(unknown.UnknownFieldSet(message))
    for field, value in message.ListFields():
        if field.type == field.TYPE_MESSAGE:
            count += sum(unknown_fields(each, unknown) for each in ([value] if hasattr(value, "ListFields") else value))
    return count


def test_a_perfetto_trace_is_of_the_published_messages(run: Run) -> None:
    messages = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    unknown = pytest.importorskip("google.protobuf.unknown_fields")
    data = written(run, "perfetto")
    trace = messages.Trace()
    trace.ParseFromString(data)
    assert unknown_fields(trace, unknown) == 0
    assert trace.ByteSize() == len(data)
    tracks = {
        each.track_descriptor.uuid: each.track_descriptor for each in trace.packet if each.HasField("track_descriptor")
    }
    assert all(each.parent_uuid in tracks for each in tracks.values() if each.HasField("parent_uuid"))
    names: dict[int, str] = {}
    last: dict[int, int] = defaultdict(int)
    began: dict[int, tuple[int, str]] = {}
    total_ns: dict[str, int] = defaultdict(int)
    flows: dict[int, int] = defaultdict(int)
    slot = run.header().vocabulary.slot
    for packet in trace.packet:
        names.update({each.iid: each.name for each in packet.interned_data.event_names})
        if not packet.HasField("track_event"):
            continue
        event, track = packet.track_event, packet.track_event.track_uuid
        assert packet.timestamp >= last[track]  # slices of a track are in order, and do not overlap
        last[track] = packet.timestamp
        for each in event.flow_ids:
            flows[each] += 1
        if event.type == event.TYPE_SLICE_BEGIN:
            assert track not in began
            began[track] = (packet.timestamp, names[event.name_iid])
        elif event.type == event.TYPE_SLICE_END:
            total_ns[tracks[track].name.rstrip("0123456789 ")] += packet.timestamp - began.pop(track)[0]
        else:
            assert tracks[track].HasField("counter")
    assert not began
    assert set(flows.values()) <= {2}
    (expected_ms,) = rows(run, "SELECT sum(greatest(finish_ms - launch_ms, 0)) FROM tasks")[0]
    assert total_ns[slot] / 1e6 == pytest.approx(expected_ms, rel=1e-4)
    if total_ns["critical path"]:
        assert total_ns["critical path"] / 1e6 == pytest.approx(run.debug("whole").runtime_ms, rel=1e-4)


def as_protobuf(value: Any, key: str = "") -> Any:
    """OTLP's JSON as that of Protocol Buffers: OTLP writes ids in hexadecimal, not in base 64."""
    if isinstance(value, dict):
        return {name: as_protobuf(each, name) for name, each in value.items()}
    if isinstance(value, list):
        return [as_protobuf(each) for each in value]
    return base64.b64encode(bytes.fromhex(value)).decode() if key in ("traceId", "spanId", "parentSpanId") else value


def test_spans_are_of_the_published_messages(run: Run) -> None:
    service = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2")
    json_format = pytest.importorskip("google.protobuf.json_format")
    count = 0
    for line in written(run, "otlp").splitlines():
        request = json_format.Parse(json.dumps(as_protobuf(json.loads(line))), service.ExportTraceServiceRequest())
        for resource in request.resource_spans:
            assert {"service.name", "service.instance.id"} <= {each.key for each in resource.resource.attributes}
            for span in resource.scope_spans[0].spans:
                assert (len(span.trace_id), len(span.span_id)) == (16, 8)
                assert 0 < span.start_time_unix_nano <= span.end_time_unix_nano
                count += 1
    (tasks,) = rows(run, "SELECT count(*) FROM tasks")[0]
    assert count > tasks
