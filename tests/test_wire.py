"""Our readers of Protocol Buffers against the frameworks' own classes, field by field, on real files.

The classes come with TensorFlow (RunMetadata and XSpace) or with TensorBoard (RunMetadata alone); without them these
tests are skipped: `pip install tensorflow-cpu` into an environment that has CrystalPerf.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from crystalperf.query.frameworks.ml.tensorflow import messages, xplane

pytestmark = pytest.mark.later

DATA = Path(__file__).parent / "data/training"
REAL = Path(__file__).parents[2] / "shared/real-inputs/tensorflow"
STEPS = sorted(DATA.rglob("*.run_metadata.pb"))
PLANES = [*sorted(DATA.rglob("*.xplane.pb")), *(sorted(REAL.rglob("*.xplane.pb")) if REAL.is_dir() else ())]


def theirs(*modules: str) -> Any:
    """The first of some modules that there is; skips where there is none."""
    for name in modules:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                return importlib.import_module(name)
            except ImportError:
                continue
    pytest.skip(f"none of {', '.join(modules)} is installed")


def metadata_of(content: bytes) -> Any:
    classes = theirs("tensorflow.core.protobuf.config_pb2", "tensorboard.compat.proto.config_pb2")
    return classes.RunMetadata.FromString(content)


def their_node(each: Any) -> tuple[Any, ...]:
    nanos = each.all_start_nanos
    start = nanos / 1e3 if nanos else float(each.all_start_micros)
    length = each.all_end_rel_nanos / 1e3 if nanos else float(each.all_end_rel_micros)
    ready = each.scheduled_nanos / 1e3 if nanos else float(each.scheduled_micros)
    size = sum(one.tensor_description.allocation_description.requested_bytes for one in each.output)
    return each.node_name, start, start + max(length, 0.0), ready, each.timeline_label, size


def our_node(each: messages.NodeStats) -> tuple[Any, ...]:
    return each.name, each.start, each.end, each.scheduled, each.label, each.bytes


@pytest.mark.parametrize("path", STEPS, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_run_metadata_says_what_the_frameworks_class_says(path: Path) -> None:
    content = path.read_bytes()
    reported, ours = metadata_of(content), messages.run_metadata(content)
    assert [each.device for each in ours.devices] == [each.device for each in reported.step_stats.dev_stats]
    for mine, its in zip(ours.devices, reported.step_stats.dev_stats, strict=True):
        assert [our_node(each) for each in mine.nodes] == [their_node(each) for each in its.node_stats]
    assert len(ours.partitions) == len(reported.partition_graphs)
    for mine_of_graph, graph in zip(ours.partitions, reported.partition_graphs, strict=True):
        met = ("_Send", "_Recv", "_HostSend", "_HostRecv")
        assert [(each.name, each.op, each.inputs, each.device, each.tensor) for each in mine_of_graph] == [
            (
                one.name,
                one.op,
                tuple(one.input),
                one.device,
                one.attr["tensor_name"].s.decode() if one.op in met else "",
            )
            for one in graph.node
        ]


def test_steps_in_summaries_say_what_the_frameworks_class_says() -> None:
    events = theirs("tensorflow.core.util.event_pb2", "tensorboard.compat.proto.event_pb2")
    content = (DATA / "events.out.tfevents").read_bytes()
    found = 0
    for record in records(content):
        event = events.Event.FromString(record)
        tagged = event.tagged_run_metadata
        reported = [(tagged.tag, event.step, tagged.run_metadata)] if tagged.run_metadata else []
        assert [(tag, step, bytes(message)) for tag, step, message in messages.embedded(record)] == reported
        found += len(reported)
    assert found


def records(content: bytes) -> Iterator[bytes]:
    place = 0
    while place < len(content):
        length = int.from_bytes(content[place : place + 8], "little")
        yield content[place + 12 : place + 12 + length]
        place += 16 + length


def value_of(stat: Any, names: Any) -> str:
    """A stat's value as the reader writes it; '' for those that it leaves out."""
    kind = stat.WhichOneof("value")
    if kind == "double_value":
        return f"{stat.double_value:g}"
    if kind == "ref_value":
        return str(names[stat.ref_value].name) if stat.ref_value in names else ""
    return "" if kind in (None, "bytes_value") else str(getattr(stat, kind))


def stats_of(stats: Any, names: Any) -> dict[str, str]:
    found = {names[each.metadata_id].name if each.metadata_id in names else "": value_of(each, names) for each in stats}
    return {name: value for name, value in found.items() if name and value}


@pytest.mark.parametrize("path", PLANES, ids=lambda path: path.name)
def test_xplanes_say_what_the_frameworks_class_says(path: Path) -> None:
    classes = theirs("tensorflow.tsl.profiler.protobuf.xplane_pb2", "xprof.protobuf.xplane_pb2")
    content = path.read_bytes()
    reported, ours = classes.XSpace.FromString(content), list(xplane.planes(content))
    assert [each.name for each in ours] == [each.name for each in reported.planes]
    of_planes = [stats_of(each.stats, each.stat_metadata) for each in reported.planes]
    begin_ms = (
        float(next((each["profile_start_time"] for each in of_planes if "profile_start_time" in each), "0")) / 1e6
    )
    kept = xplane._KEPT_STATS
    count = 0
    for mine, its, stats in zip(ours, reported.planes, of_planes, strict=True):
        assert mine.stats == stats
        assert [each.name for each in mine.lines] == [each.display_name or each.name for each in its.lines]
        for line, its_line in zip(mine.lines, its.lines, strict=True):
            assert len(line.events) == len(its_line.events)
            for one, event in zip(line.events, its_line.events, strict=True):
                start_ms = its_line.timestamp_ns / 1e6 + event.offset_ps / 1e9 + begin_ms
                assert one.name == its.event_metadata[event.metadata_id].name
                assert one.start_ms == pytest.approx(start_ms, abs=1e-3)
                assert one.end_ms - one.start_ms == pytest.approx(event.duration_ps / 1e9, abs=1e-3)
                wanted = {
                    name: value for name, value in stats_of(event.stats, its.stat_metadata).items() if name in kept
                }
                assert one.stats == wanted
                count += 1
    assert count
