"""The inputs: the recordings of this repository, and the public logs if they are next to the checkout."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
RECORDINGS, DATA = ROOT / "lab" / "recordings", ROOT / "tests" / "data"
_ADJACENT = ("shared/real-inputs", "real-inputs")
PUBLIC = next((each for up in ROOT.parents for name in _ADJACENT if (each := up / name).is_dir()), None)

QUICK = (
    "lab/recordings/demo-q9",
    "tests/data/flink/skew-8000",
    "tests/data/training/torch-loader",
    "tests/data/dask/dask-report.html.gz",
    "examples/toy-framework/plum.jam",
)
"""One input of each kind of framework; a fleet and a service use these."""
THOROUGH = (
    "lab/recordings/odd/lost-executor.zstd",
    "lab/recordings/odd/micro-batches.zstd",
    "lab/recordings/sweeps/flink/049-rocks-0",
    "lab/recordings/sweeps/pytorch/transformer-r2-c0.6-n200.0",
    "tests/data/training/tensorflow-ps",
)
"""Further inputs for every interface; the others get analyze, debug and predict."""
_KEPT = (
    *("lab/recordings/gzip-text/*/", "lab/recordings/odd/*.zstd", "lab/recordings/sweeps/*/base-0-*/"),
    *("lab/recordings/sweeps/flink/*/", "lab/recordings/sweeps/pytorch/*/", "lab/recordings/sweeps/tensorflow/*/"),
    *("lab/recordings/files/*/", "lab/recordings/batches/*/", "tests/data/acme", "tests/data/eventlog/q9.zstd"),
    *("tests/data/runs/*", "tests/data/spark/*", "tests/data/flink/*.json.gz", "tests/data/dask/*", "tests/data/jax"),
    *("tests/data/training/*/", "tests/data/training/*.run_metadata.pb", "tests/data/training/*.timeline.json"),
)
_PUBLIC = (
    *("spark-eventlog/apache-spark/*", "spark-eventlog/kubeflow/*", "spark-eventlog/gluten/*"),
    *("flink/history-archive/*", "pytorch/kineto/*", "tensorflow/timeline/*", "other/dask/*", "other/mxnet/*"),
)
_MORE = ("lab/recordings/sweeps/*/base-*/", "lab/recordings/again/*/*/", "lab/recordings/repeated/*/*/")
_MORE_PUBLIC = ("spark-eventlog/*/*", "pytorch/*/*", "tensorflow/*/*")


@dataclass(frozen=True)
class Input:
    """The input of a run.

    name    its path in the repository or among the public logs
    paths   its files or folders
    public  whether it is a public log, for which the reference has only figures
    """

    name: str
    paths: tuple[Path, ...]
    public: bool = False

    @property
    def thorough(self) -> bool:
        """Whether it is used at every interface."""
        return self.name in (*QUICK, *THOROUGH)


def inputs(which: str) -> list[Input]:
    """The inputs of a set: quick, default or all."""
    found = [_kept(each) for each in QUICK]
    if which != "quick":
        found += [*(_kept(each) for each in THOROUGH), *_of(ROOT, _KEPT), *_of(PUBLIC, _PUBLIC)]
    if which == "all":
        found += [*_of(ROOT, _MORE), *_of(PUBLIC, _MORE_PUBLIC)]
    return list({each.name: each for each in found}.values())


def given(names: Sequence[str]) -> list[Input]:
    """Inputs by a part of their names, or by a path that is not in any set."""
    known = inputs("all")
    found = [each for each in known if any(name in each.name for name in names)]
    others = [name for name in names if not any(name in each.name for each in known)]
    return [*found, *(Input(name, (Path(name).absolute(),)) for name in others)]


def _of(root: Path | None, patterns: Sequence[str]) -> Iterator[Input]:
    if root is None:
        return
    for pattern in patterns:
        for path in sorted(root.glob(pattern)):
            name = str(path.relative_to(root))
            yield _kept(name.removesuffix(".json.gz")) if root == ROOT else Input(name, (path,), public=True)


def _kept(name: str) -> Input:
    """An input of this repository; an archive of Flink has its metrics next to it."""
    path = ROOT / name
    return Input(name, (path,) if path.exists() else tuple(sorted(path.parent.glob(f"{path.name}.*"))))
