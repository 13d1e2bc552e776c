"""The number of examples in a batch, from the shapes of operators' inputs (`record_shapes=True`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from crystalperf.query.frameworks.ml.pytorch.kineto import Process

_INPUT = (
    (("aten::conv1d", "aten::conv2d", "aten::conv3d"), 0, 3),
    (("aten::embedding",), 1, 2),
    (("aten::layer_norm", "aten::batch_norm"), 0, 2),
    (("aten::linear",), 0, 2),
)
"""Operators of models, the position of the input whose first dimension is the batch, and its least dimensions; the
first of them that a model has counts."""


def examples(process: Process) -> int | None:
    """The first dimension of most inputs; None without shapes, or for a model without such operators.

    Models that put another dimension first, such as recurrent ones with the words of a sentence, have that instead: the
    number still differs if the batch or the length of its sentences does.
    """
    for names, position, dimensions in _INPUT:
        found: Counter[int] = Counter()
        for thread in process.threads.values():
            for each in thread.operators:
                if each.name in names and each.inputs:
                    found.update(_first(each.inputs[0], position, dimensions))
        if found:
            return max(found, key=lambda size: (found[size], size))
    return None


def _first(shapes: object, position: int, dimensions: int) -> Sequence[int]:
    """The first dimension of an input, if it has enough of them."""
    if not isinstance(shapes, list) or len(shapes) <= position or not isinstance(shapes[position], list):
        return ()
    shape = shapes[position]
    return (shape[0],) if len(shape) >= dimensions and isinstance(shape[0], int) and shape[0] > 0 else ()
