"""`crystalperf setup FRAMEWORK`: what a job needs so that it leaves a log and samples."""

from __future__ import annotations

import re

from cli.output import write, write_json
from indexes.errors import NoAnswerError, SettingError
from query.frameworks.known import frameworks, get

_SAFE_FOLDER = re.compile(r"/[A-Za-z0-9._/+-]*")


def setup(framework: str, folder: str, *, as_json: bool) -> int:
    """Print the settings for a framework.

    Raises InputError for one that is not known, NoAnswerError for one that does not say, SettingError for a folder
    that its settings could not hold.
    """
    known = get(framework.lower())
    if known.setup is None:
        able = ", ".join(each.name for each in frameworks().values() if each.setup is not None)
        raise NoAnswerError(f"{known.title}: what its jobs need is not known; it is of {able}")
    if not _SAFE_FOLDER.fullmatch(folder):
        raise SettingError(
            f"--folder {folder}: give an absolute path of letters, digits and ._+-/ alone, for it becomes part of the"
            " job's settings, for example --folder /tmp"
        )
    folder = folder.rstrip("/")
    if as_json:
        write_json({"framework": known.name, **known.setup.facts(folder)})
    else:
        write(known.setup.text(folder))
    return 0
