"""Trainings on one GPU, untraced and with the profiler's options one by one:  python gpu_job.py OUT SECONDS [--cpu]

For each training: the time of a step without a profiler (median of three blocks, one synchronisation a block), the time
in which the program issues a step (from an idle accelerator to the last launch), and one trace of each MODE.  It needs
torch alone.  OUT/rows.jsonl has the times, OUT/traces/KIND-BATCH/MODE.json.gz the traces.  No step is timed while it is
traced, and no trace is chosen.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import json
import os
import pathlib
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.profiler import profile, schedule

MODES: dict[str, dict[str, bool]] = {
    "light": {},
    "shapes": {"record_shapes": True},
    "stacks": {"with_stack": True},
    "full": {"record_shapes": True, "with_stack": True},
    "memory": {"record_shapes": True, "profile_memory": True},
}
"""Options of torch.profiler.profile."""

Step = Callable[[], Any]

_FIXED = {"capturable": False}
"""Options of optimizers: a step that is captured as a graph needs an optimizer that keeps its counts on the device."""


class Block(nn.Module):
    """One layer of a transformer."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down, self.heads = nn.Linear(width, 4 * width), nn.Linear(4 * width, width), heads

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n, length, width = x.shape
        q, k, v = (
            each.view(n, length, self.heads, width // self.heads).transpose(1, 2)
            for each in self.qkv(self.before(x)).chunk(3, -1)
        )
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(n, length, width))
        return x + self.down(F.gelu(self.up(self.between(x))))


class Language(nn.Module):
    """A language model."""

    def __init__(self, width: int, layers: int, heads: int, words: int, length: int) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
        self.blocks, self.head = nn.ModuleList(Block(width, heads) for _ in range(layers)), nn.Linear(width, words)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = self.words(x) + self.places(torch.arange(x.shape[1], device=x.device))
        for each in self.blocks:
            hidden = each(hidden)
        return self.head(hidden)


class Cells(nn.Module):
    """A recurrent network as a loop of Python over time."""

    def __init__(self, width: int, length: int) -> None:
        super().__init__()
        self.cell, self.head, self.length = nn.GRUCell(width, width), nn.Linear(width, 10), length

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        state = torch.zeros_like(x)
        for _ in range(self.length):
            state = self.cell(x, state)
        return self.head(state)


class Graph(nn.Module):
    """Gathers of nodes, sums at nodes, and small products."""

    def __init__(self, width: int, layers: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(2 * width, width) for _ in range(layers))

    def forward(self, x: torch.Tensor, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        for each in self.layers:
            received = torch.zeros_like(x).index_add_(0, target, x[source])
            x = F.relu(each(torch.cat([x, received], 1)))
        return x


class Painter(nn.Module):
    """Convolutions with group norms, as in denoising networks."""

    def __init__(self, width: int, layers: int) -> None:
        super().__init__()
        self.first, self.last = nn.Conv2d(3, width, 3, padding=1), nn.Conv2d(width, 3, 3, padding=1)
        self.norms = nn.ModuleList(nn.GroupNorm(16, width) for _ in range(layers))
        self.convs = nn.ModuleList(nn.Conv2d(width, width, 3, padding=1) for _ in range(layers))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(x)
        for norm, conv in zip(self.norms, self.convs, strict=True):
            x = x + conv(F.silu(norm(x)))
        return self.last(x)


class Photos(torch.utils.data.Dataset[Any]):
    """Examples that cost computing, or sleeping, in the process that makes them."""

    def __init__(self, sleep_s: float = 0.0) -> None:
        self.sleep_s = sleep_s

    def __len__(self) -> int:
        return 10**6

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        if self.sleep_s:
            time.sleep(self.sleep_s)
            return torch.zeros(3, 224, 224), index % 1000
        pixels = np.random.default_rng(index).integers(0, 255, (288, 288, 3), dtype=np.uint8)
        cut = pixels[32:256, 32:256, ::-1].astype(np.float32)
        cut = (cut - cut.mean()) / (cut.std() + 1e-5)
        return torch.from_numpy(np.ascontiguousarray(cut.transpose(2, 0, 1))), index % 1000


def make(kind: str, batch: int, device: str) -> Step:
    """The function that trains one step of a kind."""
    torch.manual_seed(0)
    name, _, workers = kind.partition(":")
    return _MAKERS[name](batch, device, *([int(workers)] if workers else []))


def _steps(model: nn.Module, optimizer: torch.optim.Optimizer, loss: Callable[[], torch.Tensor]) -> Step:
    def step() -> torch.Tensor:
        optimizer.zero_grad(set_to_none=True)
        value = loss()
        value.backward()
        optimizer.step()
        return value

    return step


def _language(width: int, layers: int, heads: int, words: int, length: int, half: bool, foreach: bool) -> Any:
    def made(batch: int, device: str) -> Step:
        model = Language(width, layers, heads, words, length).to(device)
        x = torch.randint(0, 1000, (batch, length), device=device)

        def loss() -> torch.Tensor:
            with torch.autocast(device, torch.bfloat16, enabled=half):
                return F.cross_entropy(model(x).flatten(0, 1).float(), x.flatten())

        return _steps(model, torch.optim.AdamW(model.parameters(), 1e-4, foreach=foreach, fused=False, **_FIXED), loss)

    return made


def _chatty(batch: int, device: str) -> Step:
    model = Language(512, 8, 8, 8000, 256).to(device)
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)
    x = torch.randint(0, 8000, (batch, 256), device=device)

    def step() -> float:
        optimizer.zero_grad(set_to_none=True)
        loss = F.cross_entropy(model(x).flatten(0, 1), x.flatten())
        loss.backward()
        norms = sum(float(each.grad.norm().item()) for each in model.parameters() if each.grad is not None)
        optimizer.step()
        return float(loss.item()) + norms

    return step


