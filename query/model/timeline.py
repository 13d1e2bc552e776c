"""What running tasks were doing at each moment.

A stage's wall-clock is not its tasks' summed time: at every instant the tasks then running stand for the stage, each
with the same voice.  So a straggler that runs alone at the end decides alone what the end was spent on.
"""

from __future__ import annotations

import numpy as np

from query.model.dag import Floats, Tasks


class Timeline:
    """The mean resource vector of the tasks running, integrated over time."""

    def __init__(self, tasks: Tasks) -> None:
        lasting = tasks.duration_ms > 0
        launch, finish = tasks.launch_ms[lasting], tasks.finish_ms[lasting]
        shares = tasks.parts_ms[lasting] / (finish - launch)[:, None]
        ones = np.ones((len(launch), 1))
        moments = np.concatenate([launch, finish])
        changes = np.concatenate([np.hstack([shares, ones]), -np.hstack([shares, ones])])
        order = np.argsort(moments, kind="stable")
        self.moments = moments[order]
        running = np.cumsum(changes[order], axis=0)[:-1]
        lengths = np.diff(self.moments)[:, None]
        count = np.rint(running[:, -1:])
        means = np.where(count > 0, running[:, :-1] / np.maximum(count, 1), 0.0)
        self.integral = np.vstack([np.zeros((1, means.shape[1])), np.cumsum(means * lengths, axis=0)])

    def between(self, start_ms: float, end_ms: float) -> Floats:
        """Wall-clock in each column of `parts_ms` from start to end, (resources + 1,); idle time is in none."""
        if len(self.moments) == 0 or end_ms <= start_ms:
            return np.zeros(self.integral.shape[1])
        edges = np.array([start_ms, end_ms])
        columns = [np.interp(edges, self.moments, column) for column in self.integral.T]
        parts: Floats = np.maximum(np.array([column[1] - column[0] for column in columns]), 0.0)
        return parts
