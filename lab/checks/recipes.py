"""Run the lines that `crystalperf setup` prints: `python -m lab.checks.recipes CASE… --python PYTHON`.

The lines are pasted as printed into a small program; only `...` becomes the program's training step.  The program runs
in PYTHON, an environment with the framework and without this project, and its folder of traces is analyzed.  The table
has the step that the lines printed, the step of the trace, and the first sentence.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import crystalperf as cp
from crystalperf.query.frameworks import Job
from crystalperf.query.frameworks.registry import get
from lab.checks.verdicts import first_sentence
from lab.errors import LabError
from lab.pages import head, row

_KERAS = """
import time
import numpy as np
import tensorflow as tf
layers = tf.keras.layers
model = tf.keras.Sequential([layers.Conv2D(32, 3, activation="relu"), layers.Flatten(), layers.Dense(10)])
loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
optimizer = tf.keras.optimizers.SGD(0.01)
def image(number):
    time.sleep(READ_S)
    return np.zeros((32, 32, 3), np.float32)
def example(number):
    read = tf.numpy_function(image, [number], tf.float32) if READ_S else tf.zeros((32, 32, 3))
    return tf.ensure_shape(read, (32, 32, 3)), number % 10
rows = iter(tf.data.Dataset.range(1 << 20).map(example).batch(64).prefetch(2))
def train(images, labels):
    with tf.GradientTape() as tape:
        loss = loss_of(labels, model(images, training=True))
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
    return loss
if GRAPH:
    train = tf.function(train)
"""
_SESSION = """
import tensorflow.compat.v1 as tf
tf.disable_eager_execution()
images = tf.random.normal((256, 3072))
first, last = tf.get_variable("first", [3072, 1024]), tf.get_variable("last", [1024, 10])
loss = tf.reduce_mean(tf.square(tf.matmul(tf.nn.relu(tf.matmul(images, first)), last)))
train = tf.train.GradientDescentOptimizer(0.01).minimize(loss)
session = tf.Session()
session.run(tf.global_variables_initializer())
"""
_JAX = """
import jax, time
import jax.numpy as jnp
import numpy as np
source = np.random.default_rng(0)
layers = [jnp.asarray(0.02 * source.standard_normal((WIDTH, WIDTH)), jnp.float32) for _ in range(3)]
def loss_of(layers, images):
    for each in layers:
        images = jax.nn.relu(images @ each)
    return jnp.mean(images**2)
@jax.jit
def update(layers, images):
    return [one - 0.01 * slope for one, slope in zip(layers, jax.grad(loss_of)(layers, images))]
def examples():
    if READ_S:
        time.sleep(READ_S)
    return source.standard_normal((64, WIDTH)).astype(np.float32)
"""


@dataclass(frozen=True)
class Case:
    """A program around the lines: its own lines, its training step, and the words that its first sentence must have.

    `part` is the line with which the framework's lines for it begin; they end where the next part begins.
    """

    framework: str
    part: str
    program: str
    step: str
    limited_by: str


def _tensorflow(limited_by: str, read_s: float, *, graph: bool) -> Case:
    facts = f"READ_S, GRAPH = {read_s}, {graph}"
    return Case("tensorflow", "# TensorFlow 2", f"{facts}\n{_KERAS}", "train(*next(rows))", limited_by)


def _jax(limited_by: str, read_s: float, width: int) -> Case:
    step = "(layers := update(layers, examples()))"
    return Case("jax", "# JAX", f"READ_S, WIDTH = {read_s}, {width}\n{_JAX}", step, limited_by)


CASES = {
    "tensorflow-graph": _tensorflow("CPU", 0, graph=True),
    "tensorflow-eager": _tensorflow("CPU", 0, graph=False),
    "tensorflow-input": _tensorflow("input", 2e-3, graph=True),
    "tensorflow-session": Case("tensorflow", "# A graph in a session", _SESSION, "session.run(train)", "CPU"),
    "jax-wide": _jax("CPU", 0, 1024),
    "jax-small": _jax("CPU", 0, 32),
    "jax-input": _jax("time without any operator", 20e-3, 256),
}
_PARTS = re.compile(r"^(?=# (?:TensorFlow 2|A graph in a session|JAX|Then))", re.MULTILINE)


def program(case: Case, folder: Path) -> str:
    """The program with the lines of `setup`."""
    setup = get(case.framework).advisor.setup
    assert setup is not None
    printed = setup.text(Job(str(folder)))
    lines = next(each for each in _PARTS.split(printed) if each.startswith(case.part))
    return case.program + re.sub(r"\.\.\.(?= )", case.step, lines)


def checked(name: str, python: str, scratch: Path) -> str:
    """The table's row of a case.  Raises LabError if its program fails or the answer is another."""
    case, folder = CASES[name], scratch / name
    written = scratch / f"{name}.py"
    written.write_text(program(case, folder), encoding="utf-8")
    ran = subprocess.run([python, str(written)], capture_output=True, text=True, cwd=scratch, check=False)
    if ran.returncode:
        raise LabError(f"{name}: the program fails: {ran.stderr.strip().rpartition(chr(10))[2]}")
    printed = re.search(r"untraced step: ([\d.]+) ms", ran.stdout)
    if printed is None:
        raise LabError(f"{name}: the program printed no untraced step")
    run = cp.profile([folder], output=scratch / f"{name}.duckdb")
    said, header = first_sentence(run.verdict()), run.header()
    if case.limited_by not in said:
        raise LabError(f"{name}: the first sentence has no '{case.limited_by}': {said}")
    return row(name, str(header.steps), printed[1], f"{header.step_ms:.1f}", said)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; 1 if a case failed."""
    parser = argparse.ArgumentParser(prog="python -m lab.checks.recipes", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("cases", nargs="+", choices=CASES, metavar="CASE", help=", ".join(CASES))
    parser.add_argument("--python", required=True, help="of an environment with the framework")
    given = parser.parse_args(arguments)
    failed = 0
    print(
        "\n".join(head("case | >traced steps | >step without the profiler [ms] | >in the trace [ms] | first sentence"))
    )
    with tempfile.TemporaryDirectory() as folder:
        for name in given.cases:
            try:
                print(checked(name, given.python, Path(folder)), flush=True)
            except LabError as error:
                failed = 1
                print(f"lab.checks.recipes: {error}", file=sys.stderr)
    return failed


if __name__ == "__main__":
    sys.exit(main())
