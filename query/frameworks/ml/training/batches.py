"""Growth of operators with the batch: work on examples grows, work on parameters does not.

Optimizers, gradient accumulation and gradient exchange do the same work for any batch, and so does a CPU that submits
work to an accelerator.  The names of operators show which these are.
"""

from __future__ import annotations

import re

import numpy as np

from crystalperf.indexes.regex import regex
from crystalperf.indexes.resources import CPU, NET
from crystalperf.query.execution.execution import Execution
from crystalperf.query.frameworks import Growth
from crystalperf.query.frameworks.ml.training.assumptions import BatchGrows
from crystalperf.query.frameworks.ml.training.devices import GPU, GROWING

_OF_PARAMETERS = regex(
    r"^(Python|between |starting )"  # the program's time between operators, and at its start
    # PyTorch: optimizers, one by one, in groups or as one kernel; gradients, and those of DDP
    r"|^(Optimizer\.|aten::_(foreach|fused)_(?!dropout)|multi_tensor_apply)"
    r"|^aten::(add|sub|mul|div|addcmul|addcdiv|lerp|sqrt|zero|copy)_$"
    r"|^torch::autograd::(AccumulateGrad|CopyBackwards)|^torch\.distributed\.ddp\.reducer"
    # TensorFlow and MXNet
    r"|^(Resource)?(Sparse)?Apply|^(Assign|VariableV2|VarHandleOp|ReadVariableOp|Const$|NoOp$|IdentityN?$)"
    r"|(^|_)(sgd|adam|adamw|adagrad|rmsprop|ftrl|lamb)\w*_update$|^KVStore"
)
"""Operators whose work does not depend on the batch."""

_OF_EXAMPLES = regex(r"all_?to_?all|\b(i?send|i?recv)\b|sendrecv", re.IGNORECASE)
"""Exchanges of data that examples produce; all others are assumed to be of parameters and gradients."""


_MADE = "own batches"
"""PyTorch's operator for making batches on the training's thread begins with it."""


def grows(operator: str) -> bool:
    """Whether an operator's work grows with the batch, by its name."""
    return _OF_PARAMETERS.search(operator) is None


def growth(execution: Execution) -> Growth:
    """The share of each stage's time that grows with the batch, (stages, resources + 1), and the assumptions behind
    it."""
    shape = (len(execution.dag.stages), execution.tasks.parts_ms.shape[1])
    whole, larger = np.zeros(shape), np.zeros(shape)
    net, launches = execution.names.index(NET), GPU.name in execution.names
    for name, times_ms in execution.operators.items():
        whole += times_ms
        if grows(name):
            growing = times_ms.copy()
            if not _OF_EXAMPLES.search(name):
                growing[:, net] = 0.0
            larger += growing
    if launches:  # where a thread makes its batches itself, the CPU does more than that
        made = [times_ms for name, times_ms in execution.operators.items() if name.startswith(_MADE)]
        makes = np.sum([each.sum(axis=1) for each in made], axis=0) > 0 if made else np.zeros(shape[0], dtype=bool)
        larger[:, execution.names.index(CPU)] *= makes
    shares = np.divide(larger, whole, out=np.zeros(shape), where=whole > 0)
    for column, name in enumerate(execution.names):
        if (known := execution.properties.get(f"{GROWING}{name}")) is not None:
            shares[:, column] = float(known)
    return Growth(shares, BatchGrows(launches))
