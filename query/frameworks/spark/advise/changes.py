"""Changes of Spark's settings, with old and new value."""

from __future__ import annotations

from collections.abc import Mapping

from crystalperf.query.frameworks.spark.partitions import DEFAULTS
from crystalperf.query.frameworks.spark.settings import flag, size_bytes, size_text, whole
from crystalperf.query.results.recommendations import SettingChange, Value


def changed(properties: Mapping[str, str], name: str, after: Value, default: Value = None) -> SettingChange:
    """A setting with the run's value, or else its default, and the new value."""
    stated = properties.get(name)
    if not stated:
        return SettingChange(name, default, after, is_default=default is not None)
    before: Value = flag(stated)
    return SettingChange(name, whole(stated) or stated if before is None else before, after)


def changed_size(
    properties: Mapping[str, str], name: str, after_bytes: float, before_bytes: float | None = None
) -> SettingChange:
    """The same for a setting that is an amount of memory or data; `before_bytes` replaces the run's value or its
    default in DEFAULTS."""
    stated = properties.get(name)
    was = before_bytes or size_bytes(stated) or DEFAULTS.get(name)
    before = stated if was is None or (stated and size_bytes(size_text(was)) != was) else size_text(was)
    after = size_text(after_bytes)
    return SettingChange(name, before, after, was, size_bytes(after), is_default=not stated)
