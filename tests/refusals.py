"""Asserts on an error: its class, that it is one line, and the names in it.  Its words may change."""

from __future__ import annotations

from types import TracebackType

import pytest

from crystalperf.indexes.errors import CrystalPerfError, Remedy


class refused:
    """Expect an error of one line that names these values and, where one is given, has this remedy.

    No generator: its frame would hold the error, whose traceback holds the frame.
    """

    def __init__(self, error: type[Exception] = CrystalPerfError, *named: object, remedy: Remedy | None = None) -> None:
        self.raises, self.named, self.remedy = pytest.raises(error), named, remedy

    def __enter__(self) -> pytest.ExceptionInfo[Exception]:
        self.caught = self.raises.__enter__()
        return self.caught

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        expected = self.raises.__exit__(kind, error, trace)
        if expected:
            is_one_line(str(error), *self.named)
            assert self.remedy is None or getattr(error, "remedy", None) == self.remedy
        return expected


def is_one_line(text: str, *named: object) -> None:
    """Fail unless the text, of an exception or of stderr, is one line that names these values."""
    assert text.strip()
    assert text.rstrip("\n").count("\n") == 0
    assert [each for each in named if str(each) not in text] == [], text
