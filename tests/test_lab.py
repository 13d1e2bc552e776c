"""The lab: what it would do to the machine, as text; and one tiny real run where Java, Spark and tpchgen-cli are."""

from __future__ import annotations

import ast
import json
import os
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from crystalperf.query.frameworks import Job
from crystalperf.query.frameworks.spark.setup import settings, spark_text
from lab import units
from lab.errors import LabError
from lab.machine import host
from lab.machine.host import CgroupMount, Node
from lab.runs import samplers, spark, workloads
from lab.runs.cluster import ClusterConfig, cluster_nodes
from tests.refusals import refused

REPOSITORY = Path(__file__).resolve().parent.parent
ROOMS: dict[str, set[str]] = {
    "machine": set(),
    "runs": {"machine"},
    "flink": {"machine", "runs"},
    "costs": {"runs"},
    "score": {"costs", "flink", "machine", "runs"},
    "advice": {"machine", "runs"},
    "memory": {"machine", "runs"},
    "native": {"runs"},
    "streams": {"machine", "runs"},
    "checks": set(),
    "systems": set(),
    "damage": set(),
    "measure": set(),
}
"""The lab's packages, each with those that it may import from."""

V1_MOUNTS = """\
tmpfs /sys/fs/cgroup tmpfs rw 0 0
cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,nosuid,cpu,cpuacct 0 0
cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0
cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0
"""
V2_MOUNTS = "sysfs /sys sysfs rw 0 0\ncgroup2 /sys/fs/cgroup cgroup2 rw,nsdelegate 0 0\n"


def test_package_imports_only_packages_below_it() -> None:
    for path in (REPOSITORY / "lab").glob("*/**/*.py"):
        room = path.relative_to(REPOSITORY / "lab").parts[0]
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("lab."):
                name = str(node.module).split(".")[1]
                assert name in ROOMS.get(room, set()) | {room} or name not in ROOMS, f"{path} imports {node.module}"


@pytest.mark.parametrize(
    ("text", "bits"),
    [
        ("100Mbps", 100_000_000),
        ("1Gbit/s", 1_000_000_000),
        ("12.5MB/s", 100_000_000),
        ("1MBps", 8_000_000),
        ("64kbps", 64_000),
        ("9600bit", 9600),
    ],
)
def test_bit_rate(text: str, bits: int) -> None:
    assert units.parse_bit_rate(text) == bits


@pytest.mark.parametrize("text", ["", "100", "-1Mbps", "0Mbps", "fast", "1Tbps", "1e3Mbps", "1Mbps;rm"])
def test_bit_rate_refuses(text: str) -> None:
    with refused(LabError, text):
        units.parse_bit_rate(text)


def test_size_is_binary() -> None:
    assert units.parse_size("1g") == units.parse_size("1024m") == units.parse_size("1 GiB") == 2**30
    with refused(LabError, "-1g"):
        units.parse_size("-1g")


def test_network_is_shaped_at_both_ends_and_leaves_the_root_namespace_alone() -> None:
    driver, workers = cluster_nodes(ClusterConfig(workers=3, namespaces=True, network_bps=10**8))
    shaping = host.shaping_commands([driver, *workers])
    commands = [*host.network_commands([driver, *workers]), *shaping]
    shaped = {(command[2], command[command.index("dev") + 1]) for command in shaping}
    assert shaped == {
        (namespace, device)
        for worker in workers
        for namespace, device in ((worker.namespace, "eth0"), (host.SWITCH, f"to-{worker.name}"))
    }
    assert all("100000000bit" in command for command in shaping)
    for command in commands:
        assert command[1] in ("-n", "netns", f"--net=/run/netns/{command[1].rpartition('/')[2]}"), command
        assert any(word.startswith((f"{host.PREFIX}-", f"--net=/run/netns/{host.PREFIX}-")) for word in command), (
            command
        )
    assert len({node.address for node in [driver, *workers]}) == 4


def test_interface_names_fit_the_kernel() -> None:
    _, workers = cluster_nodes(ClusterConfig(workers=100, namespaces=True))
    assert max(len(f"to-{worker.name}") for worker in workers) <= 15


