"""The work of CUDA kernels that PyTorch launches: floating-point operations, and bytes through the device's memory.

Profilers record the shapes of an operator's inputs (`record_shapes=True`).  From these and the kernel's name follows
what the kernel reads and writes; each tensor counts once a pass, as if no cache kept it.  Without shapes, the grid of a
generic kernel shows how many elements it works on.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from crystalperf.indexes.regex import regex
from crystalperf.query.frameworks.ml.training.devices import GPU, Unit, roofline_bound
from crystalperf.query.frameworks.ml.training.roofline import Work

_SIZES = {
    "float": 4, "double": 8, "c10::Half": 2, "c10::BFloat16": 2, "int": 4, "long": 8, "long int": 8, "short": 2,
    "unsigned char": 1, "signed char": 1, "bool": 1, "c10::complex<float>": 8, "c10::complex<double>": 16,
    "c10::Float8_e4m3fn": 1, "c10::Float8_e5m2": 1, "unsigned short": 2, "unsigned int": 4, "unsigned long": 8,
}  # fmt: skip

_MOST = 1 << 50
"""Maximum elements of a tensor: more is a damaged number."""

CHUNK = 65536
"""Elements of a block of multi_tensor_apply_kernel (ATen/native/cuda/MultiTensorApply.cuh)."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """An input of an operator: its shape, bytes of an element, and how many of its elements are in memory."""

    shape: tuple[int, ...]
    size: int
    kind: str
    distinct: int

    @property
    def count(self) -> int:
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        """Bytes that reading it once moves: an expanded tensor has fewer elements in memory than its shape says."""
        return self.distinct * self.size


@dataclass(frozen=True, slots=True)
class Launch:
    """The operator that launched a kernel: its inputs, and its arguments as text where they were recorded."""

    operator: str
    tensors: tuple[Tensor, ...]
    lists: tuple[tuple[Tensor, ...], ...] = ()
    arguments: tuple[str, ...] = ()


def launch(operator: str, dims: Any, types: Any, strides: Any, arguments: Any) -> Launch | None:
    """An operator's inputs as recorded; None if shapes were not."""
    if not isinstance(dims, list) or not isinstance(types, list):
        return None
    strides = strides if isinstance(strides, list) else []
    tensors: list[Tensor] = []
    lists: list[tuple[Tensor, ...]] = []
    for number, (shape, kind) in enumerate(zip(dims, types, strict=False)):
        stride = strides[number] if number < len(strides) else None
        if kind == "TensorList" and isinstance(shape, list):
            of_list = [_tensor(each, "float", None) for each in shape if isinstance(each, list)]
            lists.append(tuple(each for each in of_list if each is not None))
        elif (found := _tensor(shape, kind, stride)) is not None:
            tensors.append(found)
    if not tensors and not any(lists):
        return None
    texts = tuple(str(each) for each in arguments) if isinstance(arguments, list) else ()
    return Launch(operator, tuple(tensors), tuple(lists), texts)


def _tensor(shape: Any, kind: Any, stride: Any) -> Tensor | None:
    size = _SIZES.get(str(kind))
    if size is None or not isinstance(shape, list) or not shape:
        return None
    if not all(isinstance(one, int) and one >= 0 for one in shape) or math.prod(shape) > _MOST:
        return None
    expanded = isinstance(stride, list) and len(stride) == len(shape)
    distinct = math.prod(length for number, length in enumerate(shape) if not (expanded and stride[number] == 0))
    return Tensor(tuple(shape), size, str(kind), distinct)


def work(kernel: str, blocks: int, by: Launch | None) -> Work:
    """The work of a kernel with a grid of that many blocks; `by` is what launched it, if shapes were recorded."""
    operator = "" if by is None else by.operator.removeprefix("aten::")
    if roofline_bound(kernel) == GPU.name:
        return _product(kernel, operator, by)
    if "multi_tensor_apply_kernel" in kernel:
        return _multi_tensor(kernel, blocks, by)
    if "index_elementwise_kernel" in kernel:  # reads rows by index, and writes as much
        return Work(bytes=2.0 * blocks * 512 * (by.tensors[0].size if by and by.tensors else 4), known_by="grid")
    if "elementwise_kernel" in kernel and "scatter_gather" not in kernel:
        return _elementwise(kernel, blocks, operator, by)
    if by is None or (not by.tensors and not by.lists):
        return Work()
    passes = _passes(kernel, operator, blocks, by)
    if passes is None:
        return Work()
    return passes if isinstance(passes, Work) else Work(bytes=passes, known_by="shapes")