def _asking(batch: int, device: str) -> Step:
    """One number asked for a step, and boolean masks, which wait for the accelerator."""
    model = nn.Sequential(*(nn.Sequential(nn.Linear(2048, 2048), nn.ReLU()) for _ in range(12))).to(device)
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)
    x = torch.randn(batch, 2048, device=device)

    def step() -> float:
        optimizer.zero_grad(set_to_none=True)
        out = model(x)
        loss = out[out > 0].square().mean() + out[out < 0].square().mean()
        loss.backward()
        optimizer.step()
        return float(loss.item())

    return step


def _images(network: str, half: bool) -> Any:
    def made(batch: int, device: str) -> Step:
        import torchvision

        model = getattr(torchvision.models, network)().to(device)
        x, y = torch.randn(batch, 3, 224, 224, device=device), torch.randint(0, 1000, (batch,), device=device)

        def loss() -> torch.Tensor:
            with torch.autocast(device, torch.bfloat16, enabled=half):
                return F.cross_entropy(model(x), y)

        return _steps(model, torch.optim.SGD(model.parameters(), 0.01, momentum=0.9), loss)

    return made


def _input(sleep_s: float) -> Any:
    def made(batch: int, device: str, workers: int = 2) -> Step:
        import torchvision

        model = torchvision.models.resnet18().to(device)
        optimizer = torch.optim.SGD(model.parameters(), 0.01)
        batches: Iterator[Any] = iter(
            torch.utils.data.DataLoader(Photos(sleep_s), batch, num_workers=workers, pin_memory=device == "cuda")
        )

        def step() -> None:
            x, y = next(batches)
            x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
            optimizer.zero_grad(set_to_none=True)
            F.cross_entropy(model(x), y).backward()
            optimizer.step()

        return step

    return made


def _wide(batch: int, device: str) -> Step:
    model = nn.Sequential(*(nn.Sequential(nn.Linear(4096, 4096), nn.GELU()) for _ in range(10))).to(device).bfloat16()
    x = torch.randn(batch, 4096, device=device, dtype=torch.bfloat16)
    return _steps(
        model,
        torch.optim.AdamW(model.parameters(), 1e-4, fused=device == "cuda"),
        lambda: model(x).float().square().mean(),
    )


def _recurrent(batch: int, device: str) -> Step:
    model = nn.LSTM(512, 1024, 3).to(device)
    x = torch.randn(100, batch, 512, device=device)
    return _steps(model, torch.optim.SGD(model.parameters(), 1e-3), lambda: model(x)[0].square().mean())


def _cells(batch: int, device: str) -> Step:
    model = Cells(256, 60).to(device)
    x, y = torch.randn(batch, 256, device=device), torch.randint(0, 10, (batch,), device=device)
    return _steps(model, torch.optim.Adam(model.parameters(), **_FIXED), lambda: F.cross_entropy(model(x), y))


def _graph(batch: int, device: str) -> Step:
    model = Graph(128, 6).to(device)
    x = torch.randn(batch, 128, device=device)
    ends = torch.randint(0, batch, (2, 12 * batch), device=device)
    return _steps(model, torch.optim.Adam(model.parameters()), lambda: model(x, ends[0], ends[1]).square().mean())


