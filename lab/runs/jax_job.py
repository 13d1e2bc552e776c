"""A small JAX training under jax.profiler, which the lab runs.

It is self-contained, for an environment with jax and without this project:

    python jax_job.py '{"out": "/tmp/traces"}'

Prints one line of JSON: the seconds of each step after the profiled ones, measured without the profiler.
"""

from __future__ import annotations

import json
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np

DEFAULTS = {"batch": 128, "width": 512, "steps": 4, "timed": 20, "seed": 1, "out": "traces"}


def parameters(seed: int, width: int) -> list[jax.Array]:
    """Three layers, from 256 numbers to 10."""
    sizes = ((256, width), (width, width), (width, 10))
    keys = jax.random.split(jax.random.PRNGKey(seed), len(sizes))
    return [0.02 * jax.random.normal(key, size) for key, size in zip(keys, sizes, strict=True)]


def loss_of(layers: list[jax.Array], images: jax.Array, labels: jax.Array) -> jax.Array:
    found = images
    for layer in layers[:-1]:
        found = jax.nn.relu(found @ layer)
    return -jnp.mean(jnp.sum(jax.nn.log_softmax(found @ layers[-1]) * labels, axis=-1))


@jax.jit
def train(layers: list[jax.Array], images: jax.Array, labels: jax.Array) -> list[jax.Array]:
    slopes = jax.grad(loss_of)(layers, images, labels)
    return [layer - 0.1 * slope for layer, slope in zip(layers, slopes, strict=True)]


def examples(source: np.random.Generator, batch: int) -> tuple[np.ndarray, np.ndarray]:
    """The next generated batch."""
    images = source.standard_normal((batch, 256)).astype(np.float32)
    return images, np.eye(10, dtype=np.float32)[source.integers(0, 10, batch)]


def main() -> None:
    asked = {**DEFAULTS, **json.loads(sys.argv[1] if len(sys.argv) > 1 else "{}")}
    layers, source = parameters(asked["seed"], asked["width"]), np.random.default_rng(asked["seed"])
    layers = jax.block_until_ready(train(layers, *examples(source, asked["batch"])))  # compiles
    with jax.profiler.trace(asked["out"]):
        for step in range(asked["steps"]):
            with jax.profiler.StepTraceAnnotation("train", step_num=step):
                layers = jax.block_until_ready(train(layers, *examples(source, asked["batch"])))
    seconds = []
    for _ in range(asked["timed"]):
        begin = time.perf_counter()
        layers = jax.block_until_ready(train(layers, *examples(source, asked["batch"])))
        seconds.append(time.perf_counter() - begin)
    print(json.dumps({"framework": f"jax {jax.__version__}", "step_s": seconds}))


if __name__ == "__main__":
    main()
