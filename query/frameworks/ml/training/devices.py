"""Accelerators: their resources, the resource that bounds a kernel by its name, and a table of peak rates.

A kernel's time is on the device's arithmetic, on its memory's bandwidth, or on neither, which is latency (roofline.py).
Another device changes each part by the ratio of its own rate.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from functools import cache
from typing import Literal, get_args

from crystalperf.indexes.errors import SettingError
from crystalperf.indexes.frozen import frozen
from crystalperf.indexes.regex import regex
from crystalperf.indexes.resources import Resource
from crystalperf.query.execution.scenario import Setting

GPU = Resource("gpu", "GPU", "device.arithmetic", "speed")
HBM = Resource("gpumem", "GPU memory", "device.gpumem", "speed")
LATENCY = Resource("gpulat", "GPU latency", "device.latency", "speed")
"""Time of kernels that neither arithmetic nor bandwidth explains: few blocks, indexes, atomic additions, starting."""

PCIE = Resource("pcie", "host-device link", "device.link", "bytes per second", shared_by="worker", rate_bps=12e9)
"""PCIe 3.0 with 16 lanes has 12 GB/s of its 15.75 in practice; only traces without bytes need it."""

_ARITHMETIC = regex(
    r"gemm|gemv|matmul|conv(?!ert)|winograd|implicit|cutlass|cublas|xmma|wgmma|mma_|flash|fmha|attention|attn|cudnn.*(fprop|dgrad|wgrad)"
    r"|_mm_|::mm|addmm|bmm|einsum|nvjet|cijk|dot_kernel|lstm|rnn",
    re.IGNORECASE,
)
_MOVES = regex(
    r"im2col|col2im|transpose|nchwtonhwc|nhwctonchw|splitkreduce|reduce|elementwise|copy|init_device_workspace|addpadding",
    re.IGNORECASE,
)
_TRITON = regex(r"triton_(?P<kind>[a-z]{3})_fused_")
_OWN = regex(r"(?:\w+(?:::|\s+)|\(anonymous namespace\)::)*(?P<name>\w+)")
_WRAPPER = regex(r"(?:Kernel2?|device_kernel|enable_\w+)<")


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


Unit = Literal["16-bit", "tf32", "fp32", "fp64", "fp8"]
"""The numbers of a product, in the terms of data sheets: bfloat16 or float16, TF32, float32 without it."""

UNITS: tuple[Unit, ...] = get_args(Unit)


@frozen
class Model:
    """Peak rates of a device: 10¹² operations a second and 10⁹ bytes a second from its memory.

    All rates are of dense numbers; NVIDIA's data sheets print twice as much, "with sparsity", from Ampere on.  `tflops`
    are matrix products in 16-bit numbers (bfloat16 if it has it) with 32-bit sums; `tf32` the same in TF32 (XF32) and
    `fp8` in 8-bit numbers, None if it has none; `fp32` float32 without TF32.  `memory_gb` is the largest version's.
    `units` are its streaming multiprocessors or compute units, `ghz` their highest clock outside of tensor cores, which
    the maker's peak of float32 counts with.  None is not published.

    `source` is the maker's publication, its year, and `checked` the day on which the figures were compared with copies
    of it or with tables that cite it.
    """

    tflops: float
    memory_gbps: float
    tf32: float | None = None
    fp32: float | None = None
    memory_gb: float | None = None
    l2_mb: float | None = None
    units: int | None = None
    ghz: float | None = None
    source: str = ""
    fp8: float | None = None
    checked: str = "2026-11-27"

    def peak_flops(self, unit: Unit) -> float | None:
        """Operations a second of products of one kind; a device without TF32 uses float32."""
        found = {"16-bit": self.tflops, "tf32": self.tf32 or self.fp32, "fp32": self.fp32, "fp8": self.fp8}
        rate = found.get(unit)
        return None if rate is None else rate * 1e12

    def peaks(self) -> dict[str, str]:
        """Properties of a run, `peak_16-bit` and so on: operations and bytes a second, of the view device_operators."""
        found = {unit: self.peak_flops(unit) for unit in UNITS} | {"memory": self.memory_gbps * 1e9}
        return {f"peak_{name}": f"{rate:.6g}" for name, rate in found.items() if rate is not None}

    @property
    def instructions(self) -> float | None:
        """Its multiprocessors' clocks together, GHz: how fast it does what is neither arithmetic nor bandwidth."""
        return None if self.units is None or self.ghz is None else self.units * self.ghz