def _painter(batch: int, device: str) -> Step:
    model = Painter(192, 8).to(device)
    x = torch.randn(batch, 3, 64, 64, device=device)

    def loss() -> torch.Tensor:
        with torch.autocast(device, torch.float16):
            return F.mse_loss(model(x).float(), x)

    return _steps(model, torch.optim.Adam(model.parameters()), loss)


_MAKERS: dict[str, Any] = {
    "gpt_tiny": _language(128, 16, 4, 1000, 64, False, False),
    "gpt_bf16": _language(768, 12, 12, 32000, 512, True, True),
    "gpt_fp32": _language(1024, 6, 16, 8000, 512, False, True),
    "resnet50": _images("resnet50", False),
    "resnet50_amp": _images("resnet50", True),
    "efficientnet_amp": _images("efficientnet_b0", True),
    "chatty": _chatty,
    "asking": _asking,
    "input": _input(0.0),
    "sleeping": _input(0.004),
    "wide": _wide,
    "recurrent": _recurrent,
    "cells": _cells,
    "graph": _graph,
    "painter": _painter,
}

PLAN: tuple[tuple[str, int, tuple[str, ...], tuple[tuple[str, int], ...]], ...] = (
    ("gpt_tiny", 8, ("light", "shapes", "stacks", "full"), ()),
    ("resnet50", 64, ("light", "stacks", "full", "memory"), (("resnet50_amp", 64),)),
    ("gpt_bf16", 16, ("light", "shapes", "stacks", "full"), ()),
    ("graph", 60000, ("light", "full"), (("graph", 30000), ("graph", 120000))),
    ("chatty", 16, ("light", "shapes", "full"), ()),
    ("painter", 64, ("light", "full"), (("painter", 32), ("painter", 128))),
    ("input:2", 32, ("light", "full"), (("input:1", 32), ("input:4", 32), ("input:8", 32), ("input:2", 64))),
    ("cells", 128, ("light", "full"), (("cells", 1024),)),
    ("asking", 4096, ("light", "full"), (("asking", 16384),)),
    ("wide", 4096, ("light", "full"), (("wide", 2048), ("wide", 8192))),
    ("efficientnet_amp", 96, ("light", "full"), (("efficientnet_amp", 48), ("efficientnet_amp", 192))),
    ("sleeping:2", 32, ("light", "full"), (("sleeping:4", 32), ("sleeping:2", 64))),
    ("gpt_fp32", 16, ("light", "full"), (("gpt_fp32", 8), ("gpt_fp32", 32))),
    ("recurrent", 64, ("light", "full"), (("recurrent", 32), ("recurrent", 128))),
    ("input:0", 32, ("light", "full"), (("input:0", 64),)),
)
"""Kind (and `:` processes that make batches), batch, traces, and what else is timed."""


MEMORY = (("resnet50", 64), ("gpt_bf16", 16), ("painter", 64))
"""Kinds and batches of `--memory`."""