# ---- products

_MATMUL = regex(r"(?:_scaled_|_int_)?(?:mm|bmm)$|addmm|baddbmm|addbmm|linear$|matmul$|addmv$|mv$|dot$")


def _product(kernel: str, operator: str, by: Launch | None) -> Work:
    unit = unit_of(kernel, by)
    if by is None:
        return Work(unit=unit)
    tensors = by.tensors
    flops: float | None = None
    moved: float | None = None
    if "convolution_backward" in operator and len(tensors) >= 3:
        gradient, _, weight = tensors[:3]  # of the inputs or of the weights, each a product as large as the forward one
        flops = 2.0 * gradient.count * math.prod(weight.shape[1:])
        moved = float(sum(each.bytes for each in tensors[:3]))
    elif "conv" in operator and len(tensors) >= 2:
        output = _convolved(operator, by)
        flops = 2.0 * output * math.prod(tensors[1].shape[1:])
        moved = tensors[0].bytes + tensors[1].bytes + output * tensors[0].size
    elif "attention" in operator and len(tensors) >= 3:
        flops, moved = _attention(operator, by)
    elif _MATMUL.search(operator):
        flops, moved = _matmul(operator, by)
    if flops is None:
        return Work(unit=unit)
    return Work(flops, unit, moved, known_by="shapes")


def _matmul(operator: str, by: Launch) -> tuple[float | None, float | None]:
    factors = [each for each in by.tensors if len(each.shape) >= 1]
    if "add" in operator and len(factors) >= 3:
        factors = factors[1:]
    if len(factors) < 2:
        return None, None
    left, right = factors[:2]
    inner = left.shape[-1]
    if inner == 0:
        return None, None
    if operator.endswith("linear"):
        columns = right.shape[0] if len(right.shape) > 1 else 1
    else:
        columns = right.shape[-1] if len(right.shape) > 1 else 1
    output = left.count // inner * columns
    return 2.0 * output * inner, left.bytes + right.bytes + output * max(left.size, right.size)


def _attention(operator: str, by: Launch) -> tuple[float | None, float | None]:
    """Two products of queries, keys and values; five on the way back.  Queries have four dimensions; the sequence is
    the second in kernels of PyTorch, the third in cuDNN's."""
    backward = "backward" in operator
    inputs = [each for each in by.tensors if len(each.shape) == 4]
    query, keys = (inputs[1:3] if backward and len(inputs) > 3 else inputs[:2]) if len(inputs) > 2 else (None, None)
    if query is None or keys is None:
        return None, None
    length = keys.shape[2 if "cudnn" in operator or "scaled_dot" in operator else 1]
    flops = 4.0 * query.count * length * (2.5 if backward else 1.0)
    if _is_causal(operator, by.arguments):
        flops /= 2  # half of the products fall away
    return flops, float(sum(each.bytes for each in inputs) + (3 if backward else 1) * query.bytes)


def _is_causal(operator: str, arguments: Sequence[str]) -> bool:
    """By the arguments' places in the operators' schemas: cuDNN's forward has another truth value before it, and the
    memory-efficient kernel a number for the kind of mask, after the probability of dropout."""
    if "efficient" in operator:
        after = next((number for number, each in enumerate(arguments) if re.fullmatch(r"\d*\.\d*", each)), None)
        return after is not None and arguments[after + 1 : after + 2] in (("1",), ("2",), ["1"], ["2"])
    truths = [each == "True" for each in arguments if each in ("True", "False")]
    place = 1 if "cudnn" in operator and "backward" not in operator else 0
    return len(truths) > place and truths[place]


