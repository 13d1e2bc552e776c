"""Accelerators: what their time is split by, what their kernels are bound by, and a table of what each can do.

The time of a kernel is on the device's arithmetic or on its memory (Williams et al., Roofline, CACM 2009): matrix
products, convolutions and attention do many operations for each byte, everything else moves bytes.  So a device that is
swapped changes the time of a kernel by the ratio of one or of the other.
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
"""PCIe 3.0 with 16 lanes brings 12 GB/s of its 15.75 in practice; only traces without bytes need it."""

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
def bound_by(kernel: str) -> str:
    """The resource that a kernel's name says it is bound by: gpu (arithmetic) or gpumem.

    What torch.compile fuses has the names of all its operators: only its templates (tem) are products.  What a kernel
    copies is often in its template arguments, so only its own name says that it does nothing else.
    """
    if (fused := _TRITON.search(kernel)) is not None:
        return GPU.name if fused["kind"] == "tem" else HBM.name
    named = kernel.partition(">(")[0]  # without what it is given
    return GPU.name if _ARITHMETIC.search(named) and not _MOVES.search(_own_name(kernel)) else HBM.name


def _own_name(kernel: str) -> str:
    """A kernel's name without namespaces and template arguments; of one that only runs another, the other's."""
    found = _OWN.match(kernel)
    while found is not None and _WRAPPER.match(kernel, found.start("name")) is not None:
        found = _OWN.match(kernel, found.end() + 1)
    return kernel if found is None else found["name"]


@dataclass(frozen=True)
class Model:
    """What a device can do at most: 10¹² operations a second of dense matrix products in 16-bit numbers (bfloat16
    where it has it) with 32-bit sums, without sparsity, and 10⁹ bytes a second from its memory."""

    tflops: float
    memory_gbps: float


MODELS: dict[str, Model] = {
    # Data sheets of the makers, SXM or OAM form unless the name says otherwise.
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
    """How many times as fast arithmetic and memory are.  Raises KeyError for a model that is not in the table."""
    old, new = MODELS[before], MODELS[after]
    return new.tflops / old.tflops, new.memory_gbps / old.memory_gbps


def expanded(text: str) -> tuple[str, ...]:
    """What `device=H100:A100` and `device.gpu=2x` are in settings of resources; any other text as it is.

    Raises SettingError for a device that is not in the table.
    """
    key, _, value = text.partition("=")
    key, value = key.strip(), value.strip()
    if key == "device.gpu":
        return f"{GPU.setting}={value}", f"{HBM.setting}={value}"
    if key != "device":
        return (text,)
    before, colon, after = value.partition(":")
    missing = [each for each in (before, after) if each not in MODELS]
    if not colon or missing:
        raise SettingError(f"{text}: give two of {', '.join(MODELS)}, for example device=H100:A100")
    arithmetic, memory = swapped(before, after)
    return f"{GPU.setting}={arithmetic:.4g}x", f"{HBM.setting}={memory:.4g}x"