MODELS: dict[str, Model] = {
    # SXM or OAM form unless the name says otherwise.
    "P100": Model(21.2, 732, None, 10.6, 16, 4, 56, 1.48, "NVIDIA Tesla P100 white paper, 2016"),
    "P100-PCIE": Model(18.7, 732, None, 9.3, 16, 4, 56, 1.303, "NVIDIA Tesla P100 PCIe data sheet, 2016"),
    "V100": Model(125, 900, None, 15.7, 32, 6, 80, 1.53, "NVIDIA V100 data sheet, 2020"),
    "V100-PCIE": Model(112, 900, None, 14, 32, 6, 80, 1.38, "NVIDIA V100 data sheet, 2020"),
    "V100S-PCIE": Model(130, 1134, None, 16.4, 32, 6, 80, 1.597, "NVIDIA V100 data sheet, 2020"),
    "T4": Model(65, 320, None, 8.1, 16, 4, 40, 1.59, "NVIDIA T4 data sheet, 2019"),
    "A10": Model(125, 600, 62.5, 31.2, 24, 6, 72, 1.695, "NVIDIA A10 data sheet, 2021"),
    "A100": Model(312, 1555, 156, 19.5, 40, 40, 108, 1.41, "NVIDIA A100 data sheet, 2020"),
    "A100-80GB": Model(312, 2039, 156, 19.5, 80, 40, 108, 1.41, "NVIDIA A100 80 GB data sheet, 2021"),
    "A100-80GB-PCIE": Model(312, 1935, 156, 19.5, 80, 40, 108, 1.41, "NVIDIA A100 80 GB data sheet, 2021"),
    "L4": Model(121, 300, 60, 30.3, 24, 48, 58, 2.04, "NVIDIA L4 data sheet, 2023", 242),
    "L40S": Model(362, 864, 183, 91.6, 48, 96, 142, 2.52, "NVIDIA L40S data sheet, 2023", 733),
    "RTX4090": Model(165.2, 1008, 82.6, 82.6, 24, 72, 128, 2.52, "NVIDIA Ada white paper 2.01, 2023", 330.3),
    "H100": Model(989.4, 3350, 494.7, 66.9, 80, 50, 132, 1.98, "NVIDIA Hopper white paper 1.04, 2023", 1978.9),
    "H100-PCIE": Model(756, 2000, 378, 51.2, 80, 50, 114, 1.755, "NVIDIA H100 data sheet, 2022", 1513),
    "H200": Model(989.4, 4800, 494.7, 66.9, 141, 50, 132, 1.98, "NVIDIA H200 data sheet, 2024", 1978.9),
    "B200": Model(
        2250, 7700, 1125, 75, 180, 126.5, 148, 1.965, "NVIDIA Blackwell data sheet, HGX B200, 2026", 4500, "2026-11-28"
    ),
    # One of its two dies, which PyTorch sees as two devices.
    "MI250": Model(181, 1638, None, 45.3, 64, 8, 104, 1.7, "AMD Instinct MI250 data sheet, halved, 2021"),
    "MI250X": Model(191.5, 1638, None, 47.9, 64, 8, 110, 1.7, "AMD Instinct MI250X data sheet, halved, 2021"),
    "MI300X": Model(1307.4, 5300, 653.7, 163.4, 192, 32, 304, 2.1, "AMD Instinct MI300X data sheet, 2023", 2614.9),
    "TPUv4": Model(275, 1200, memory_gb=32, source="Google Cloud, TPU v4, 2025"),
    "TPUv5e": Model(197, 819, memory_gb=16, source="Google Cloud, TPU v5e, 2025"),
    "TPUv5p": Model(459, 2765, memory_gb=95, source="Google Cloud, TPU v5p, 2025"),
    "TPUv6e": Model(918, 1638, memory_gb=32, source="Google Cloud, TPU v6e, 2025"),
}

