"""Accelerators: their resources, the resource that bounds a kernel, and a table of peak rates.

The time of a kernel is on the device's arithmetic or on its memory (Williams et al., Roofline, CACM 2009): matrix
products, convolutions and attention do many operations per byte, everything else moves bytes.  So another device
changes the time of a kernel by the ratio of the one or of the other.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from crystalperf.indexes.errors import SettingError
from crystalperf.indexes.resources import Resource

GPU = Resource("gpu", "GPU", "device.arithmetic", "speed")
HBM = Resource("gpumem", "GPU memory", "device.memory", "speed")
PCIE = Resource("pcie", "host-device link", "device.link", "bytes per second", shared_by="worker", rate_bps=12e9)
"""PCIe 3.0 with 16 lanes has 12 GB/s of its 15.75 in practice; only traces without bytes need it."""

_ARITHMETIC = re.compile(
    r"gemm|gemv|matmul|conv|winograd|implicit|cutlass|cublas|xmma|wgmma|mma_|flash|fmha|attention|attn|cudnn.*(fprop|dgrad|wgrad)"
    r"|_mm_|::mm|addmm|bmm|einsum|nvjet|cijk|dot_kernel|lstm|rnn",
    re.IGNORECASE,
)
_MOVES = re.compile(
    r"im2col|col2im|transpose|nchwtonhwc|nhwctonchw|splitkreduce|reduce|elementwise|copy", re.IGNORECASE
)
_TRITON = re.compile(r"triton_(?P<kind>[a-z]{3})_fused_")
_OWN = re.compile(r"(?:\w+(?:::|\s+)|\(anonymous namespace\)::)*(?P<name>\w+)")
_WRAPPER = re.compile(r"(?:Kernel2?|device_kernel|enable_\w+)<")


@cache
def roofline_bound(kernel: str) -> str:
    """The resource that bounds a kernel, by its name: gpu (arithmetic) or gpumem.

    Kernels fused by torch.compile have the names of all their operators: only its templates (tem) are products.
    Template arguments often name what a kernel copies, so only its own name shows that it copies and does nothing else.
    """
    if (fused := _TRITON.search(kernel)) is not None:
        return GPU.name if fused["kind"] == "tem" else HBM.name
    named = kernel.partition(">(")[0]  # without its arguments
    return GPU.name if _ARITHMETIC.search(named) and not _MOVES.search(_own_name(kernel)) else HBM.name


def _own_name(kernel: str) -> str:
    """A kernel's name without namespaces and template arguments; for a wrapper, the name of the kernel that it runs."""
    found = _OWN.match(kernel)
    while found is not None and _WRAPPER.match(kernel, found.start("name")) is not None:
        found = _OWN.match(kernel, found.end() + 1)
    return kernel if found is None else found["name"]


_SPEED = re.compile(r"(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?[xX]")


@dataclass(frozen=True)
class Model:
    """Peak rates of a device: 10¹² operations a second of dense matrix products in 16-bit numbers (bfloat16 if it has
    it) with 32-bit sums, without sparsity, and 10⁹ bytes a second from its memory."""

    tflops: float
    memory_gbps: float


MODELS: dict[str, Model] = {
    # From the makers' data sheets, SXM or OAM form unless the name says otherwise.
    "P100": Model(21.2, 732),
    "V100": Model(125, 900),
    "T4": Model(65, 320),
    "A10": Model(125, 600),
    "A100": Model(312, 1555),
    "A100-80GB": Model(312, 2039),
    "L4": Model(121, 300),
    "L40S": Model(362, 864),
    "H100": Model(989, 3350),
    "H100-PCIE": Model(756, 2000),
    "H200": Model(989, 4800),
    "B200": Model(2250, 8000),
    "MI250X": Model(383, 3277),
    "MI300X": Model(1307, 5300),
}


def swapped(before: str, after: str) -> tuple[float, float]:
    """The speed-ups of arithmetic and of memory.  Raises KeyError for a model that is not in the table."""
    old, new = MODELS[before], MODELS[after]
    return new.tflops / old.tflops, new.memory_gbps / old.memory_gbps


def expanded(text: str) -> tuple[str, ...]:
    """`device=H100:A100` and `device.gpu=2x` as settings of resources; any other text unchanged.

    Raises SettingError for a device that is not in the table, and for a speed of `device.gpu` that is not a ratio.
    """
    key, _, value = text.partition("=")
    key, value = key.strip(), value.strip()
    if key == "device.gpu":
        for each in value.split(","):  # here, because later errors name the two resources
            if _SPEED.fullmatch(each.strip()) is None or float(each.strip()[:-1]) == 0:
                raise SettingError(f"{text}: give the speed relative to the recorded run, for example device.gpu=1.5x")
        return f"{GPU.setting}={value}", f"{HBM.setting}={value}"
    if key != "device":
        return (text,)
    before, colon, after = value.partition(":")
    missing = [each for each in (before, after) if each not in MODELS]
    if not colon or missing:
        raise SettingError(
            f"{text}: give the recorded and the new device, for example device=H100:A100; known are {', '.join(MODELS)}"
        )
    arithmetic, memory = swapped(before, after)
    return f"{GPU.setting}={arithmetic:.4g}x", f"{HBM.setting}={memory:.4g}x"
