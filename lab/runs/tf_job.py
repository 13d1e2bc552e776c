"""One process of a small TensorFlow training that writes RunMetadata, which the lab runs.

It is self-contained, for an environment with TensorFlow and without this project.  Without a cluster it trains alone.
With one, {"cluster": {"ps": [ADDRESS], "worker": [ADDRESS, …]}, "job": "worker", "task": 0}, its variables are on the
parameter servers, the first worker is the chief, which initialises them, and workers train asynchronously.

It prints one line of JSON: the seconds of each step after the profiled ones, measured without tracing, and the CPU
seconds of all threads per such step; for a parameter server, its total CPU time since the start signal.  With
`lasting_s`, a worker trains at least that long, so that all workers train concurrently to the end.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import numpy as np
import tensorflow as tf

v1 = tf.compat.v1

DEFAULTS = {
    "batch": 16, "steps": 3, "timed": 12, "read_ms": 0.0, "intra": 1, "inter": 2, "seed": 1, "out": "traces",
    "cluster": None, "job": "worker", "task": 0, "queue": False, "feeders": 1,
    "held": None, "lasting_s": 0.0,
}  # fmt: skip


def examples(asked: dict) -> tuple:
    """Batches of generated images; `read_ms` is the time to read one; with `queue`, queue runners read them."""

    def image(number: int) -> np.ndarray:
        if asked["read_ms"]:
            time.sleep(asked["read_ms"] / 1e3)
        return np.random.default_rng(int(number)).standard_normal((32, 32, 3), dtype=np.float32)

    if asked["queue"]:
        numbers = v1.train.range_input_producer(1 << 16, shuffle=False).dequeue()
        one = v1.py_func(image, [numbers], tf.float32, stateful=False)
        one.set_shape((32, 32, 3))
        return v1.train.batch(
            [one, numbers % 10], asked["batch"], num_threads=asked["feeders"], capacity=4 * asked["batch"]
        )
    rows = tf.data.Dataset.range(1 << 16).map(
        lambda number: (tf.ensure_shape(tf.numpy_function(image, [number], tf.float32), (32, 32, 3)), number % 10)
    )
    rows = rows.batch(asked["batch"], drop_remainder=True).prefetch(1)
    found: tuple = v1.data.make_one_shot_iterator(rows).get_next()
    return found


def network(images: tf.Tensor, labels: tf.Tensor) -> tuple:
    """A CNN of about 4 MB, its loss and its training step."""

    def weights(name: str, shape: list[int]) -> tf.Variable:
        return v1.get_variable(name, shape, initializer=v1.glorot_uniform_initializer(seed=1))

    for number, (before, after) in enumerate(((3, 32), (32, 64))):
        images = tf.nn.relu(tf.nn.conv2d(images, weights(f"conv{number}", [3, 3, before, after]), 1, "SAME"))
        images = tf.nn.max_pool2d(images, 2, 2, "SAME")
    flat = tf.reshape(images, [-1, 8 * 8 * 64])
    hidden = tf.nn.relu(tf.matmul(flat, weights("dense0", [8 * 8 * 64, 256])))
    logits = tf.matmul(hidden, weights("dense1", [256, 10]))
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
    step = v1.train.get_or_create_global_step()
    return loss, v1.train.GradientDescentOptimizer(0.01).minimize(loss, global_step=step)


def session_job(asked: dict) -> tuple[list[float], float]:
    """Train in a session; the profiled steps write run_metadata_N.pb."""
    v1.disable_eager_execution()
    v1.disable_resource_variables()
    v1.set_random_seed(asked["seed"])
    config = v1.ConfigProto(intra_op_parallelism_threads=asked["intra"], inter_op_parallelism_threads=asked["inter"])
    target, device = "", None
    if asked["cluster"] is not None:
        cluster = tf.train.ClusterSpec(asked["cluster"])
        server = tf.distribute.Server(cluster, job_name=asked["job"], task_index=asked["task"], config=config)
        if asked["job"] == "ps":
            wait_for_all(asked)
            begun = time.process_time()
            sys.stdin.read()  # serves until its parent ends
            return [], time.process_time() - begun
        here = f"/job:worker/task:{asked['task']}"
        target, device = server.target, v1.train.replica_device_setter(worker_device=here, cluster=cluster)
        config.device_filters.extend(["/job:ps", here])
    with v1.Graph().as_default(), v1.device(device):
        _, train = network(*examples(asked))
        unset = v1.report_uninitialized_variables(v1.global_variables())
        with v1.Session(target, config=config) as session:
            if asked["task"] == 0:
                session.run(v1.global_variables_initializer())
            while session.run(unset).size:
                time.sleep(0.1)
            session.run(v1.local_variables_initializer())
            coordinator = v1.train.Coordinator()
            threads = v1.train.start_queue_runners(session, coordinator) if asked["queue"] else []
            wait_for_all(asked)
            found = _steps(session, train, asked)
            coordinator.request_stop()
            for _ in threads:
                session.close()
                break
    return found


def wait_for_all(asked: dict) -> None:
    """Report that this process is ready to train, and wait until the parent has applied all limits."""
    if asked["held"]:
        Path(asked["held"], f"{asked['job']}{asked['task']}.ready").touch()
        while not Path(asked["held"], "go").exists():
            time.sleep(0.02)


def _steps(session: v1.Session, train: tf.Operation, asked: dict) -> tuple[list[float], float]:
    """The seconds of each untraced step except the first after tracing, and the CPU seconds of one."""
    out = Path(asked["out"])
    out.mkdir(parents=True, exist_ok=True)
    began = time.perf_counter()
    for _ in range(3):
        session.run(train)
    options = v1.RunOptions(trace_level=v1.RunOptions.FULL_TRACE, output_partition_graphs=True)
    for number in range(asked["steps"] + 1):
        found = v1.RunMetadata()
        session.run(train, options=options, run_metadata=found)
        if number:  # the first one includes the cost of tracing
            name = f"{asked['job']}{asked['task']}-step{number}"
            (out / f"{name}.run_metadata.pb").write_bytes(found.SerializeToString())
    seconds = []
    number, begun = 0, 0.0
    while number < 3 + asked["timed"] or time.perf_counter() < began + asked["lasting_s"]:
        if number == 3:
            begun = time.process_time()
        begin = time.perf_counter()
        session.run(train)
        if number >= 3:
            seconds.append(time.perf_counter() - begin)
        number += 1
    return seconds, (time.process_time() - begun) / len(seconds)


def main() -> None:
    asked = {**DEFAULTS, **json.loads(sys.argv[1] if len(sys.argv) > 1 else "{}")}
    seconds, cpu = session_job(asked)
    print(json.dumps({"job": asked["job"], "task": asked["task"], "step_s": seconds, "cpu_s": cpu}), flush=True)
    os._exit(0)  # threads of queue runners and servers never end


if __name__ == "__main__":
    main()
