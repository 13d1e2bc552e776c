"""Resource limits on one Linux machine: network namespaces with rate-limited links, and cgroups.

All names have the prefix ``cplab``, so that the next run finds and removes leftovers of a killed run. The root network
namespace is never changed: the switch is a bridge in a separate namespace, and each node is a namespace with one link
to it.

    cplab-driver ──┐
    cplab-w1 ══════╪═ cplab-switch (bridge)      ═ shaped at both ends by a token bucket (tc tbf)
    cplab-w2 ══════┘
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from lab.errors import LabError, MachineBusyError

T = TypeVar("T")

PREFIX = "cplab"
SWITCH = f"{PREFIX}-switch"
SUBNET = "10.203.77"
COMMAND_TIMEOUT_S = 20.0
KILL_TIMEOUT_S = 10.0
BUSY_TIMEOUT_S = 1200.0
_NO_CGROUPS = "No cgroup with the cpu and memory controllers is mounted here; run without CPU and memory limits."

# A quota is refilled once per period: a short period makes a slow core instead of a fast core with long pauses, and
# 25 ms does not align with a sampler's period of 20 ms.
CPU_PERIOD_US = 25_000
# A reader that skips part of a stream (HDFS under Parquet) discards the content of its socket's buffer. On slow links,
# the kernel's usual limit of 6 MB per socket is seconds of transfer.
_SMALL_BUFFERS = ("net.ipv4.tcp_rmem=4096 65536 262144", "net.ipv4.tcp_wmem=4096 65536 262144")
# Small buffers cost throughput if a link has traffic in both directions: acknowledgements wait behind data, and a small
# window is exhausted meanwhile. So workloads that do not skip use the Linux defaults below.
_CONGESTION = "cubic"
_USUAL_TCP = (
    "net.ipv4.tcp_rmem=4096 131072 6291456",
    "net.ipv4.tcp_wmem=4096 16384 4194304",
    f"net.ipv4.tcp_congestion_control={_CONGESTION}",
)
_ALLOWED = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control")
# The largest weights of the kernel (default 1024 and 100), because a quota does not protect from other work on the
# machine.
_LARGEST_SHARES, _LARGEST_WEIGHT = 262_144, 10_000


@dataclass(frozen=True)
class Node:
    """One machine of the cluster, with a separate network namespace if links are limited.

    Attributes:
        name: short name, unique in the cluster (``driver``, ``w1`` …).
        address: IPv4 address that the processes of the node listen on.
        rate_bps: rate of its link, bits per second, in each direction; None for no limit.
        cpu_cores: CPU time per second that all of the node's processes share; None for no limit.
        memory_bytes: memory (page cache included) of all of the node's processes; None for no limit.
        protected: whether the node has priority over other work on a busy CPU.
        disk_bytes_per_s: rate at which the node's processes read from the disk, page cache left out; None for no limit.
        small_buffers: whether socket buffers are at most 256 KiB, instead of the Linux default.
    """

    name: str
    address: str
    rate_bps: int | None = None
    cpu_cores: float | None = None
    memory_bytes: int | None = None
    protected: bool = False
    disk_bytes_per_s: int | None = None
    small_buffers: bool = True

    @property
    def uses_cpu_cgroup(self) -> bool:
        return self.protected or self.cpu_cores is not None

    @property
    def namespace(self) -> str:
        return f"{PREFIX}-{self.name}"


@dataclass(frozen=True)
class CgroupMount:
    """Mount points of cgroups: version 1 has one tree per controller, version 2 has a single tree."""

    version: int
    cpu: Path
    memory: Path
    blkio: Path | None = None


def cache_dir() -> Path:
    """The folder of data sets and libraries: ``$CRYSTALPERF_HOME/lab``, else the user's cache."""
    home = os.environ.get("CRYSTALPERF_HOME")
    if home:
        return Path(home) / "lab"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "crystalperf" / "lab"