class Series:
    """The rows of one accelerator."""

    def __init__(self, folder: pathlib.Path, device: str) -> None:
        self.folder, self.device = folder, device
        folder.mkdir(parents=True, exist_ok=True)
        name = torch.cuda.get_device_name(0) if device == "cuda" else "cpu"
        self.gpu = next((each for each in ("h200", "h100") if each in name.lower()), name.replace(" ", "_"))
        self.add(event="start", name=name, torch=torch.__version__)

    def add(self, **row: Any) -> None:
        """Add a row, and print it."""
        row |= {"gpu": self.gpu, "at": round(time.time())}
        with open(self.folder / "rows.jsonl", "a", encoding="utf-8") as rows:
            rows.write(json.dumps(row) + "\n")
        print(row, flush=True)

    def wait(self) -> None:
        """Wait for the accelerator."""
        if self.device == "cuda":
            torch.cuda.synchronize()

    def timed(self, kind: str, batch: int, step: Step) -> float:
        """Time untraced steps, and the issuing of a step alone; returns the step, ms."""
        for _ in range(6):
            step()
        self.wait()
        begin = time.perf_counter()
        step()
        step()
        self.wait()
        count = max(5, min(40, int(1.0 / max((time.perf_counter() - begin) / 2, 1e-4))))
        blocks, issued = [], []
        for _ in range(3):
            self.wait()
            begin = time.perf_counter()
            for _ in range(count):
                step()
            self.wait()
            blocks.append((time.perf_counter() - begin) / count * 1e3)
        for _ in range(7):
            self.wait()
            begin = time.perf_counter()
            step()
            issued.append((time.perf_counter() - begin) * 1e3)
        self.wait()
        median = statistics.median(blocks)
        self.add(
            kind=kind,
            batch=batch,
            step_ms=round(median, 4),
            blocks_ms=[round(each, 4) for each in blocks],
            issue_ms=round(statistics.median(issued), 4),
            steps=count,
            mib=torch.cuda.max_memory_allocated() >> 20 if self.device == "cuda" else 0,
        )
        return median

    def traced(self, kind: str, batch: int, mode: str, step: Step) -> None:
        """Trace three steps after two of warm-up."""
        folder = self.folder / "traces" / f"{kind.replace(':', '_')}-{batch}"
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{mode}.json.gz"
        made = profile(
            activities=torch.profiler.supported_activities(),
            schedule=schedule(wait=2, warmup=2, active=6 if kind.startswith(("input", "sleeping")) else 3, repeat=1),
            on_trace_ready=lambda done: done.export_chrome_trace(str(path)),
            **MODES[mode],
        )
        with made:
            for _ in range(11 if kind.startswith(("input", "sleeping")) else 8):
                step()
                made.step()
        self.add(kind=kind, batch=batch, mode=mode, trace_bytes=path.stat().st_size)

    def graphed(self, kind: str, batch: int) -> None:
        """Time a step replayed as a CUDA graph, which has no launches."""
        _FIXED["capturable"] = True
        step = make(kind, batch, self.device)
        _FIXED["capturable"] = False
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                step()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            step()
        self.timed(f"{kind}+graph", batch, graph.replay)

    def peak(self, kind: str, batch: int) -> bool:
        """Add the peak of allocated memory of three steps, MiB; returns whether they fit."""
        gc.collect()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        try:
            step = make(kind, batch, self.device)
            for _ in range(3):
                step()
            self.wait()
        except torch.cuda.OutOfMemoryError:
            self.add(kind=kind, batch=batch, fits=False)
            return False
        peak, reserved = torch.cuda.max_memory_allocated() >> 20, torch.cuda.max_memory_reserved() >> 20
        self.add(kind=kind, batch=batch, fits=True, mib=peak, reserved_mib=reserved)
        return True

    def memory(self, end: float) -> None:
        """For each kind a trace with memory events, and peaks: with twice the batch until it does not fit, and with
        batches between the last two."""
        self.add(event="memory", mib=torch.cuda.get_device_properties(0).total_memory >> 20)
        for kind, batch in MEMORY:
            step = make(kind, batch, self.device)
            step()
            self.traced(kind, batch, "memory", step)
            del step
            size = batch
            while time.monotonic() < end and self.peak(kind, size):
                size *= 2
            for eighths in (5, 6, 7):
                if time.monotonic() < end and not self.peak(kind, size * eighths // 8):
                    break

    def loaders(self, end: float) -> None:
        """Trainings that wait for 1, 2 and 4 loader processes, timed and traced."""
        for loaders in (1, 2, 4):
            if time.monotonic() < end:
                step = make(f"input:{loaders}", 32, self.device)
                self.timed(f"input:{loaders}", 32, step)
                self.traced(f"input:{loaders}", 32, "light", step)
                del step


def main() -> None:
    """Run the plan until the time is over."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("seconds", type=float)
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--no-batches", action="store_true")
    parser.add_argument("--memory", action="store_true", help="memory and loader processes instead of the plan")
    parsed = parser.parse_args()
    end = time.monotonic() + parsed.seconds
    series = Series(parsed.out, "cpu" if parsed.cpu else "cuda")
    if parsed.memory:
        series.memory(end - 30)
        series.loaders(end)
    for kind, batch, modes, others in () if parsed.memory else PLAN:
        if parsed.only and kind not in parsed.only:
            continue
        if time.monotonic() > end - 15:
            series.add(kind=kind, event="no time left")
            continue
        try:
            step = make(kind, batch, series.device)
            series.timed(kind, batch, step)
            for mode in modes:
                series.traced(kind, batch, mode, step)
            del step
            if kind in ("gpt_tiny", "cells") and series.device == "cuda":
                try:
                    series.graphed(kind, batch)
                except Exception as error:
                    series.add(kind=f"{kind}+graph", batch=batch, failed=repr(error)[:200])
            for other, size in itertools.takewhile(lambda _: time.monotonic() < end - 10, others):
                if parsed.no_batches and ":" not in other:
                    continue
                step = make(other, size, series.device)
                series.timed(other, size, step)
                del step
            if series.device == "cuda":
                torch.cuda.empty_cache()
        except Exception as error:
            series.add(kind=kind, batch=batch, failed=repr(error)[:300])
    series.add(event="end")


if __name__ == "__main__":
    main()