def test_shaping_holds_the_rate() -> None:
    command = host.shaping_command("ns", "eth0", 10**9)
    burst_bytes = int(command[command.index("burst") + 1])
    assert burst_bytes == 10**9 // 8 // 100  # 10 ms of the rate
    slow = host.shaping_command("ns", "eth0", 10**6)
    assert int(slow[slow.index("burst") + 1]) >= 32 * 1024
    assert int(slow[slow.index("limit") + 1]) > int(slow[slow.index("burst") + 1])


def test_cgroup_version_1() -> None:
    mount = host.find_cgroups(V1_MOUNTS)
    assert mount == CgroupMount(1, Path("/sys/fs/cgroup/cpu,cpuacct"), Path("/sys/fs/cgroup/memory"))
    node = Node("w1", "10.0.0.1", cpu_cores=0.5, memory_bytes=2**30)
    assert [str(path) for path in host.cgroup_folders(mount, node)] == [
        "/sys/fs/cgroup/cpu,cpuacct/cplab-w1",
        "/sys/fs/cgroup/memory/cplab-w1",
    ]
    writes = {path.name: text for path, text in host.cgroup_writes(mount, node)}
    assert int(writes["cpu.cfs_quota_us"]) / int(writes["cpu.cfs_period_us"]) == 0.5
    assert writes["memory.limit_in_bytes"] == str(2**30)


def test_cgroup_version_2() -> None:
    mount = host.find_cgroups(V2_MOUNTS)
    assert mount is not None
    assert mount.version == 2
    node = Node("w1", "10.0.0.1", cpu_cores=1.5, memory_bytes=2**30)
    assert host.cgroup_folders(mount, node) == [Path("/sys/fs/cgroup/cplab-w1")]
    writes = {path.name: text for path, text in host.cgroup_writes(mount, node)}
    quota, period = writes["cpu.max"].split(" ")
    assert int(quota) / int(period) == 1.5
    assert writes["memory.max"] == str(2**30)
    assert host.find_cgroups("proc /proc proc rw 0 0\n") is None


def test_a_quota_is_protected_from_other_work() -> None:
    driver, workers = cluster_nodes(ClusterConfig(slot_cpu_cores=0.25))
    v1, v2 = host.find_cgroups(V1_MOUNTS), host.find_cgroups(V2_MOUNTS)
    assert v1 is not None
    assert v2 is not None
    for node in [driver, *workers]:
        assert ("cpu.shares", "262144") in [(path.name, text) for path, text in host.cgroup_writes(v1, node)]
        assert ("cpu.weight", "10000") in [(path.name, text) for path, text in host.cgroup_writes(v2, node)]
        assert len(host.cgroup_folders(v1, node)) == len(host.cgroup_folders(v2, node)) == 1
    assert not any(node.protected for node in cluster_nodes(ClusterConfig())[1])


def test_commands_end_with_the_lab_and_join_their_node() -> None:
    node = Node("w1", "10.0.0.1")
    command = host.command_on(node, ["java", "-version"], in_namespace=True, cgroups=[Path("/cg/cplab-w1")])
    assert command[:2] == ["sh", "-c"]
    assert "/cg/cplab-w1/cgroup.procs" in command[2]
    assert "--net=/run/netns/cplab-w1" in command
    assert command[-6:] == ["setpriv", "--pdeathsig", "TERM", "--", "java", "-version"]
    plain = host.command_on(node, ["java"], in_namespace=False, cgroups=[])
    assert plain == ["setpriv", "--pdeathsig", "TERM", "--", "java"]


def test_driver_is_never_limited() -> None:
    config = ClusterConfig(slots=4, slot_cpu_cores=0.25, namespaces=True, network_bps=10**7, node_memory_bytes=2**31)
    driver, workers = cluster_nodes(config)
    assert (driver.rate_bps, driver.cpu_cores, driver.memory_bytes) == (None, None, None)
    assert [(worker.rate_bps, worker.cpu_cores, worker.memory_bytes) for worker in workers] == [(10**7, 1.0, 2**31)] * 2


def test_executors_on_loopback_have_addresses_of_their_own() -> None:
    driver, workers = cluster_nodes(ClusterConfig(workers=4))
    addresses = {node.address for node in [driver, *workers]}
    assert len(addresses) == 5
    assert all(address.startswith("127.") for address in addresses)


