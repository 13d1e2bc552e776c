"""Cost of JAX's profiler in small steps of a CPU:  python jax_profiler_job.py OUT

It is self-contained, for an environment with jax and without this project.  OUT gets a trace of each program with and
without functions of Python.  It prints a Markdown table: the median step of six blocks without the profiler, three
before and three after the traces, and the traced steps over it.
"""

from __future__ import annotations

import pathlib
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

SOURCE = np.random.default_rng(0)
Program = tuple[Any, Callable[[Any], Any]]
"""The first state, and a step from a state to the next."""


def mlp(width: int, layers: int, batch: int) -> Program:
    """Gradient descent in one jitted function."""
    weights = [jnp.asarray(SOURCE.standard_normal((width, width)) * 0.02, jnp.float32) for _ in range(layers)]
    examples = jnp.asarray(SOURCE.standard_normal((batch, width)), jnp.float32)

    def loss(these: list[jax.Array], found: jax.Array) -> jax.Array:
        for each in these:
            found = jax.nn.gelu(found @ each)
        return jnp.mean(found**2)

    update = jax.jit(
        lambda these: [one - 1e-3 * d for one, d in zip(these, jax.grad(loss)(these, examples), strict=True)]
    )
    return weights, update


def eager() -> Program:
    """32 operators that Python calls one by one."""

    def step(state: jax.Array) -> jax.Array:
        for _ in range(16):
            state = jnp.tanh(state) + 0.1
        return state

    return jnp.ones((64, 64)), step


def tree() -> Program:
    """200 parameters in one call."""
    return {f"p{n}": jnp.ones((4, 4)) for n in range(200)}, jax.jit(
        lambda these: jax.tree.map(lambda p: p * 0.999, these)
    )


def many_jits() -> Program:
    """20 jitted functions."""
    functions = [jax.jit(lambda x, k=k: x * 0.99 + k) for k in range(20)]

    def step(state: jax.Array) -> jax.Array:
        for each in functions:
            state = each(state)
        return state

    return jnp.ones((32, 32)), step


def _one_more(value: int) -> int:
    return value + 1


def python_loader() -> Program:
    """400 calls of a function of Python, and one jitted function."""
    update = jax.jit(lambda state, x: state + jnp.mean(x))

    def step(state: jax.Array) -> jax.Array:
        total = 0
        for _ in range(400):
            total = _one_more(total)
        return update(state, np.full((16, 16), total, np.float32))

    return jnp.ones((16, 16)), step


def numpy_in() -> Program:
    """A batch of NumPy each step."""
    update = jax.jit(lambda state, x: state * 0.99 + jnp.mean(x @ x.T))
    return jnp.ones((16, 16)), lambda state: update(state, SOURCE.standard_normal((64, 64)).astype(np.float32))


def scanned() -> Program:
    """64 small rounds of a compiled loop."""
    weights = jnp.eye(32)
    update = jax.jit(lambda x: jax.lax.scan(lambda c, _: (jnp.tanh(c @ weights), None), x, None, length=64)[0])
    return jnp.ones((32, 32)), update


PROGRAMS: dict[str, Callable[[], Program]] = {
    "tiny_mlp": lambda: mlp(64, 8, 8), "small_mlp": lambda: mlp(128, 8, 32), "wide_mlp": lambda: mlp(512, 4, 64),
    "eager": eager, "tree": tree, "many_jits": many_jits, "python_loader": python_loader, "numpy_in": numpy_in,
    "scanned": scanned,
}  # fmt: skip


def block(state: Any, step: Callable[[Any], Any], count: int) -> tuple[float, Any]:
    """The mean of some steps, ms, and the state after them."""
    begin = time.perf_counter()
    for _ in range(count):
        state = jax.block_until_ready(step(state))
    return (time.perf_counter() - begin) / count * 1e3, state


def traced(state: Any, step: Callable[[Any], Any], folder: pathlib.Path, python: int) -> tuple[float, Any]:
    """The mean of 20 marked steps of a trace, ms."""
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = python
    with jax.profiler.trace(str(folder), profiler_options=options):
        _, state = block(state, step, 5)
        begin = time.perf_counter()
        for number in range(20):
            with jax.profiler.StepTraceAnnotation("train", step_num=number):
                state = jax.block_until_ready(step(state))
        return (time.perf_counter() - begin) / 20 * 1e3, state


def main() -> None:
    out = pathlib.Path(sys.argv[1])
    print("| program | step [ms] | without Python | with Python |\n|---|---:|---:|---:|")
    for name, make in PROGRAMS.items():
        state, step = make()
        _, state = block(state, step, 20)  # compiles
        took, state = block(state, step, 20)
        count = max(10, min(2000, int(400 / max(took, 1e-3))))
        blocks, ratios = [], []
        for moment in ("before", "after"):
            for _ in range(3):
                took, state = block(state, step, count)
                blocks.append(took)
            for level in (1, 0) if moment == "before" else ():
                took, state = traced(state, step, out / f"{name}-{level}", level)
                ratios.append(took)
        step_ms = statistics.median(blocks)
        print(f"| {name} | {step_ms:.3f} | {ratios[1] / step_ms:.2f} | {ratios[0] / step_ms:.2f} |", flush=True)


if __name__ == "__main__":
    main()
