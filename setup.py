"""Build settings that pyproject.toml cannot express: optional compiled code, and clean builds.

The compiled code replays a run (query/simulate/list_schedule.c) and reads lines of logs (query/inputs/line_rows.c)
faster; without it, Python gives the same answers.  It uses the stable ABI of Python 3.11, so one wheel serves all later
versions.  If there is no compiler, the build continues without it.  With CRYSTALPERF_PURE=1 the build leaves it out:
the wheel is py3-none-any.
"""

import os
import shutil

from setuptools import Extension, setup
from setuptools.command.build import build

PURE = os.environ.get("CRYSTALPERF_PURE", "") not in ("", "0")


def compiled(module: str, source: str) -> Extension:
    """An extension that is left out where it cannot be compiled."""
    return Extension(
        f"crystalperf.{module}",
        sources=[source],
        extra_compile_args=[
            "-O2",
            "-ffp-contract=off",
        ],  # contracted multiplications change last digits on some machines
        py_limited_api=True,
        optional=True,
    )


COMPILED = [
    compiled("query.simulate._list_schedule", "query/simulate/list_schedule.c"),
    compiled("query.inputs._line_rows", "query/inputs/line_rows.c"),
]


class FreshBuild(build):
    """Builds into an empty folder, because setuptools would also pack files that an earlier version left in build/."""

    def run(self) -> None:
        shutil.rmtree(self.build_lib, ignore_errors=True)
        super().run()


setup(
    ext_modules=[] if PURE else COMPILED,
    options={} if PURE else {"bdist_wheel": {"py_limited_api": "cp311"}},
    cmdclass={"build": FreshBuild},
)