_NAMES = (
    (r"A100.*PCI.*80|A100 80GB PCI", "A100-80GB-PCIE"), (r"A100.*80", "A100-80GB"), (r"A100.*64", ""),
    (r"A100", "A100"), (r"GH200|H[12]00 NVL", ""), (r"H100 PCI", "H100-PCIE"), (r"H100", "H100"), (r"H200", "H200"),
    (r"\bB200", "B200"), (r"V100S", "V100S-PCIE"), (r"V100.*PCI", "V100-PCIE"), (r"V100", "V100"),
    (r"P100.*PCI", "P100-PCIE"), (r"P100", "P100"), (r"\bT4\b", "T4"), (r"\bL40S", "L40S"), (r"\bL4\b", "L4"),
    (r"\bA10\b", "A10"), (r"4090\b(?! (?:D|Laptop))", "RTX4090"), (r"MI250X", "MI250X"), (r"MI250", "MI250"),
    (r"MI300X", "MI300X"), (r"TPU ?v4", "TPUv4"), (r"TPU ?v5(?:e| lite)", "TPUv5e"), (r"TPU ?v5", "TPUv5p"),
    (r"TPU ?v6", "TPUv6e"),
)  # fmt: skip


@cache
def model_of(device: str | None) -> str | None:
    """The table's name of a device as a trace names it: `NVIDIA H100 80GB HBM3`.  None if it is not in the table."""
    if device is None:
        return None
    found = next((name for pattern, name in _NAMES if re.search(pattern, device, re.IGNORECASE)), "")
    return found or None


WORDS = ("device", "device.gpu")
"""Settings that mean several: see expanded."""

HOST, PRECISION = "device.host", "precision"

SETTINGS: Mapping[str, Setting] = {
    HOST: Setting("choice", "CPUs of the accelerator's host, `other` for another machine's", ("other",)),
    PRECISION: Setting("choice", "numbers of products in float32 and TF32, at best", ("bf16", "fp16")),
}
"""Settings of runs with an accelerator."""

_SPEED = regex(r"(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?[xX]")
MIX = "arithmetic_ms"
"""A run's property: time of its products by unit, `16-bit:12.5 tf32:3`, ms."""

FULL = "full_latency"
"""A run's property: the share of its kernels' latency whose grids fill the device."""

GROWING = "growing_"
"""Before the name of a resource, a run's property: the share of its kernels' time on it that grows with the batch."""

WIDE = "float32_memory"
"""A run's property: the share of its kernels' time on memory in which they move float32 that are not parameters."""

MODEL = "accelerator"
"""A run's property: the table's name of its accelerators, if all are of one model."""


@frozen
class Swap:
    """How many times faster another device is, by what bounds a kernel.  `unknown` are rates that are not published,
    which are assumed to be the same."""

    arithmetic: float
    memory: float
    latency: float
    unknown: tuple[str, ...] = ()


def swapped(before: str, after: str, properties: Mapping[str, str] | None = None) -> Swap:
    """The speed-ups from one model to another for a run with these properties.  Raises KeyError for a model that is not
    in the table."""
    old, new = MODELS[before], MODELS[after]
    facts = properties or {}
    unknown: list[str] = []
    mix = _mix(facts.get(MIX, ""))
    whole = faster = 0.0
    for unit, ms in mix.items():
        had, gets = old.peak_flops(unit), new.peak_flops(unit)
        if had is None or gets is None:
            unknown.append(unit)
            had, gets = old.tflops, new.tflops
        whole += ms
        faster += ms * had / gets
    latency = 1.0
    if old.instructions is None or new.instructions is None:
        unknown.append("latency")
    else:
        full = float(facts.get(FULL, "0") or 0)
        latency = 1 / (full * old.instructions / new.instructions + 1 - full)
    return Swap(whole / faster, new.memory_gbps / old.memory_gbps, latency, tuple(dict.fromkeys(unknown)))


