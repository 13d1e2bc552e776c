"""The settings that differ between two sides, but for addresses, ids and scratch paths, which name one run."""

from __future__ import annotations

import re
from collections.abc import Mapping

from crystalperf.indexes.regex import regex
from crystalperf.query.diagnose.comparer import Comparer
from crystalperf.query.results.comparison import SettingChange

_OF_ONE_RUN = regex(
    r"(?<=://)[^/\s,;]+"  # user, host and port of a URL
    r"|\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b"  # an IP address
    r"|(?<=[\w.-]):\d{2,5}\b"  # a port
    r"|\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\b[0-9a-f]{16,}\b"  # an id
    r"|\b(?:app|application|job|local|attempt)[-_]\d{8,}(?:[-_]\d+)*\b"  # an id with a time
    r"|(?:/private)?(?:/var)?/(?:tmp|scratch|folders)/[^\s,;:]*",  # a path in a scratch folder
    re.IGNORECASE,
)


def setting_changes(
    before: Mapping[str, str], after: Mapping[str, str], comparer: Comparer
) -> tuple[SettingChange, ...]:
    """The settings with different values, those with a known effect on times first."""
    found = [
        SettingChange(
            key, before.get(key), after.get(key), any(each != "none" for each in comparer.effects(key))
        )
        for key in sorted({*before, *after})
        if comparer.is_setting(key) and differs(before.get(key), after.get(key))
    ]  # fmt: skip
    return tuple(sorted(found, key=lambda each: not each.matters))


def differs(before: str | None, after: str | None) -> bool:
    """Whether two values of a setting differ in more than what names one run."""
    if before is None or after is None:
        return before is not after
    return before != after and _OF_ONE_RUN.sub("…", before) != _OF_ONE_RUN.sub("…", after)
