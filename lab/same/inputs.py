"""What is asked: the recordings of this repository, and the public logs where they lie beside the checkout."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
RECORDINGS, DATA = ROOT / "lab" / "recordings", ROOT / "tests" / "data"
_BESIDE = ("shared/real-inputs", "real-inputs")
PUBLIC = next((each for up in ROOT.parents for name in _BESIDE if (each := up / name).is_dir()), None)

QUICK = (
    "lab/recordings/demo-q9",
    "tests/data/flink/skew-8000",
    "tests/data/training/torch-loader",
    "tests/data/dask/dask-report.html.gz",
    "examples/toy-framework/plum.jam",
)
"""One of each kind of framework; a fleet and a service are asked about these."""
THOROUGH = (
    "lab/recordings/gzip-text/1-core",
    "lab/recordings/odd/lost-executor.zstd",
    "lab/recordings/odd/micro-batches.zstd",
    "lab/recordings/odd/skewed-key.zstd",
    "lab/recordings/sweeps/flink/049-rocks-0",
    "lab/recordings/sweeps/pytorch/transformer-r2-c0.6-n200.0",
    "tests/data/flink/join-and-sort",
    "tests/data/jax",
    "tests/data/training/tensorflow-ps",
)
"""Asked at every interface, too."""
_KEPT = (
    *("lab/recordings/gzip-text/*/", "lab/recordings/odd/*.zstd", "lab/recordings/sweeps/*/*/"),
    *("lab/recordings/files/*/", "lab/recordings/batches/*/", "tests/data/acme", "tests/data/eventlog/q9.zstd"),
    *("tests/data/runs/*", "tests/data/spark/*", "tests/data/flink/*.json.gz", "tests/data/dask/*", "tests/data/jax"),
    *("tests/data/training/*/", "tests/data/training/*.run_metadata.pb", "tests/data/training/*.timeline.json"),
)
_MORE = ("lab/recordings/again/*/*/", "lab/recordings/repeated/*/*/")
_PUBLIC = ("spark-eventlog/*/*", "flink/history-archive/*", "pytorch/*/*", "tensorflow/*/*", "other/dask/*", "other/mxnet/*")


@dataclass(frozen=True)
class Input:
    """What a run is read from.

    name    where it lies in the repository or among the public logs
    paths   its files or folders
    public  a log of others, of which the reference keeps figures alone
    """

    name: str
    paths: tuple[Path, ...]
    public: bool = False

    @property
    def thorough(self) -> bool:
        """Whether it is asked at every interface."""
        return self.name in (*QUICK, *THOROUGH)


def inputs(which: str) -> list[Input]:
    """The inputs of a set: quick, default or all."""
    found = [_kept(each) for each in QUICK]
    if which != "quick":
        found += _of(ROOT, _KEPT)
    if which == "all":
        found += _of(ROOT, _MORE)
    if which != "quick" and PUBLIC is not None:
        found += _of(PUBLIC, _PUBLIC)
    return list({each.name: each for each in found}.values())


def given(paths: Sequence[Path]) -> list[Input]:
    """Inputs named by their paths."""
    return [Input(str(each), (each.absolute(),)) for each in paths]


def _of(root: Path, patterns: Sequence[str]) -> Iterator[Input]:
    for pattern in patterns:
        for path in sorted(root.glob(pattern)):
            name = str(path.relative_to(root))
            yield _kept(name.removesuffix(".json.gz")) if root == ROOT else Input(name, (path,), public=True)


def _kept(name: str) -> Input:
    """An input of this repository; an archive of Flink has its metrics next to it."""
    path = ROOT / name
    return Input(name, (path,) if path.exists() else tuple(sorted(path.parent.glob(f"{path.name}.*"))))
