"""Redacts secrets in the texts of a run file, by their names and by their form.

A log has whole statements, exceptions and configurations, and users send run files to colleagues.  The name of a secret
stays; its value does not.
"""

from __future__ import annotations

import re
from functools import lru_cache

from crystalperf.indexes.regex import regex

HIDDEN = "***"

_NAMES = (
    r"pass(?:word|wd|phrase)|\bpwd|secret|token|credential|api[-_.]?key|access[-_.]?key|account[-_.]?key"
    r"|private[-_.]?key|shared[-_.]?key|signature|authorization|connection[-_.]?string|sasl\.jaas"
)
_IS_SECRET = regex(_NAMES, re.IGNORECASE)

# In each pattern the last group is the value; it ends where a statement, a URL or a plan would continue.
_QUOTED = r"'[^']*'?|\"[^\"]*\"?"
_BARE = r"[^\s&;,)\]}>'\"]+"
_REST = r"[\w.#-]{0,40}[\"'`]?"  # of the name
_PATTERNS = tuple(
    regex(each, re.IGNORECASE)
    for each in (
        rf"((?:{_NAMES}){_REST}\s{{0,5}}(?:=>|[=:]|%3D)\s{{0,5}}(?:(?:bearer|basic)\s{{1,5}})?)({_QUOTED}|{_BARE})",
        rf"((?:{_NAMES}){_REST}\s{{1,5}}(?:is\s{{1,5}}|by\s{{1,5}}|in\s{{0,5}}\(\s{{0,5}}|like\s{{1,5}})?)({_QUOTED})",
        rf"(\b\w{{1,40}}\([\w.]{{0,40}}(?:{_NAMES})[\w.#]{{0,40}}\s{{0,5}},\s{{0,5}})({_QUOTED}|[^)]+)",  # EqualTo(a,b)
        rf"(identified\s{{1,5}}by\s{{1,5}})({_QUOTED}|{_BARE})",
        rf"([?&;](?:sig|se|sp|sv|x-amz-[a-z-]{{1,40}}|awsaccesskeyid|key|auth|code)=)({_BARE})",
        r"(\b(?:bearer|basic)\s{1,5})([\w+/.~=-]{8,})",
        r"(//[^/@\s:]{0,200}:)([^/@\s]{1,200})(?=@)",
        r"()(\b(?:AKIA|ASIA)[0-9A-Z]{16}\b)",
        r"()(\beyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?)",
        r"()(\b(?:gh[pousr]_|github_pat_|xox[abprs]-|sk-|glpat-|dapi)[\w-]{16,})",
        r"()(-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----.*)",
    )
)
# Most texts contain none of these, which one search shows.
_WORTH = regex(
    rf"{_NAMES}|[?&;](?:sig|se|sp|sv|x-amz|awsaccess|key|auth|code)|identified|bearer|basic\s|//[^/\s]*@|AKIA|ASIA|eyJ"
    r"|gh[pousr]_|github_pat|xox|sk-|glpat|dapi|-----BEGIN",
    re.IGNORECASE,
)


@lru_cache(maxsize=1024)  # logs repeat texts
def redacted(text: str) -> str:
    """The text with HIDDEN for values whose name is that of a secret, and for values that look like one."""
    if _WORTH.search(text) is None:
        return text
    for pattern in _PATTERNS:
        text = pattern.sub(lambda match: match[1] + HIDDEN, text)
    return text


def is_secret(key: str) -> bool:
    """Whether a setting of this name holds a secret."""
    return _IS_SECRET.search(key) is not None
