"""Of many alike cases the few that `make test` has time for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def few(cases: Iterable[Any], now: int) -> list[Any]:
    """All cases; only `now` of them, evenly spread from the first on, are not left to `make test-all`.

    A case of several arguments is a tuple.
    """
    listed = list(cases)
    chosen = {number * len(listed) // now for number in range(now)}
    return [
        pytest.param(
            *(each if isinstance(each, tuple) else (each,)), marks=() if number in chosen else pytest.mark.later
        )
        for number, each in enumerate(listed)
    ]
