"""`crystalperf setup FRAMEWORK`: the settings with which a job writes a log and records samples."""

from __future__ import annotations

import os
import re

from crystalperf.cli.output import print_message, write, write_json
from crystalperf.indexes.errors import NoAnswerError, SettingError
from crystalperf.query.frameworks import Job
from crystalperf.query.frameworks.registry import frameworks, get

_SAFE_FOLDER = re.compile(r"/[A-Za-z0-9._/+-]*")


def setup(framework: str, folder: str, place: str, version: str, *, as_json: bool) -> int:
    """Print the settings for a framework; by default for the first framework that knows the place.

    Raises InputError for an unknown framework, NoAnswerError for one without setup instructions, and SettingError for
    an unknown place or for a folder name that the settings cannot contain.
    """
    able = [each for each in frameworks().values() if each.advisor.setup is not None]
    at_place = [
        each for each in able if each.advisor.setup is not None and place.lower() in ("", *each.advisor.setup.places)
    ]
    known = get(framework.lower()) if framework else [*at_place, *able][0]
    if not framework and len(able) > 1:
        print_message(f"For {known.title}; for another framework, name it: {', '.join(each.name for each in able)}")
    if known.advisor.setup is None:
        names = ", ".join(each.name for each in able)
        raise NoAnswerError(f"{known.title}: CrystalPerf has no setup instructions for it; it has them for {names}")
    if place and place.lower() not in known.advisor.setup.places:
        places = ", ".join(f"{word} ({title})" for word, title in known.advisor.setup.places.items()) or "none"
        raise SettingError(f"--on {place}: unknown place for {known.title}; known places: {places}")
    if not _SAFE_FOLDER.fullmatch(folder):
        raise SettingError(
            f"--folder {folder}: not a path that job settings can contain; give an absolute path with only letters,"
            " digits and ._+-/, for example --folder /tmp"
        )
    job = Job(folder.rstrip("/"), place.lower(), version)
    if known.advisor.setup.needs_folder:
        _make(job.folder or "/")
    if as_json:
        write_json({"framework": known.name, **known.advisor.setup.facts(job)})
    else:
        write(known.advisor.setup.text(job))
    return 0


def _make(folder: str) -> None:
    """Make the folder of recordings on this machine; other nodes need it too."""
    if os.path.isdir(folder):
        return
    try:
        os.makedirs(folder)
    except OSError as error:
        print_message(f"{folder}: cannot be made here ({error.strerror}); make it on every node before the job starts")
    else:
        print_message(f"Made {folder} on this machine; make it on every other node too")
