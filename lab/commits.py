"""Rows of a long series are committed while it runs, so that what ends it takes nothing with it."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path


class Commits:
    """Copies a file into a folder under version control and commits it there, every so many minutes at most."""

    def __init__(self, folder: Path, minutes: float) -> None:
        """`folder` is made where it is missing; without git in it, copies are kept and no more."""
        self.folder, self.every_s = folder, 60 * minutes
        self._last = time.monotonic()

    def offer(self, file: Path, message: str, *, now: bool = False) -> bool:
        """Commit the file if it is time, or `now`; whether something was committed."""
        if not file.exists() or (not now and time.monotonic() - self._last < self.every_s):
            return False
        self._last = time.monotonic()
        self.folder.mkdir(parents=True, exist_ok=True)
        kept = self.folder / file.name
        shutil.copyfile(file, kept)
        done = self._git("add", "--", kept.name)
        if not done.returncode:
            if not self._git("diff", "--cached", "--quiet", "--", kept.name).returncode:
                return False  # the same rows as the last time
            done = self._git("commit", "-q", "-m", message, "--only", "--", kept.name)
        if done.returncode:
            said = (done.stderr or done.stdout).strip().split("\n")[-1]
            print(f"not committed: {said}", file=sys.stderr, flush=True)
        return not done.returncode

    def _git(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["git", *words], cwd=self.folder, capture_output=True, text=True, check=False)