@pytest.mark.parametrize(
    "knobs",
    [
        {"workers": 0},
        {"slots": 0},
        {"slot_cpu_cores": 0.0},
        {"slot_cpu_cores": -1.0},
        {"executor_memory_bytes": 2**20},
        {"network_bps": 10**6},
    ],
)
def test_cluster_refuses(knobs: dict[str, float]) -> None:
    with pytest.raises(LabError):
        ClusterConfig(**knobs)  # type: ignore[arg-type]


def _words(line: str) -> list[str]:
    return line.split(" ")


def test_command_line() -> None:
    config, out, data = spark.parse_arguments(
        _words(
            "--query q9 --scale 2 --slots 4 --cpu-quota 0.25 --network 100Mbps --sample-ms 100 --out runs/a "
            "--conf spark.sql.autoBroadcastJoinThreshold=-1"
        )
    )
    assert (config.query, config.scale_factor, out, data) == ("q9", 2.0, Path("runs/a"), None)
    assert config.cluster == ClusterConfig(slots=4, slot_cpu_cores=0.25, namespaces=True, network_bps=10**8)
    assert config.sampling.sample_ms == 100
    assert config.spark_conf == {"spark.sql.autoBroadcastJoinThreshold": "-1"}


def test_spark_settings_reach_the_executors() -> None:
    config, out, _ = spark.parse_arguments(
        _words("--query q9 --slots 3 --workers 2 --out /o --event-log plain --conf spark.executor.memory=600m")
    )
    settings = spark.spark_settings(config, workloads.find_workload("q9"), out, "10.0.0.1")
    assert settings["spark.executor.cores"] == "3"
    assert settings["spark.cores.max"] == "6"
    assert settings["spark.executor.memory"] == "600m"  # what is given by hand wins
    assert settings["spark.eventLog.compress"] == "false"
    java = settings["spark.executor.extraJavaOptions"]
    assert "filename=/o/jfr/executor-{{EXECUTOR_ID}}.jfr" in java
    assert "jdk.ExecutionSample#period=20ms" in java
    assert "jdk.ThreadPark#threshold=1ms" in java
    assert settings["spark.driver.extraJavaOptions"].count("filename=/o/jfr/driver.jfr") == 1
    assert spark.properties_text({"spark.a.b": "x #y=z"}) == "spark.a.b x #y=z\n"
    with pytest.raises(LabError, match=r"spark\.a"):
        spark.properties_text({"spark.a": "1\nspark.b 2"})


def test_no_sampler_leaves_the_jvm_flags_alone() -> None:
    config, out, _ = spark.parse_arguments(["--query", "q6", "--out", "/o", "--sampler", "none"])
    settings = spark.spark_settings(config, workloads.find_workload("q6"), out, "10.0.0.1")
    assert "FlightRecorder" not in str(settings)
    assert "FlightRecording" not in str(settings)
    assert "spark.driver.extraJavaOptions" not in settings


def test_async_profiler_flag() -> None:
    sampling = spark.Sampling("async", 20, library=Path("/lib/libasyncProfiler.so"))
    flag = sampling.flag("/o/wall/driver.jfr")
    assert flag == "-agentpath:/lib/libasyncProfiler.so=start,event=wall,interval=20ms,jfr,file=/o/wall/driver.jfr"


