"""One rank of a small PyTorch training under torch.profiler, which the lab runs.

It is self-contained, for an environment with torch and without this project:

    RANK=0 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 python torch_job.py '{"out": "/tmp/traces"}'

It prints one line of JSON: the seconds of each step after the profiled ones, measured without the profiler, and the CPU
seconds of all its threads per such step.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import ProfilerActivity, profile, schedule
from torch.utils.data import DataLoader, Dataset

DEFAULTS = {
    "model": "cnn", "batch": 16, "steps": 3, "timed": 12, "loaders": 0, "read_ms": 0.0, "threads": 1, "stacks": False,
    "seed": 1, "out": "traces", "held": None, "files": None, "saved": False,
    "exchange": "ring",
}  # fmt: skip


FILE_BYTES = 1 << 16
"""Size of a file with an example, larger than the example."""


class Files(Dataset):
    """Images of files, each with an example: its bytes, or a tensor as torch.save() writes it (`saved`).

    Files that are missing are made first.
    """

    def __init__(self, folder: Path, count: int, shape: tuple[int, ...], classes: int, *, saved: bool) -> None:
        self.shape, self.classes, self.saved = shape, classes, saved
        self.paths = [folder / f"{number}.{'pt' if saved else 'raw'}" for number in range(count)]
        folder.mkdir(parents=True, exist_ok=True)
        for number, path in enumerate(self.paths):
            source = torch.Generator().manual_seed(number)
            if not path.exists():
                made = torch.randint(0, 256, (FILE_BYTES,), generator=source, dtype=torch.uint8)
                building = path.with_suffix(".building")  # a killed job would otherwise leave an incomplete file
                torch.save(made, building) if saved else building.write_bytes(bytes(made.tolist()))
                building.rename(path)

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, number: int) -> tuple[torch.Tensor, int]:
        path = self.paths[number]
        if self.saved:
            found = torch.load(path, weights_only=True)  # never pickle
        else:
            with path.open("rb") as file:
                found = torch.frombuffer(bytearray(file.read()), dtype=torch.uint8)
        image = found[: torch.Size(self.shape).numel()].reshape(self.shape)
        return image.to(torch.float32) / 255, number % self.classes


class Examples(Dataset):
    """Generated examples; `read_ms` is the time to read one, as from a slow disk."""

    def __init__(self, shape: tuple[int, ...], classes: int, read_ms: float) -> None:
        self.shape, self.classes, self.read_ms = shape, classes, read_ms

    def __len__(self) -> int:
        return 1 << 20

    def __getitem__(self, number: int) -> tuple[torch.Tensor, int]:
        if self.read_ms:
            time.sleep(self.read_ms / 1e3)
        source = torch.Generator().manual_seed(number)
        if len(self.shape) == 1:
            return torch.randint(0, 1000, self.shape, generator=source), number % self.classes
        return torch.randn(self.shape, generator=source), number % self.classes


class Transformer(nn.Module):
    """Two layers that read 32 words of 1000."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(1000, 128)
        layer = nn.TransformerEncoderLayer(128, 4, 512, batch_first=True, dropout=0.0)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.out = nn.Linear(128, 10)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.out(self.layers(self.words(words)).mean(1))
        return found


def model_of(name: str) -> tuple[nn.Module, tuple[int, ...]]:
    """A model of a few MB and the shape of an example."""
    if name == "transformer":
        return Transformer(), (32,)
    layers = nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(64 * 8 * 8, 256), nn.ReLU(), nn.Linear(256, 10),
    )  # fmt: skip
    return layers, (3, 32, 32)


def average_by_one(model: nn.Module, rank: int, ranks: int) -> None:
    """All ranks send their gradients to rank 0, which sends back the mean, like a parameter server."""
    own = [each.grad for each in model.parameters() if each.grad is not None]
    whole = torch.cat([each.reshape(-1) for each in own])
    found = [torch.empty_like(whole) for _ in range(ranks)] if rank == 0 else None
    dist.gather(whole, found)
    if found is not None:
        whole = torch.stack(found).mean(0)
    dist.broadcast(whole, 0)
    for each, mine in zip(own, whole.split([each.numel() for each in own]), strict=True):
        each.copy_(mine.view_as(each))


def batches(asked: dict, shape: tuple[int, ...]) -> DataLoader:
    """Batches of generated examples, or of examples from files."""
    examples_of: Dataset = Examples(shape, 10, asked["read_ms"])
    if asked["files"]:
        count = asked["batch"] * (3 + asked["steps"] + 3 + asked["timed"])
        examples_of = Files(Path(asked["files"]), count, shape, 10, saved=asked["saved"])
    return DataLoader(examples_of, asked["batch"], num_workers=asked["loaders"])


def main() -> None:
    asked = {**DEFAULTS, **json.loads(sys.argv[1] if len(sys.argv) > 1 else "{}")}
    torch.manual_seed(asked["seed"])
    torch.set_num_threads(asked["threads"])
    rank, ranks = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    if ranks > 1:
        dist.init_process_group("gloo")
    bare, shape = model_of(asked["model"])
    by_one = ranks > 1 and asked["exchange"] == "server"
    model = DistributedDataParallel(bare) if ranks > 1 and not by_one else bare
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    out = Path(asked["out"])
    out.mkdir(parents=True, exist_ok=True)

    def keep(found: profile) -> None:
        found.export_chrome_trace(str(out / f"rank{rank}.pt.trace.json.gz"))

    loss_of = nn.CrossEntropyLoss()
    profiled, timed = 3 + asked["steps"], asked["timed"]
    seconds: list[float] = []
    profiler = profile(
        activities=[ProfilerActivity.CPU], schedule=schedule(wait=1, warmup=2, active=asked["steps"], repeat=1),
        on_trace_ready=keep, with_stack=asked["stacks"], record_shapes=True,
    )  # fmt: skip
    examples = iter(batches(asked, shape))
    if asked["held"]:  # a folder: the parent applies the limits before all ranks start
        Path(asked["held"], f"rank{rank}.ready").touch()
        while not Path(asked["held"], "go").exists():
            time.sleep(0.02)
    profiler.start()
    for number in range(profiled + 3 + timed):
        begin = time.perf_counter()
        images, labels = next(examples)
        optimizer.zero_grad()
        loss = loss_of(model(images), labels)
        loss.backward()
        if by_one:
            average_by_one(model, rank, ranks)
        optimizer.step()
        if number < profiled:
            profiler.step()
        if number == profiled - 1:
            profiler.stop()
            if ranks > 1:
                dist.barrier()
        if number >= profiled + 3:
            seconds.append(time.perf_counter() - begin)
        if number == profiled + 2:
            used = time.process_time()
    cpu = (time.process_time() - used) / max(timed, 1)
    print(json.dumps({"rank": rank, "step_s": seconds, "cpu_s": cpu}), flush=True)
    if ranks > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