def _convolved(operator: str, by: Launch) -> int:
    """The number of elements that a convolution writes."""
    source, weight = by.tensors[:2]
    spatial, kernel = source.shape[2:], weight.shape[2:]
    lists = [numbers for each in by.arguments if (numbers := _numbers(each)) and len(numbers) in (1, len(spatial))]
    if len(lists) < 2:
        return source.shape[0] * weight.shape[0] * math.prod(spatial)
    padding, stride = lists[:2] if operator.startswith(("cudnn", "miopen", "mkldnn")) else (lists[1], lists[0])
    dilation = lists[2] if len(lists) > 2 else [1]

    def at(values: Sequence[int], number: int) -> int:
        return values[number] if number < len(values) else values[0]

    output = 1
    for number, (length, width) in enumerate(zip(spatial, kernel, strict=False)):
        reach = at(dilation, number) * (width - 1) + 1
        output *= max((length + 2 * at(padding, number) - reach) // max(at(stride, number), 1) + 1, 1)
    return source.shape[0] * weight.shape[0] * output


def _numbers(text: str) -> list[int]:
    """The numbers of `[1, 1]`; none for any other text, or a number too long for a size."""
    if not (text.startswith("[") and text.endswith("]")):
        return []
    parts = [each.strip() for each in text[1:-1].split(",")]
    return [int(each) for each in parts] if all(re.fullmatch(r"-?[0-9]{1,9}", each) for each in parts) else []


_FP32 = regex(
    r"sgemm|simt|ffma|f32f32_f32f32|_f32_aligned|scudnn|s_ker|gemm_fp32|gemmSN|gemmk1|gemv2|gemvNSP|volta_s",
    re.IGNORECASE,
)
_TF32 = regex(r"tf32|s1688", re.IGNORECASE)
_16BIT = regex(r"16816|bf16|fp16|f16|h884|hmma|half|bfloat|h1688|_h_bz|_v_bz|_hsh_|_hss_|_bss_|_tst_", re.IGNORECASE)
_FP8 = regex(r"e4m3|e5m2|fp8|qmma", re.I)
_FP64 = regex(r"dgemm|f64|d884|double", re.I)


def unit_of(kernel: str, by: Launch | None) -> Unit:
    """The units that a product runs on, by its kernel's name, or by the numbers that it multiplies."""
    named: tuple[tuple[re.Pattern[str], Unit], ...] = (
        (_FP8, "fp8"), (_TF32, "tf32"), (_FP32, "fp32"), (_FP64, "fp64"), (_16BIT, "16-bit"),
    )  # fmt: skip
    kinds = {each.kind for each in by.tensors} if by is not None else set()
    if kinds & {"c10::Half", "c10::BFloat16"}:
        return "16-bit"
    for pattern, unit in named:
        if pattern.search(kernel):
            return unit
    return "fp32" if kinds & {"float"} else "16-bit"


# ---- kernels that move bytes

VECTORIZED = "vectorized_elementwise_kernel"
_ARRAYS = regex(r"std::array<char\*, (\d+)")
_FUNCTOR = regex(r"Functor<(?P<kind>[\w:]+)(?:, (?P<numbers>\d+(?:, \d+)*))?")
_DEPTH = regex(r"TensorList(?:ScalarList)?Metadata<(?:\w+, )?(\d+)>|FusedOptimizerTensorListMetadata<(\d+)>")
_KIND = regex(r"\b(c10::BFloat16|c10::Half|BFloat16|Half|float|double|long|int|bool|unsigned char)\b")


@cache
def _element_bytes(kernel: str) -> int:
    found = _KIND.search(kernel.partition("(int")[0])
    name = found[1] if found else "float"
    return _SIZES.get(name, _SIZES.get(f"c10::{name}", 4))


def _multi_tensor(kernel: str, blocks: int, by: Launch | None) -> Work:
    """A kernel over lists of tensors, a chunk of one list's tensor a block."""
    depth = _DEPTH.search(kernel)
    lists = int(depth[1] or depth[2]) if depth else 2
    functor = _FUNCTOR.search(kernel)
    numbers = [int(each) for each in functor["numbers"].split(", ")] if functor and functor["numbers"] else []
    if re.search(r"Adam|Sgd|SGD|Adagrad", kernel):
        accesses = 2 * lists - 1  # reads all lists, writes all but the gradients
    elif "LpNorm" in kernel or "Max" in kernel:
        accesses = 1
    else:
        accesses = (numbers[1] if len(numbers) > 1 else lists) + 1
    elements = float(blocks * CHUNK)
    by_shapes = by is not None and bool(by.lists and by.lists[0])
    if by is not None and by_shapes:
        counts = [each.count for each in by.lists[0]]
        elements *= sum(counts) / max(sum(math.ceil(each / CHUNK) * CHUNK for each in counts), 1)
    return Work(bytes=elements * accesses * _element_bytes(kernel), known_by="shapes" if by_shapes else "grid")


_COMPARES = regex(r"(?:eq|ne|lt|le|gt|ge|isnan|isinf|logical_\w+)_?$")
_ONLY_WRITES = frozenset(["fill_", "zero_", "ones", "zeros", "full", "arange", "normal_", "uniform_", "bernoulli_"])


def _elementwise(kernel: str, blocks: int, operator: str, by: Launch | None) -> Work:
    of_grid = _by_grid(kernel, blocks)
    if by is None or not by.tensors:
        return of_grid
    shape = _broadcast(by.tensors)
    # Within a larger operator, a norm say, its tensors need not fit each other.
    elements = max(each.count for each in by.tensors) if shape is None else math.prod(shape)
    first = by.tensors[0]
    if operator in _ONLY_WRITES:
        moved = first.bytes
    elif operator == "copy_":
        moved = sum(each.bytes for each in by.tensors[:2])
    else:
        size = 1 if _COMPARES.match(operator) else max(each.size for each in by.tensors)
        moved = sum(each.bytes for each in by.tensors) + elements * (first.size if operator.endswith("_") else size)
    if of_grid.bytes is not None and moved > 3 * of_grid.bytes:
        return of_grid  # a small part of a larger operator
    return Work(bytes=float(moved), known_by="shapes")


def _by_grid(kernel: str, blocks: int) -> Work:
    """Elements of an elementwise kernel by its grid.  A block of a vectorized kernel works on 8 elements a thread from
    PyTorch 2.7 on, before on 4; others name theirs."""
    arrays = _ARRAYS.search(kernel)
    named = re.search(r"(?<!\w)elementwise_kernel<(\d+), (\d+)", kernel)
    a_block = int(named[1]) * int(named[2]) if named else 512 if "unrolled" in kernel else 1024
    if arrays is None and named is None:
        return Work()
    count = int(arrays[1]) if arrays else 3 if "Binary" in kernel else 2
    return Work(bytes=float(blocks * a_block * count * _element_bytes(kernel)), known_by="grid")


def _broadcast(tensors: Sequence[Tensor]) -> tuple[int, ...] | None:
    rank = max(len(each.shape) for each in tensors)
    found = [1] * rank
    for each in tensors:
        for place, length in zip(range(-1, -len(each.shape) - 1, -1), reversed(each.shape), strict=True):
            if length != 1:
                if found[place] not in (1, length):
                    return None
                found[place] = length
    return tuple(found)


_INDEXED = regex(r"index|gather|scatter|take|masked|nonzero|sort|topk|_?unique|argsort|cumsum|put_|bincount")


def _passes(kernel: str, operator: str, blocks: int, by: Launch) -> Work | float | None:
    """Bytes of any other kernel: how often it reads and writes the tensors of its operator."""
    largest = max((*by.tensors, *(one for each in by.lists for one in each)), key=lambda each: each.bytes)
    if re.search(r"nchwToNhwc|nhwcToNchw|AddPadding", kernel):  # a block turns 32 x 32 elements around
        elements = min(blocks * 1024, largest.count)
        return 2.0 * elements * largest.size
    if "conv" in operator or "splitk" in kernel.lower():
        return None  # helpers of products: sums of partial results, workspaces
    if "norm" in operator:
        return _norm(kernel, largest)
    if "softmax" in operator:
        return _softmax(kernel, operator, by)
    if "embedding" in operator:
        return _embedding(kernel, operator, by)
    if _INDEXED.match(operator):
        return _indexed(operator, by)
    return float(_plain(kernel, operator, by, largest))


def _plain(kernel: str, operator: str, by: Launch, largest: Tensor) -> float:
    """Bytes of a kernel that reads its operator's inputs once, and writes as much as the largest of them."""
    if "reduce_kernel" in kernel:
        return largest.bytes
    if operator == "cat":
        return 2 * sum(one.bytes for each in by.lists for one in each)
    if operator in ("copy_", "clone", "contiguous"):
        return sum(each.bytes for each in by.tensors[:2])
    if kernel.startswith("triton"):  # its arguments are what it reads and what it writes
        return sum(each.bytes for each in by.tensors)
    if operator.startswith("upsample"):
        return _resized(operator, by, largest)
    if "attention" in operator:
        return 2 * largest.bytes
    if "dropout" in operator:
        return 2 * largest.bytes + largest.count
    return sum(each.bytes for each in by.tensors) + largest.bytes


def _resized(operator: str, by: Launch, largest: Tensor) -> int:
    """Images of another size: what is read, and what is written, by the sizes among the arguments."""
    spatial = len(largest.shape) - 2
    size = next((found for each in by.arguments if len(found := _numbers(each)) == spatial > 0), None)
    if "backward" in operator or size is None:
        return largest.bytes + largest.bytes // 4
    return largest.bytes + math.prod((*largest.shape[:2], *size)) * largest.size


def _norm(kernel: str, largest: Tensor) -> Work:
    """Norms over rows (layer norm) or channels (batch norm); most read their input twice: statistics, then values."""
    one = float(largest.bytes)
    row = float(largest.shape[-1] * largest.size)
    channels = largest.shape[1] if len(largest.shape) > 1 else 1

    def passes(count: float, again: float = 0.0, row_bytes: float = 0.0) -> Work:
        return Work(bytes=count * one, again=again * one, row_bytes=row_bytes, known_by="shapes")

    if "singleread" in kernel:
        return passes(3 if "_bw_" in kernel else 2)
    if "bn_bw_" in kernel:
        return passes(3, 2, one / max(channels, 1))
    if "bn_fw_" in kernel:
        return passes(2, 1, one / max(channels, 1))
    if re.search(r"GammaBeta|backward_reduce|backward_internal|ComputeInternalGradients|_gamma_beta", kernel):
        return passes(2)
    if re.search(r"collect_statistics|RowwiseMoments|reduce_kernel", kernel):
        return passes(1)
    if re.search(r"backward|grad", kernel, re.IGNORECASE):
        return passes(3, 2 if "grad_input" in kernel else 0, 2 * row)
    return passes(2, 1 if "layer_norm" in kernel or "rms" in kernel.lower() else 0, row)


def _softmax(kernel: str, operator: str, by: Launch) -> Work:
    """One pass over rows that fit in registers or shared memory, else three to read and one to write."""
    largest = max(by.tensors, key=lambda each: each.bytes)
    one, row = float(largest.bytes), float(largest.shape[-1] * largest.size)
    backward = "ackward" in operator
    if re.search(r"Reg\b|Smem|warp_softmax|_warp_", kernel):
        return Work(bytes=(3 if backward else 2) * one, known_by="shapes")
    return Work(
        bytes=(3 if backward else 2) * one, again=(1 if backward else 2) * one, row_bytes=row, known_by="shapes"
    )


_INDEXES = ("long int", "long", "int")


def _embedding(kernel: str, operator: str, by: Launch) -> float | None:
    """Rows of a table by index; kernels that sort the indexes, or count them, pass over these alone."""
    indexes = max((each for each in by.tensors if each.kind in _INDEXES), key=lambda each: each.count, default=None)
    values = next((each for each in by.tensors if each.kind not in _INDEXES), None)
    if indexes is None or values is None:
        return None
    row = float(values.shape[-1] * values.size)
    if re.search(r"radix|sort|scan|unique|segment|krn_|partial", kernel, re.IGNORECASE) and "sum" not in kernel:
        return 4.0 * indexes.bytes
    if operator == "_embedding_bag":  # it writes a row for each offset
        return row * (indexes.count + (by.tensors[2].count if len(by.tensors) > 2 else 0)) + indexes.bytes
    return 2 * row * indexes.count + indexes.bytes


def _indexed(operator: str, by: Launch) -> float:
    """Elements by index (gather, scatter), or rows by index: each is written once, and read once from a tensor that
    may have fewer."""
    indexes = [each for each in by.tensors[1:] if each.kind in _INDEXES]
    source = by.tensors[0]
    if not indexes:
        return 2.0 * source.bytes
    largest = max(indexes, key=lambda each: each.count)
    by_element = re.match(r"gather|scatter|take", operator) is not None
    selected = largest.count * (1 if by_element else math.prod(source.shape[1:]))
    return float((selected + min(selected, source.count)) * source.size + largest.bytes)
