"""Training loop of the networks: batches of similar length, learning rate with warm-up and decay, clipped gradients."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch

from crystalperf.indexer.embed import Ids


@dataclass(frozen=True)
class Course:
    """Epochs, batch size, and the steps of the learning rate's warm-up, before it decays linearly."""

    epochs: int
    batch: int
    warm_up: int


def descend(
    optimiser: torch.optim.Optimizer,
    lengths: Ids,
    course: Course,
    rng: np.random.Generator,
    loss_of: Callable[[Ids], torch.Tensor],
    report: Callable[[str], None],
) -> None:
    """Minimise the loss over batches of texts by updating the optimiser's parameters.

    `lengths` are the lengths of the texts, `loss_of` computes the loss of some of them; `report` gets a line per epoch.
    """
    parameters = [each for group in optimiser.param_groups for each in group["params"]]
    steps = course.epochs * -(-len(lengths) // course.batch)
    slope = torch.optim.lr_scheduler.LambdaLR(
        optimiser, lambda step: min(1.0, (step + 1) / course.warm_up) * max(0.02, 1 - step / steps)
    )
    started = time.monotonic()
    for epoch in range(1, course.epochs + 1):
        losses: list[float] = []
        for rows in batches(lengths, course.batch, rng):
            loss = loss_of(rows)
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(parameters, 1.0)
            optimiser.step()
            slope.step()
            losses.append(loss.item())
        report(f"epoch {epoch}: loss {np.mean(losses):.3f} after {time.monotonic() - started:.0f} s")


def batches(lengths: Ids, size: int, rng: np.random.Generator) -> Iterator[Ids]:
    """All texts once, in batches of similar length, so that little of them is padding."""
    order = np.argsort(lengths * (1 + 0.2 * rng.random(len(lengths))))
    for at in rng.permutation(-(-len(lengths) // size)):
        yield order[at * size : (at + 1) * size]
