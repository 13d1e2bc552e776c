"""Facts in the names of PyTorch traces: calls of a device's runtime, kernels, collectives, marks and functions."""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import NamedTuple

from crystalperf.indexes.regex import regex
from crystalperf.query.frameworks.ml.training.calls import device_of

MODULE = "nn.Module: "
"""Prefix of the name of a model's module, which is recorded as a Python function."""

UNNAMED = "unknown"
"""PyTorch's name for a function whose file's path or name is not ASCII."""

STEP = regex(r"ProfilerStep#(?P<number>\d+)")
_FRAME = regex(r"(?P<file>.+)\((?P<line>\d{1,9})\): (?P<function>.+)")
_OF_C = regex(r"<built-in (?:function|method) (?P<name>\w+)(?: of (?P<owner>[\w.]+)(?: object at .*)?)?>")
_OWNERS = ("builtins", "posix", "numpy")
"""Modules that are left out of the names of their C functions."""
_LIBRARY = regex(r"(?:^|/)(?:torch|site-packages|dist-packages|lib/python3)/|^<")

FREES = regex(r"(?:cuda|hip)Free$")
INQUIRES = regex(r"(?:DeviceGetAttribute|GetDeviceProperties|GetSymbolAddress)\w*$")
SETS_UP = regex(r"(?:cuda|hip|cu)(?:Init|SetDevice|(?:Device|Func|Stream|Event)?Get|(?:Stream|Event)Create)\w*$")
SYNCHRONIZES = regex(
    rf"(?:cuda|hip|mtia|xpu|cu)\w*Synchronize$|cudaMemcpy$|hipMemcpy$|deviceSynchronize|{FREES.pattern}"
)
LAUNCHES = regex(r"Launch|Memcpy\w*Async|Memset\w*Async")
COLLECTIVE = regex(
    r"nccl(?:Dev|Sym\w*)?Kernel|rccl|nccl:|mscclKernel"
    r"|(?:\b|deep_)ep::(?:inter|intra)node"  # DeepEP
    r"|cross_device_reduce_|allreduce_fusion_kernel"  # vLLM, SGLang, FlashInfer
    r"|(?:one_shot|two_shot|multimem)_all_(?:reduce|gather)|multimem_one_shot",  # PyTorch's symmetric memory
    re.IGNORECASE,
)
_WAITS = regex(
    r"<built-in (?:function|method) (?:(?:sleep|print|acquire|poll|accept|_accept|wait\w*)\b"
    r"|select(?:>| of select\.)|join of _thread\.|get of _queue\.)"  # other types have methods of these names
)
_BETWEEN_TWO = regex(r"SendRecv|gloo:(?:send|recv)")

_NAMES = 1 << 14
"""Names whose facts are kept: a trace has a million events of few names, some of hundreds of letters."""


@lru_cache(maxsize=_NAMES)
def is_collective(name: str) -> bool:
    """Whether a kernel or an operator exchanges data with other processes."""
    return COLLECTIVE.search(name) is not None


@lru_cache(maxsize=_NAMES)
def is_synchronizing(call: str) -> bool:
    """Whether a call of the device's runtime waits for work on the device."""
    return SYNCHRONIZES.search(call) is not None


@lru_cache(maxsize=_NAMES)
def is_informative(function: str) -> bool:
    """Whether a Python function shows where in the program or in the model something ran."""
    if function.startswith(MODULE):
        return True
    found = _FRAME.fullmatch(function)
    return found is not None and not _LIBRARY.search(found["file"])


class Frame(NamedTuple):
    """A Python function as in indexes: the path of its file, its name and its first line."""

    file: str
    name: str
    line: int


@cache
def frame_of(function: str) -> Frame | None:
    """A function's frame; None for a C function and for a module of a model.

    PyTorch removes the folder of installed packages from paths; for its own package this restores it.
    """
    found = _FRAME.fullmatch(function)
    if found is None:
        return None
    file = found["file"]
    return Frame(f"/site-packages/{file}" if file.startswith("torch/") else file, found["function"], int(found["line"]))


def device_of_c(function: str) -> str | None:
    """The resource that a C function uses while it blocks its thread, by its name; None for any other function.

    >>> device_of_c("<built-in method read of _io.BufferedReader object at 0x7f3a>")
    'disk'
    """
    found = _OF_C.fullmatch(function)
    if found is None:
        return None
    owners = (found["owner"],) if found["owner"] else _OWNERS
    devices = (device_of(owner, found["name"]) for owner in owners)
    return next((each for each in devices if each is not None), None)


def is_wait(function: str) -> bool:
    """Whether a Python function waits and computes nothing."""
    return _WAITS.match(function) is not None


@lru_cache(maxsize=_NAMES)
def is_mark(operator: str) -> bool:
    """Whether an operator marks a step or a part of one: PyTorch 1.8 and 1.9 have no other marks."""
    return STEP.fullmatch(operator) is not None or mark_phase(operator) is not None


def mark_phase(mark: str) -> str | None:
    """The part of a step that a mark names."""
    if "DataLoader" in mark or mark.startswith(("enumerate(", "dataloader")):
        return "input"
    return "optimizer" if mark.startswith("Optimizer.") else None


@cache
def kernel_name(text: str) -> str:
    """A kernel's name without namespaces and template arguments; for a generic kernel, with its functor."""
    plain = re.sub(r"\(anonymous namespace\)::", "", text).removeprefix("void ")
    head = plain.partition("<")[0].partition("(")[0]
    name = head.rpartition("::")[2] or plain
    if name.endswith("elementwise_kernel") or name in ("reduce_kernel", "multi_tensor_apply_kernel"):
        functor = re.search(r"(?:::)(\w+(?:Functor|Ops|_functor|Op)\w*|\w+_kernel_cuda|\w+_kernel_impl)", plain)
        return f"{name} {functor[1]}" if functor else name
    return name


def collective_key(name: str, group: str = "") -> str | None:
    """A key of a collective within its process; None for an exchange between two processes, where no other waits."""
    if _BETWEEN_TWO.search(name) and not group.startswith("all"):
        return None
    return f"{name} {group}"
