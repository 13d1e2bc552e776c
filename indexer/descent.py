"""How networks here learn: batches of texts of like length, a rate that rises and then falls, clipped gradients."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch

from crystalperf.indexer.embed import Ids


@dataclass(frozen=True)
class Course:
    """Epochs, texts in a batch, and the steps over which the rate rises before it falls in a line."""

    epochs: int
    batch: int
    warm_up: int


def descend(
    optimiser: torch.optim.Optimizer,
    lengths: Ids,
    course: Course,
    chance: np.random.Generator,
    loss_of: Callable[[Ids], torch.Tensor],
    say: Callable[[str], None],
) -> None:
    """Change what the optimiser holds, step by step, so that the loss of batches of texts falls.

    `lengths` are the texts', `loss_of` gives the loss of some of them; `say` is told of each epoch.
    """
    parameters = [each for group in optimiser.param_groups for each in group["params"]]
    steps = course.epochs * -(-len(lengths) // course.batch)
    slope = torch.optim.lr_scheduler.LambdaLR(
        optimiser, lambda step: min(1.0, (step + 1) / course.warm_up) * max(0.02, 1 - step / steps)
    )
    started = time.monotonic()
    for epoch in range(1, course.epochs + 1):
        losses: list[float] = []
        for rows in batches(lengths, course.batch, chance):
            loss = loss_of(rows)
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(parameters, 1.0)
            optimiser.step()
            slope.step()
            losses.append(loss.item())
        say(f"epoch {epoch}: loss {np.mean(losses):.3f} after {time.monotonic() - started:.0f} s")


def batches(lengths: Ids, size: int, chance: np.random.Generator) -> Iterator[Ids]:
    """All texts once in batches of about the same length, so that little of them is padding."""
    order = np.argsort(lengths * (1 + 0.2 * chance.random(len(lengths))))
    for at in chance.permutation(-(-len(lengths) // size)):
        yield order[at * size : (at + 1) * size]
