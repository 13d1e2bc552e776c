"""Depots."""

import os


def deco(function):
    return function


@deco
class Depot(dict):
    """Stores things."""

    limit = os.cpu_count()

    @property
    def size(self) -> int:
        """How many."""

        def inner():
            return 1

        return self.total(lambda item: item.weigh())

    async def fetch(self, *keys):
        await remote(keys)


def top(x, y=1):
    r'''Raw
       text.'''
    return max(x, y)
