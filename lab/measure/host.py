"""A disk whose cache can be emptied and a peer some tenths of a millisecond away, on one machine.

With root, measuring happens on a file system of its own (a file mounted as a loop device, without the page cache of the
file beneath), which is unmounted and mounted again to empty its caches, and behind a network device (tun) that
answers every packet with its mirror image after a delay: what is sent to PEER comes back as if PEER sent it, so a
server on this machine is reached over a link with a round trip. Both are private to the process, and gone with it.
Without root, files only lose their cached pages and peers are on the loopback device; the results say so.
"""

from __future__ import annotations

import ctypes
import fcntl
import heapq
import os
import select
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from crystalperf.indexes.errors import SettingError

ONE_WAY_S = 0.00025
IMAGE_BYTES = 1 << 31
DISK_BPS = 125_000_000
"""The base rate of a common cloud volume; the disk of a virtual machine may in truth be another machine's memory. The
kernel grants a tenth of a second of it at once, so that a call needs to move more than 12.5 MB to be slowed."""
_THROTTLE = Path("/sys/fs/cgroup/blkio")
RECORDS = ("strace.txt", "measure.jfr")
"""What measuring writes to the scratch folder and nobody needs afterwards."""
HERE, PEER = "10.211.0.1", "10.211.0.2"
_CLONE_NEWNS, _CLONE_NEWNET = 0x00020000, 0x40000000
_TUNSETIFF, _IFF_TUN, _IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
_MAX_PACKET_BYTES = 65536


@dataclass(frozen=True, slots=True)
class Host:
    """Where to measure."""

    folder: Path  # on the disk
    peer: str  # address under which servers on this machine are reached
    image: Path | None  # None without root
    limited: bool = False  # whether the disk's rate is DISK_BPS

    def sync(self) -> int:
        """Write out what the file system still holds; nanoseconds it took, 0 where there was nothing to write.

        A sync of a clean file system costs a flush of the disk all the same: nobody owes that.
        """
        opened = os.open(self.folder, os.O_RDONLY)
        try:
            device = os.fstat(opened).st_dev
            before, started = _sectors_written(device), time.monotonic_ns()
            if ctypes.CDLL(None, use_errno=True).syncfs(opened):
                raise SettingError(f"{self.folder} cannot be synced: {os.strerror(ctypes.get_errno())}")
            took = time.monotonic_ns() - started
            return took if _sectors_written(device) > before else 0
        finally:
            os.close(opened)

    def cool(self) -> None:
        """Empty the caches: of data and names with root, else of the data only."""
        if self.image is not None:
            _limit(self.folder, 0)
            _run("umount", str(self.folder))
            _mount(self.image, self.folder)
            self.sync()  # mounting itself writes
            return
        for path in self.folder.rglob("*"):
            if path.is_file() and not path.is_symlink():
                opened = os.open(path, os.O_RDONLY)
                os.fsync(opened)
                os.posix_fadvise(opened, 0, 0, os.POSIX_FADV_DONTNEED)
                os.close(opened)


@contextmanager
def prepared(scratch: Path) -> Iterator[Host]:
    """A host to measure on, with its files under `scratch`. SIGTERM and SIGHUP end it as Ctrl-C does, tidily."""
    before = {number: signal.signal(number, _leave) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        with _prepared(scratch) as host:
            yield host
    finally:
        for name in RECORDS:
            (scratch / name).unlink(missing_ok=True)
        for number, handler in before.items():
            signal.signal(number, handler)


def _leave(number: int, _: object) -> None:
    sys.exit(128 + number)


@contextmanager
def _prepared(scratch: Path) -> Iterator[Host]:
    scratch.mkdir(parents=True, exist_ok=True)
    folder = scratch / "disk"
    folder.mkdir(exist_ok=True)
    if os.geteuid() != 0:
        yield Host(folder, "127.0.0.1", None)
        return
    if ctypes.CDLL(None, use_errno=True).unshare(_CLONE_NEWNS | _CLONE_NEWNET):
        raise SettingError(f"no network and mounts of its own: {os.strerror(ctypes.get_errno())}; run without root")
    _run("mount", "--make-rprivate", "/")
    image = scratch / "disk.img"
    with image.open("wb") as opened:
        opened.truncate(IMAGE_BYTES)
    # Nothing may be left for the kernel to write on its own later.
    _run("mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0", str(image))
    with ExitStack() as stack:
        stack.callback(image.unlink)
        stack.callback(lambda: _run("umount", "--lazy", str(folder)) if os.path.ismount(folder) else None)
        stack.callback(_limit, folder, 0)
        _mount(image, folder)
        device = _open_device()
        command = [sys.executable, "-m", "lab.measure.host", str(device)]
        mirror = stack.enter_context(subprocess.Popen(command, pass_fds=[device], stdin=subprocess.PIPE))
        stack.callback(mirror.kill)
        os.close(device)
        yield Host(folder, PEER, image, _limit(folder, DISK_BPS))


def _sectors_written(device: int) -> int:
    statistics = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}/stat").read_text(encoding="ascii")
    return int(statistics.split()[6])


def _mount(image: Path, folder: Path) -> None:
    device = subprocess.run(
        ["losetup", "--find", "--show", "--direct-io=on", str(image)], check=True, capture_output=True, text=True
    ).stdout.strip()
    _run("mount", "-o", "noatime", device, str(folder))
    # Detached now, the loop device goes when the file system is unmounted.
    _run("losetup", "--detach", device)
    _limit(folder, DISK_BPS)


def _limit(folder: Path, rate_bps: int) -> bool:
    """Limit a file system's device (0: not any more); whether this kernel's control groups can (version 1)."""
    device = folder.stat().st_dev
    for name in ("read", "write"):
        control = _THROTTLE / f"blkio.throttle.{name}_bps_device"
        if not control.is_file():
            return False
        control.write_text(f"{os.major(device)}:{os.minor(device)} {rate_bps}", encoding="ascii")
    return True


def _open_device() -> int:
    device = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(device, _TUNSETIFF, struct.pack("16sH22x", b"measure0", _IFF_TUN | _IFF_NO_PI))
    _run("ip", "link", "set", "lo", "up")
    _run("ip", "address", "add", f"{HERE}/24", "dev", "measure0")
    _run("ip", "link", "set", "measure0", "mtu", "9000", "up")
    os.set_inheritable(device, True)
    return device


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SettingError(f"{' '.join(command)}: {done.stderr.strip()}")


def mirror(device: int) -> None:
    """Send every IPv4 packet back after ONE_WAY_S with its two addresses swapped, which keeps its checksums valid.

    Ends with the process that holds the other end of the standard input, however that one ended.
    """
    waiting: list[tuple[float, int, bytes]] = []
    number = 0
    os.set_blocking(device, False)
    while True:
        left = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
        ready = select.select([device, sys.stdin], [], [], left)[0]
        if sys.stdin in ready:
            return
        if device in ready:
            packet = os.read(device, _MAX_PACKET_BYTES)
            if packet[0] >> 4 == 4:
                turned = packet[:12] + packet[16:20] + packet[12:16] + packet[20:]
                heapq.heappush(waiting, (time.monotonic() + ONE_WAY_S, number, turned))
                number += 1
        while waiting and waiting[0][0] <= time.monotonic():
            os.write(device, heapq.heappop(waiting)[2])


if __name__ == "__main__":
    mirror(int(sys.argv[1]))