@pytest.mark.parametrize(
    "arguments",
    [
        ["--query", "q99", "--out", "o"],
        ["--query", "q9", "--out", "o", "--network", "fast"],
        ["--query", "q9", "--out", "o", "--memory=-1g"],
        ["--query", "q9", "--out", "o", "--conf", "novalue"],
        ["--query", "q9", "--out", "o", "--sample-ms", "0"],
        ["--query", "q9", "--out", "o", "--scale=-1"],
    ],
)
def test_bad_arguments_are_one_sentence(
    arguments: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(spark, "find_java", lambda: Path("java"))
    monkeypatch.setattr(spark, "find_spark", lambda: Path("spark"))
    assert spark.main(arguments) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: ")
    assert captured.err.count("\n") == 1


def test_a_missing_command_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr("shutil.which", lambda name: None if name == "tc" else f"/usr/sbin/{name}")
    with refused(LabError, "tc", "iproute2"):
        host.check_host(namespaces=True, limits=False)


def test_without_root_the_lab_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/sbin/{name}")
    with refused(LabError, "root"):
        host.check_host(namespaces=True, limits=False)
    host.check_host(namespaces=False, limits=False)


def _chunk(size: int) -> bytes:
    return struct.pack(">4s2Hq", b"FLR\0", 2, 1, size) + bytes(size - 16)


def test_complete_recording(tmp_path: Path) -> None:
    file = tmp_path / "a.jfr"
    assert not samplers.is_complete_recording(file)
    for content, complete in [
        (b"", False),
        (_chunk(68), True),
        (_chunk(68) + _chunk(100), True),
        (_chunk(68)[:-1], False),
        (_chunk(68) + b"FLR", False),
        (b"FLR\0" + bytes(64), False),  # a chunk under way has no size yet
        (b"\x89PNG" + bytes(64), False),
    ]:
        file.write_bytes(content)
        assert samplers.is_complete_recording(file) is complete, content[:20]


def test_workloads_are_found_by_name() -> None:
    assert {"q6", "q9", "q18", "q21", "skew", "udf"} <= set(workloads.WORKLOADS)
    with refused(LabError, "q22"):
        workloads.find_workload("q22")
    assert workloads.count_vowels("furiously even deposits") == 9


def _missing_for_a_run() -> str:
    if shutil.which("java") is None:
        return "needs Java 17"
    if not Path(sys.executable).with_name("tpchgen-cli").exists() and shutil.which("tpchgen-cli") is None:
        return "needs tpchgen-cli (pip install tpchgen-cli)"
    try:
        import pyspark  # noqa: F401
    except ImportError:
        return "needs pyspark (pip install pyspark==4.0.1)"
    return ""


def _missing_for_shaping() -> str:
    if os.geteuid() != 0:
        return "needs root"
    absent = [name for name in ("ip", "tc", "nsenter", "setpriv") if shutil.which(name) is None]
    return f"needs {', '.join(absent)}" if absent else ""


@pytest.mark.later  # starts Spark
@pytest.mark.skipif(bool(_missing_for_a_run()), reason=_missing_for_a_run())
@pytest.mark.skipif(bool(_missing_for_shaping()), reason=_missing_for_shaping())
def test_a_tiny_run_on_a_shaped_network(tmp_path: Path) -> None:
    out = tmp_path / "run"
    command = [
        sys.executable,
        "-m",
        "lab.runs.spark",
        "--query",
        "q6",
        "--scale",
        "0.01",
        "--workers",
        "2",
        "--slots",
        "1",
    ]
    command += ["--memory", "512m", "--network", "200Mbps", "--cpu-quota", "1", "--timeout", "150", "--out", str(out)]
    environment = os.environ | {"CRYSTALPERF_HOME": str(tmp_path / "home")}
    done = subprocess.run(
        command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    if "has the machine" in done.stderr:
        pytest.skip("another lab run has the machine")
    assert done.returncode == 0, done.stderr
    row = json.loads((out / "run.json").read_text())
    assert row["rows"] == 1
    assert 0 < row["end_ms"] - row["start_ms"] < 60_000
    assert len(row["recordings"]) == 3  # the driver and two executors
    assert all(samplers.is_complete_recording(out / file) for file in row["recordings"])
    assert row["configuration"]["network_bps"] == 200_000_000
    assert any((out / row["event_logs"][0]).iterdir())
    # Nothing temporary is left: no namespace, no cgroup, and with them no process.
    assert host._named_namespaces() == []
    assert host._named_cgroups() == []
    assert not (out / "work").exists()


def test_setup_prints_the_flags_that_the_lab_records_with() -> None:
    printed = settings("/tmp")
    executor = "/tmp/crystalperf-{{APP_ID}}-executor-{{EXECUTOR_ID}}.jfr"
    assert printed["spark.executor.extraJavaOptions"] == spark.Sampling().flag(executor)
    assert printed["spark.driver.extraJavaOptions"] == spark.Sampling().flag("/tmp")
    assert samplers.async_flag(Path("/path/to/libasyncProfiler.so"), executor) in spark_text(Job("/tmp"))
