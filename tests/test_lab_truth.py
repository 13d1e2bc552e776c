"""The machine's truth: from /proc to shares."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from lab.errors import LabError
from lab.machine import disk, host, shares, truth
from lab.machine.host import CgroupMount, Node
from lab.runs import hdfs
from tests.refusals import refused

X86 = "x86_64"


@pytest.mark.parametrize(
    ("call", "target", "kind"),
    [
        ("running", "", truth.RUNNING),
        ("202 0x7f 0x189 0x0 0x0 0x0 0xffffffff 0x7ffc 0x7f81", "", truth.FUTEX),
        ("0 0x5 0x7f 0x10 0x0 0x0 0x0 0x7ffc 0x7f81", "socket:[123]", truth.NETWORK),
        ("0 0x5 0x7f 0x10 0x0 0x0 0x0 0x7ffc 0x7f81", "/data/part-0", truth.DISK),
        ("0 0x5 0x7f 0x10 0x0 0x0 0x0 0x7ffc 0x7f81", "pipe:[9]", truth.OTHER),
        ("17 0x5 0x7f 0x10 0x0 0x0 0x0 0x7ffc 0x7f81", "/data/part-0", truth.DISK),
        ("232 0x5 0x7f 0x10 0x0 0x0 0x0 0x7ffc 0x7f81", "", truth.NETWORK),
        ("-1 0x7ffc 0x7f81", "", truth.DISK),  # a page fault
        ("230 0x0 0x0 0x7f 0x0 0x0 0x0 0x7ffc 0x7f81", "", truth.OTHER),  # sleep
    ],
)
def test_classes_of_system_calls(call: str, target: str, kind: int) -> None:
    assert truth.classify(call, target, X86) == kind


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="needs Linux's /proc")
@pytest.mark.skipif(os.uname().machine not in ("x86_64", "aarch64"), reason="needs x86_64 or aarch64")
def test_a_real_waiting_thread_is_seen() -> None:
    ready, done = threading.Event(), os.pipe()
    number: list[int] = []

    def wait() -> None:
        number.append(threading.get_native_id())
        ready.set()
        os.read(done[0], 1)

    thread = threading.Thread(target=wait)
    thread.start()
    ready.wait(5)
    time.sleep(0.05)
    try:
        call = Path(f"/proc/self/task/{number[0]}/syscall").read_text()
    except PermissionError:
        pytest.skip("this kernel does not show system calls")
    finally:
        os.write(done[1], b"x")
        thread.join()
    machine = os.uname().machine
    assert truth.uses_descriptor(call, machine)
    assert int(call.split(" ")[1], 16) == done[0]
    assert truth.classify(call, "pipe:[1]", machine) == truth.OTHER


def _ms(*values: float) -> np.ndarray:
    return np.array(values) * 1e6


def test_running_sums_split_each_step() -> None:
    series = shares.running_sums(
        _ms(0, 50, 100, 150),
        _ms(0, 10, 20, 60),
        _ms(0, 30, 30, 30),
        np.array([truth.RUNNING, truth.RUNNING, truth.NETWORK, truth.NETWORK]),
    )
    whole = dict(zip(shares.KINDS, series.between(0, 150), strict=True))
    assert whole["on_cpu"] == pytest.approx(60)
    assert whole["run_queue"] == pytest.approx(30)
    assert whole["held_back"] == pytest.approx(10)
    # Between the CPU and a wait, and between two looks at a wait, all that was not on the CPU is the wait.
    assert whole["network"] == pytest.approx(40 + 10)
    assert sum(whole.values()) == pytest.approx(150)
    assert series.between(100, 125).sum() == pytest.approx(25)


def test_unobserved_time_is_not_a_kind_of_time() -> None:
    series = shares.running_sums(_ms(0, 5000), _ms(0, 100), _ms(0, 0), np.array([truth.FUTEX, truth.FUTEX]))
    assert series.between(0, 5000).sum() == pytest.approx(100)


def _task(number: int, launch_ms: float, finish_ms: float, cpu_ms: float, **more: float) -> shares.Task:
    values = {"gc_ms": 0.0, "fetch_wait_ms": 0.0} | more
    return shares.Task(number, 1, 0, "0", launch_ms, finish_ms, cpu_ms, **values)


def test_tasks_find_their_threads_by_cpu_time() -> None:
    def series(first_ms: float, second_ms: float) -> shares._Series:
        return shares.running_sums(
            _ms(0, 100, 200), _ms(0, first_ms, first_ms + second_ms), _ms(0, 0, 0), np.full(3, truth.RUNNING)
        )

    threads = {11: series(90, 10), 12: series(20, 70)}
    tasks = [_task(1, 0, 100, 20), _task(2, 0, 100, 90), _task(3, 100, 200, 10), _task(4, 100, 200, 70)]
    assert shares.assign_threads(tasks, threads) == {1: 12, 2: 11, 3: 11, 4: 12}
    # Two tasks at a time are never one thread's.
    assert len(set(shares.assign_threads(tasks[:2], {11: threads[11]}).values())) == 1
    assert len(shares.assign_threads(tasks[:2], {11: threads[11]})) == 1


def test_shares_of_a_stage_sum_to_one_and_name_what_is_unexplained() -> None:
    parts = dict.fromkeys(shares.KINDS, 0.0) | {"on_cpu": 20.0, "run_queue": 10.0, "futex": 60.0, "disk": 10.0}
    task = _task(1, 0, 100, 20, fetch_wait_ms=25.0, gc_ms=15.0)
    (row,) = shares.stage_truth([task], {1: np.array([parts[kind] for kind in shares.KINDS])})
    assert (row.cpu, row.disk, row.net) == pytest.approx((0.45, 0.10, 0.25))
    assert row.residual_ms == pytest.approx(20)
    assert row.cpu + row.disk + row.net + row.other == pytest.approx(1)
    # Spark's metrics explain no more than what the thread was seen to wait.
    (row,) = shares.stage_truth(
        [_task(1, 0, 100, 20, fetch_wait_ms=500.0)], {1: np.array([parts[kind] for kind in shares.KINDS])}
    )
    assert row.net == pytest.approx(0.60)


@pytest.mark.skipif(os.uname().machine not in ("x86_64", "aarch64"), reason="needs x86_64 or aarch64")
def test_a_recording_without_executors_is_two_empty_tables(tmp_path: Path) -> None:
    sampler = truth.Sampler("127.9.9.9")
    sampler.look_for_executors()
    sampler.look_for_threads()
    sampler.tick()
    sampler.look_at_processes()
    sampler.write(tmp_path)
    assert shares.read_series(tmp_path / "ticks.parquet") == {}
    assert shares.executors_between(tmp_path / "processes.parquet", 0, 1)["cpu_ms"] == 0


@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="needs Linux")
def test_usage_of_a_process_survives_its_end() -> None:
    burn = "import time\nwhile time.process_time() < 0.2: pass\nprint(flush=True)\ninput()"
    with subprocess.Popen([sys.executable, "-c", burn], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        sampler = truth.Sampler("127.9.9.9")
        sampler.executors = {os.getpid(): truth._Executor(os.getpid(), "1", children=[child.pid])}
        sampler.look_at_processes()
        child.communicate(b"\n")
    sampler.look_at_processes()
    (_, _, first_ms, *_), (_, _, second_ms, *_) = sampler.recording.processes
    assert 190 <= sampler.executors[os.getpid()].cpu_ms[child.pid] <= first_ms <= second_ms
    sampler.executors[os.getpid()].pid = child.pid  # the executor itself has ended
    sampler.look_at_processes()
    assert len(sampler.recording.processes) == 2


def test_disk_rate_is_a_limit_on_reads() -> None:
    node = Node("w1", "10.0.0.1", disk_bytes_per_s=4_000_000)
    v1 = CgroupMount(1, Path("/cg/cpu"), Path("/cg/memory"), Path("/cg/blkio"))
    assert host.cgroup_folders(v1, node) == [Path("/cg/blkio/cplab-w1")]
    assert host.cgroup_writes(v1, node, "254:0") == [
        (Path("/cg/blkio/cplab-w1/blkio.throttle.read_bps_device"), "254:0 4000000")
    ]
    v2 = CgroupMount(2, Path("/cg"), Path("/cg"), Path("/cg"))
    assert host.cgroup_writes(v2, node, "254:0") == [(Path("/cg/cplab-w1/io.max"), "254:0 rbps=4000000")]
    with refused(LabError, "blkio"):
        host.cgroup_folders(CgroupMount(1, Path("/cg/cpu"), Path("/cg/memory")), node)


def test_a_node_sees_its_own_copy(tmp_path: Path) -> None:
    data = tmp_path / "data"
    (data / "table").mkdir(parents=True)
    (data / "table" / "part").write_text("rows")
    (data / "file").write_text("more")
    files = disk.data_files([data / "table", data / "file"])
    assert [file.name for file in files] == ["part", "file"]
    disk.drop_pages(files)
    disk.warm_pages(files)
    command = host.command_on(
        Node("w1", "10.0.0.1"), ["java"], in_namespace=True, cgroups=[], own_copy=(tmp_path / "copy", data)
    )
    assert "unshare" in command
    assert command.index(str(tmp_path / "copy")) + 1 == command.index(str(data))
    assert command[-1] == "java"


def test_a_file_system_remembers_what_it_holds(tmp_path: Path) -> None:
    folder = hdfs.write_configuration(tmp_path / "conf", tmp_path / "store", "10.0.0.9")
    text = (folder / "hdfs-site.xml").read_text()
    assert "<name>fs.defaultFS</name><value>hdfs://10.0.0.9:8020</value>" in text
    assert hdfs.missing(tmp_path / "store", ["a", "b"]) == ["a", "b"]
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "filled").write_text("a\n")
    assert hdfs.missing(tmp_path / "store", ["a", "b"]) == ["b"]