def shaping_command(namespace: str, device: str, rate_bps: int) -> list[str]:
    """The token bucket on one end of a link.

    The bucket holds 10 ms of the rate (at least 32 KiB, so that a whole burst of a segmented packet passes) and
    the queue another 50 ms, which is what a switch port of that speed would buffer.
    """
    burst_bytes = max(32 * 1024, rate_bps // 8 // 100)
    limit_bytes = burst_bytes + rate_bps // 8 // 20
    tokens = f"rate {rate_bps}bit burst {burst_bytes} limit {limit_bytes}"
    return f"tc -n {namespace} qdisc add dev {device} root tbf {tokens}".split()


def network_commands(nodes: Sequence[Node]) -> list[list[str]]:
    """Commands, in order, that create the switch and one link to each node."""
    commands = [
        ["ip", "netns", "add", SWITCH],
        ["ip", "-n", SWITCH, "link", "set", "lo", "up"],
        ["ip", "-n", SWITCH, "link", "add", "br0", "type", "bridge"],
        ["ip", "-n", SWITCH, "link", "set", "br0", "up"],
    ]
    for node in nodes:
        ns, port = node.namespace, f"to-{node.name}"
        commands += [
            ["ip", "netns", "add", ns],
            ["ip", "-n", ns, "link", "set", "lo", "up"],
            ["ip", "-n", SWITCH, "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", ns],
            ["ip", "-n", SWITCH, "link", "set", port, "master", "br0", "up"],
            ["ip", "-n", ns, "address", "add", f"{node.address}/24", "dev", "eth0"],
            ["ip", "-n", ns, "link", "set", "eth0", "up"],
        ]
        commands += [
            ["nsenter", f"--net=/run/netns/{ns}", "--", "sysctl", "-qw", setting]
            for setting in (_SMALL_BUFFERS if node.small_buffers else _USUAL_TCP)
        ]
    return commands


def shaping_commands(nodes: Sequence[Node]) -> list[list[str]]:
    """Commands that limit both ends of the nodes' links."""
    return [
        shaping_command(namespace, device, node.rate_bps)
        for node in nodes
        if node.rate_bps is not None
        for namespace, device in ((node.namespace, "eth0"), (SWITCH, f"to-{node.name}"))
    ]


def find_cgroups(mounts: str | None = None) -> CgroupMount | None:
    """Mount points of the cpu and memory controllers, from /proc/self/mounts; None if they are not mounted."""
    trees: dict[str, Path] = {}
    unified: Path | None = None
    for line in (Path("/proc/self/mounts").read_text() if mounts is None else mounts).split("\n"):
        fields = line.split(" ")
        if len(fields) < 4:
            continue
        if fields[2] == "cgroup":
            for option in fields[3].split(","):
                trees.setdefault(option, Path(fields[1]))
        elif fields[2] == "cgroup2":
            unified = Path(fields[1])
    if "cpu" in trees and "memory" in trees:
        return CgroupMount(1, trees["cpu"], trees["memory"], trees.get("blkio"))
    if unified is not None:
        return CgroupMount(2, unified, unified, unified)
    return None


def cgroup_folders(mount: CgroupMount, node: Node) -> list[Path]:
    """The cgroup folders of one node: those of its limited controllers, each once."""
    trees = []
    if node.uses_cpu_cgroup:
        trees.append(mount.cpu)
    if node.memory_bytes is not None:
        trees.append(mount.memory)
    if node.disk_bytes_per_s is not None:
        if mount.blkio is None:
            raise LabError("The disk cannot be slowed here: no cgroup with the blkio controller is mounted.")
        trees.append(mount.blkio)
    return [tree / node.namespace for tree in dict.fromkeys(trees)]


def cgroup_writes(mount: CgroupMount, node: Node, disk: str | None = None) -> list[tuple[Path, str]]:
    """(file, text) pairs that limit one node once its cgroup folders exist.

    ``disk`` is the ``major:minor`` of the disk that ``disk_bytes_per_s`` is about (see ``whole_disk``).
    """
    writes: list[tuple[Path, str]] = []
    if node.protected:
        name, weight = ("cpu.weight", _LARGEST_WEIGHT) if mount.version == 2 else ("cpu.shares", _LARGEST_SHARES)
        writes.append((mount.cpu / node.namespace / name, str(weight)))
    if node.cpu_cores is not None:
        folder, quota_us = mount.cpu / node.namespace, max(1000, round(node.cpu_cores * CPU_PERIOD_US))
        if mount.version == 2:
            writes.append((folder / "cpu.max", f"{quota_us} {CPU_PERIOD_US}"))
        else:
            writes.append((folder / "cpu.cfs_period_us", str(CPU_PERIOD_US)))
            writes.append((folder / "cpu.cfs_quota_us", str(quota_us)))
    if node.memory_bytes is not None:
        name = "memory.max" if mount.version == 2 else "memory.limit_in_bytes"
        writes.append((mount.memory / node.namespace / name, str(node.memory_bytes)))
    if node.disk_bytes_per_s is not None and mount.blkio is not None and disk is not None:
        folder = mount.blkio / node.namespace
        if mount.version == 2:
            writes.append((folder / "io.max", f"{disk} rbps={node.disk_bytes_per_s}"))
        else:
            writes.append((folder / "blkio.throttle.read_bps_device", f"{disk} {node.disk_bytes_per_s}"))
    return writes


def whole_disk(path: Path) -> str:
    """``major:minor`` of the disk of a path; for a partition its disk, because only whole disks can be limited."""
    device = path.stat().st_dev
    name = f"{os.major(device)}:{os.minor(device)}"
    entry = Path("/sys/dev/block") / name
    if not entry.exists():
        raise LabError(f"{path} is not on a disk that can be slowed; put the lab's cache on a local file system.")
    if (entry / "partition").exists():
        name = (entry.resolve().parent / "dev").read_text().strip()
    return name


# A new sysfs shows the devices of the namespace that mounts it.  Only its network folders are used, because a JVM also
# reads its cgroups below /sys.
_OWN_DEVICES = (
    'own=$(mktemp -d) && mount -t sysfs sysfs "$own" && mount --bind "$own/class/net" /sys/class/net && '
    'mount --bind "$own/devices/virtual/net" /sys/devices/virtual/net && umount -l "$own" && rmdir "$own"'
)


def command_on(
    node: Node,
    command: Sequence[str],
    *,
    in_namespace: bool,
    cgroups: Sequence[Path],
    own_copy: tuple[Path, Path] | None = None,
) -> list[str]:
    """The command that runs ``command`` on a node: in its cgroups, in its namespace, ended when the lab's process ends.

    ``nsenter`` rather than ``ip netns exec``: the latter hides /sys/fs/cgroup from the JVM. ``own_copy`` is (folder,
    place): the node sees its own folder where all others see ``place``.  In a namespace it also sees its own network
    devices below /sys: a JVM reads from there what a device carried, and would find the machine's devices instead.
    """
    prefix: list[str] = []
    if cgroups:
        join = " && ".join(f"echo $$ > {folder}/cgroup.procs" for folder in cgroups)
        prefix += ["sh", "-c", f'{join} && exec "$@"', "sh"]
    if in_namespace:
        prefix += ["nsenter", f"--net=/run/netns/{node.namespace}", "--"]
    mounts: list[str] = [_OWN_DEVICES] if in_namespace else []
    if own_copy is not None:
        mounts.append('mount --bind "$1" "$2" && shift 2')
    if mounts:
        script = " && ".join([*mounts, 'exec "$@"'])
        prefix += ["unshare", "--mount", "--propagation", "private", "sh", "-c", script, "sh"]
        prefix += map(str, own_copy or ())
    return [*prefix, "setpriv", "--pdeathsig", "TERM", "--", *command]


def run_command(command: Sequence[str]) -> str:
    """Output of a short system command; raises LabError with its message if it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=COMMAND_TIMEOUT_S, check=False)
    except FileNotFoundError:
        raise LabError(f"The lab needs the command '{command[0]}'; install iproute2 and util-linux.") from None
    except subprocess.TimeoutExpired:
        raise LabError(f"'{' '.join(command)}' did not end within {COMMAND_TIMEOUT_S:.0f} s.") from None
    if done.returncode != 0:
        reason = done.stderr.strip().replace("\n", "; ") or f"exit status {done.returncode}"
        raise LabError(f"'{' '.join(command)}' failed ({reason}); this kernel or container may not allow it.")
    return done.stdout


def check_host(*, namespaces: bool, limits: bool) -> None:
    """Raise LabError, with the fix, if this machine does not support the requested limits."""
    if os.uname().sysname != "Linux":
        raise LabError("The lab needs Linux: namespaces, cgroups and tc exist only there.")
    needed = {"setpriv": "util-linux"}
    if namespaces:
        needed |= {"nsenter": "util-linux", "ip": "iproute2", "tc": "iproute2"}
    for program, package in needed.items():
        if shutil.which(program) is None:
            raise LabError(f"The lab needs the command '{program}'; install it with 'apt-get install {package}'.")
    if (namespaces or limits) and os.geteuid() != 0:
        raise LabError(
            "Shaped networks, CPU quotas, memory and disk limits need root; run the lab as root, or without them "
            "(--network none and no --cpu-quota, --node-memory, --disk or --storage hdfs)."
        )
    if limits and find_cgroups() is None:
        raise LabError(_NO_CGROUPS)


@contextlib.contextmanager
def machine_lock() -> Iterator[None]:
    """Lock the machine for one run, because concurrent runs would affect each other's times and share names.

    Root has one lock for the whole machine, for all caches and users.
    """
    folder = Path("/run/lock") if os.geteuid() == 0 and Path("/run/lock").is_dir() else cache_dir()
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{PREFIX}.lock").open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            owner = lock.read().strip()
            raise MachineBusyError(f"Another lab run (process {owner}) uses the machine; wait for its end.") from None
        lock.truncate(0)
        lock.write(f"{os.getpid()}\n")
        lock.flush()
        yield


def when_free(run: Callable[[], T]) -> T:
    """The result of a run, after waiting for other runs.  Raises MachineBusyError after ``BUSY_TIMEOUT_S``."""
    deadline = time.monotonic() + BUSY_TIMEOUT_S
    while True:
        try:
            return run()
        except MachineBusyError:
            if time.monotonic() > deadline:
                raise
            time.sleep(1)


@contextlib.contextmanager
def shared_machine(nodes: Sequence[Node]) -> Iterator[None]:
    """The machine for one run, with a network of these nodes if there are any; both are released at its end.

    Leftovers of an earlier, killed run are removed first.  Raises LabError.
    """
    with machine_lock():
        if left := remove_shared():
            print(f"removed leftovers of an earlier run: {', '.join(left)}", file=sys.stderr)
        try:
            if nodes:
                build_network(nodes)
            yield
        finally:
            remove_shared()


def build_network(nodes: Sequence[Node]) -> None:
    """Create the namespaces and links of the nodes, still without limits."""
    if not all(each.small_buffers for each in nodes) and _CONGESTION not in (allowed := _ALLOWED.read_text().split()):
        _ALLOWED.write_text(" ".join([*allowed, _CONGESTION]))  # a namespace may choose among these only
    for command in network_commands(nodes):
        run_command(command)


def shape_network(nodes: Sequence[Node]) -> None:
    """Apply the rates of the nodes' links."""
    for command in shaping_commands(nodes):
        run_command(command)


def make_cgroups(node: Node) -> list[Path]:
    """Create the cgroups of one node and return their folders ([] where nothing is limited).

    Weight and memory hold from now on, since a heap is sized when its JVM starts; the CPU quota and the disk rate
    wait for ``limit_rates``.
    """
    if not node.uses_cpu_cgroup and node.memory_bytes is None and node.disk_bytes_per_s is None:
        return []
    mount = find_cgroups()
    if mount is None:
        raise LabError(_NO_CGROUPS)
    try:
        if mount.version == 2:
            wanted = "+cpu +memory" if node.disk_bytes_per_s is None else "+cpu +memory +io"
            (mount.cpu / "cgroup.subtree_control").write_text(wanted)
        folders = cgroup_folders(mount, node)
        for folder in folders:
            folder.mkdir(exist_ok=True)
        for file, text in cgroup_writes(mount, replace(node, cpu_cores=None)):
            file.write_text(text)
    except OSError as error:
        raise LabError(
            f"The cgroup of node {node.name} could not be made ({error}); run without CPU, memory and disk limits."
        ) from None
    return folders


def limit_rates(node: Node, disk: str | None = None) -> None:
    """Apply one node's CPU quota and disk rate (of the disk ``major:minor``)."""
    mount = find_cgroups()
    if mount is None or (node.cpu_cores is None and node.disk_bytes_per_s is None):
        return
    try:
        for file, text in cgroup_writes(mount, node, disk):
            file.write_text(text)
    except OSError as error:
        raise LabError(f"The rates of node {node.name} could not be limited ({error}); run without them.") from None


def _named_namespaces() -> list[str]:
    folder = Path("/run/netns")
    if not folder.is_dir():
        return []
    return sorted(entry.name for entry in folder.iterdir() if entry.name.startswith(f"{PREFIX}-"))


def _named_cgroups() -> list[Path]:
    mount = find_cgroups()
    if mount is None:
        return []
    trees = {mount.cpu, mount.memory} | ({mount.blkio} if mount.blkio is not None else set())
    return [folder for tree in sorted(trees) for folder in sorted(tree.glob(f"{PREFIX}-*"))]


def _shared_processes() -> set[int]:
    """Processes inside our namespaces or cgroups, except this one."""
    pids: set[int] = set()
    for namespace in _named_namespaces():
        with contextlib.suppress(LabError):
            pids |= {int(word) for word in run_command(["ip", "netns", "pids", namespace]).split()}
    for folder in _named_cgroups():
        with contextlib.suppress(OSError):
            pids |= {int(word) for word in (folder / "cgroup.procs").read_text().split()}
    return pids - {os.getpid()}


def remove_shared() -> list[str]:
    """Kill the processes in our namespaces and cgroups, remove these, and return the names of what was removed.

    Called at the end of a run and, with the machine locked, at the start of the next, for leftovers of a killed run.
    Without root there can be no leftovers, so it does nothing.
    """
    if os.geteuid() != 0:
        return []
    deadline = time.monotonic() + KILL_TIMEOUT_S
    while pids := _shared_processes():
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > deadline:
            raise LabError(f"Processes {sorted(pids)} of an earlier lab run do not end; end them by hand.")
        time.sleep(0.05)
    removed = []
    # Removing a node's namespace also removes its link, on the switch's side too.
    for namespace in _named_namespaces():
        run_command(["ip", "netns", "delete", namespace])
        removed.append(namespace)
    for folder in _named_cgroups():
        with contextlib.suppress(FileNotFoundError):
            folder.rmdir()
        removed.append(str(folder))
    return removed