def arithmetic(mix: str) -> Unit | None:
    """The unit of most of a run's products, by its property MIX; None if it has none."""
    return max(_mix(mix).items(), key=lambda each: each[1])[0] if mix else None


def _mix(text: str) -> dict[Unit, float]:
    times = dict(each.rpartition(":")[::2] for each in text.split())
    found = {unit: float(times[unit]) for unit in UNITS if unit in times}
    return found if sum(found.values()) > 0 else {"16-bit": 1.0}


def expanded(text: str, names: Collection[str], properties: Mapping[str, str]) -> tuple[str, ...]:
    """`device=H100:A100`, `device=A100` and `device.gpu=2x` as settings of a run's resources.

    Another device is on another machine, so its host differs too.  Any other text is unchanged.

    Raises SettingError for a device that is not in the table, and for a speed of `device.gpu` that is not a ratio.
    """
    key, _, value = text.partition("=")
    key, value = key.strip(), value.strip()
    if key not in (*WORDS, PRECISION):
        return (text,)
    if GPU.name not in names:
        raise SettingError(
            f"{text}: the trace has no kernels of an accelerator; profile with ProfilerActivity.CUDA too"
        )
    if key == "device.gpu":
        for each in value.split(","):  # here, because later errors name the resources
            if _SPEED.fullmatch(each.strip()) is None or float(each.strip()[:-1]) == 0:
                raise SettingError(f"{text}: give the speed relative to the recorded run, for example device.gpu=1.5x")
        return tuple(f"{each.setting}={value}" for each in (GPU, HBM, LATENCY))
    if key == PRECISION:
        if value in SETTINGS[PRECISION].choices and properties.get(MODEL, "") not in MODELS:
            raise SettingError(f"{text}: the trace's accelerator is not in the table; known are {', '.join(MODELS)}")
        return (text,)
    before, colon, after = value.partition(":")
    if not colon:
        before, after = properties.get(MODEL, ""), value
    if before not in MODELS or after not in MODELS:
        raise SettingError(
            f"{text}: give the recorded and the new device, for example device=H100:A100; known are {', '.join(MODELS)}"
        )
    found = swapped(before, after, properties)
    ratios = ((GPU, found.arithmetic), (HBM, found.memory), (LATENCY, found.latency))
    return (*_settings(ratios), f"{HOST}=other")


def _settings(ratios: Iterable[tuple[Resource, float]]) -> tuple[str, ...]:
    """Those that change something, at least one."""
    changed = tuple(f"{resource.setting}={ratio:.4g}x" for resource, ratio in ratios if abs(ratio - 1) >= 0.001)
    return changed or (f"{GPU.setting}=1x",)


def narrowed(properties: Mapping[str, str]) -> dict[str, float]:
    """By resource, how many times faster its kernels are with 16-bit numbers instead of float32 and TF32, at best.

    All products run at the peak's ratio, and all float32 that are not parameters take half the bytes.  Raises KeyError
    for a run whose accelerator is not in the table.
    """
    model = MODELS[properties[MODEL]]
    whole = faster = 0.0
    for unit, ms in _mix(properties.get(MIX, "")).items():
        peak = model.peak_flops(unit) if unit in ("fp32", "tf32") else None
        whole += ms
        faster += ms * (1.0 if peak is None else peak / (model.tflops * 1e12))
    wide = float(properties.get(WIDE) or 0)
    return {GPU.name: whole / faster, HBM.name: 1 / (1 - wide / 2)}
