"""A client of a JobManager's REST interface."""

from __future__ import annotations

import json
from typing import Any

from crystalperf.indexes.errors import InputError
from crystalperf.query.inputs.rest import Server
from crystalperf.query.trace.records import shortened

NOT_FLINK = "responds, but not like a JobManager; give the address of the JobManager's web page"


class Rest(Server):
    """A JobManager, by the address of its web page."""

    def text(self, page: str) -> str:
        """The text of a page.  Raises InputError if it does not exist or the server does not respond."""
        return self.fetched(page).decode("utf-8", "replace")

    def page(self, page: str) -> dict[str, Any]:
        """A page as decoded JSON.  Raises InputError."""
        try:
            found = json.loads(self.text(page))
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise InputError(f"{self.address}{page}: {NOT_FLINK}")
        return found

    def silent(self, reason: str) -> InputError:
        """The error for a server that does not respond."""
        return InputError(
            f"{self.address}: no JobManager responds there ({shortened(reason)}); give the address of its web page"
        )
