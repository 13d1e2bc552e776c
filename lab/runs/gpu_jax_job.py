"""A training of JAX on one accelerator, untraced and as an XPlane trace:  python gpu_jax_job.py OUT

OUT/rows.jsonl gets its times, OUT/traces/jax-KIND/ the trace of `jax.profiler`.
"""

from __future__ import annotations

import json
import pathlib
import statistics
import sys
import time

import jax
import jax.numpy as jnp

WIDTH, LAYERS = 4096, 8


def loss(weights: list[jax.Array], x: jax.Array) -> jax.Array:
    """Mean square of a deep network's output."""
    for each in weights:
        x = jax.nn.gelu(x @ each)
    return jnp.mean(x.astype(jnp.float32) ** 2)


@jax.jit
def step(weights: list[jax.Array], x: jax.Array) -> list[jax.Array]:
    """One step of gradient descent."""
    return [each - 1e-4 * grad for each, grad in zip(weights, jax.grad(loss)(weights, x), strict=True)]


def main() -> None:
    """Time and trace two sizes: one that the accelerator limits, one that the host limits."""
    out = pathlib.Path(sys.argv[1])
    for kind, batch, width in (("jax_wide", 8192, WIDTH), ("jax_small", 32, 128)):
        keys = jax.random.split(jax.random.PRNGKey(0), LAYERS + 1)
        weights = [jax.random.normal(each, (width, width), jnp.bfloat16) * 0.02 for each in keys[1:]]
        x = jax.random.normal(keys[0], (batch, width), jnp.bfloat16)
        for _ in range(5):
            weights = step(weights, x)
        jax.block_until_ready(weights)
        blocks = []
        for _ in range(3):
            begin = time.perf_counter()
            for _ in range(30):
                weights = step(weights, x)
            jax.block_until_ready(weights)
            blocks.append((time.perf_counter() - begin) / 30 * 1e3)
        with jax.profiler.trace(str(out / "traces" / kind)):
            for number in range(4):
                with jax.profiler.StepTraceAnnotation("train", step_num=number):
                    weights = step(weights, x)
            jax.block_until_ready(weights)
        row = {"kind": kind, "batch": batch, "step_ms": round(statistics.median(blocks), 4), "blocks_ms": blocks}
        with open(out / "rows.jsonl", "a", encoding="utf-8") as rows:
            rows.write(json.dumps(row | {"gpu": jax.devices()[0].device_kind}) + "\n")
        print(row, flush=True)


if __name__ == "__main__":
    main()
