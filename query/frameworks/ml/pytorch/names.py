"""What names in a trace of PyTorch tell: of calls of a device's runtime, kernels, collectives, marks and functions."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from crystalperf.query.frameworks.ml.training.calls import device_of

MODULE = "nn.Module: "
"""What a module of a model is told with, as a function of Python."""

UNNAMED = "unknown"
"""What PyTorch tells of a function whose file's path or whose name is not in ASCII."""

STEP = re.compile(r"ProfilerStep#(?P<number>\d+)")
_FRAME = re.compile(r"(?P<file>.+)\((?P<line>\d{1,9})\): (?P<function>.+)")
_OF_C = re.compile(r"<built-in (?:function|method) (?P<name>\w+)(?: of (?P<owner>[\w.]+)(?: object at .*)?)?>")
_OWNERS = ("builtins", "posix", "numpy")
"""Modules whose functions of C are told without them."""
_LIBRARY = re.compile(r"(?:^|/)(?:torch|site-packages|dist-packages|lib/python3)/|^<")

FREES = re.compile(r"(?:cuda|hip)Free$")
INQUIRES = re.compile(r"(?:DeviceGetAttribute|GetDeviceProperties|GetSymbolAddress)\w*$")
SETS_UP = re.compile(r"(?:cuda|hip|cu)(?:Init|SetDevice|(?:Device|Func|Stream|Event)?Get|(?:Stream|Event)Create)\w*$")
SYNCHRONIZES = re.compile(
    rf"(?:cuda|hip|mtia|xpu|cu)\w*Synchronize$|cudaMemcpy$|hipMemcpy$|deviceSynchronize|{FREES.pattern}"
)
LAUNCHES = re.compile(r"Launch|Memcpy\w*Async|Memset\w*Async")
COLLECTIVE = re.compile(
    r"nccl(?:Dev|Sym\w*)?Kernel|rccl|nccl:|mscclKernel"
    r"|(?:\b|deep_)ep::(?:inter|intra)node"  # DeepEP
    r"|cross_device_reduce_|allreduce_fusion_kernel"  # vLLM, SGLang, FlashInfer
    r"|(?:one_shot|two_shot|multimem)_all_(?:reduce|gather)|multimem_one_shot",  # PyTorch's symmetric memory
    re.IGNORECASE,
)
_WAITS = re.compile(
    r"<built-in (?:function|method) (?:(?:sleep|print|acquire|poll|accept|_accept|wait\w*)\b"
    r"|select(?:>| of select\.)|join of _thread\.|get of _queue\.)"  # other types have methods of these names
)
_BETWEEN_TWO = re.compile(r"SendRecv|gloo:(?:send|recv)")


def is_telling(function: str) -> bool:
    """Whether a Python function says where in the program or in the model something ran."""
    if function.startswith(MODULE):
        return True
    found = _FRAME.fullmatch(function)
    return found is not None and not _LIBRARY.search(found["file"])


class Frame(NamedTuple):
    """A function of Python as indexes know it: the path of its file, its name and the line that it begins at."""

    file: str
    name: str
    line: int


@cache
def frame_of(function: str) -> Frame | None:
    """A function's frame; None of one that is written in C, and of a module of a model.

    PyTorch cuts off the folder that packages are installed in; of its own package that is put back.
    """
    found = _FRAME.fullmatch(function)
    if found is None:
        return None
    file = found["file"]
    return Frame(f"/site-packages/{file}" if file.startswith("torch/") else file, found["function"], int(found["line"]))


def device_of_c(function: str) -> str | None:
    """The resource that a function of C hands its thread to, by its name; None of any other function.

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
    """Whether a function of Python waits and computes nothing."""
    return _WAITS.match(function) is not None


def is_mark(operator: str) -> bool:
    """Whether what is told as an operator marks a step or a part of one: PyTorch 1.8 and 1.9 tell no other marks."""
    return STEP.fullmatch(operator) is not None or mark_phase(operator) is not None


def mark_phase(mark: str) -> str | None:
    """The part of a step that a mark stands for."""
    if "DataLoader" in mark or mark.startswith(("enumerate(", "dataloader")):
        return "input"
    return "optimizer" if mark.startswith("Optimizer.") else None


@cache
def kernel_name(text: str) -> str:
    """A kernel's name without its namespaces and template arguments; of a generic one its functor as well."""
    plain = re.sub(r"\(anonymous namespace\)::", "", text).removeprefix("void ")
    head = plain.partition("<")[0].partition("(")[0]
    name = head.rpartition("::")[2] or plain
    if name.endswith("elementwise_kernel") or name in ("reduce_kernel", "multi_tensor_apply_kernel"):
        functor = re.search(r"(?:::)(\w+(?:Functor|Ops|_functor|Op)\w*|\w+_kernel_cuda|\w+_kernel_impl)", plain)
        return f"{name} {functor[1]}" if functor else name
    return name


def collective_key(name: str, group: str = "") -> str | None:
    """What tells a collective from others of its process; None of an exchange between two, where nobody else waits."""
    if _BETWEEN_TWO.search(name) and not group.startswith("all"):
        return None
    return f"{name} {group}"
