"""Build settings that pyproject.toml cannot express: the optional compiled loop, and clean builds.

The compiled loop (query/simulate/list_schedule.c) replays a run faster; without it, Python gives the same answers.  It
uses the stable ABI of Python 3.11, so one wheel serves all later versions.  If there is no compiler, the build
continues without it.  With CRYSTALPERF_PURE=1 the build leaves it out: the wheel is py3-none-any.
"""

import os
import shutil

from setuptools import Extension, setup
from setuptools.command.build import build

PURE = os.environ.get("CRYSTALPERF_PURE", "") not in ("", "0")

LOOP = Extension(
    "crystalperf.query.simulate._list_schedule",
    sources=["query/simulate/list_schedule.c"],
    extra_compile_args=["-O2", "-ffp-contract=off"],  # contracted multiplications change last digits on some machines
    py_limited_api=True,
    optional=True,
)


class FreshBuild(build):
    """Builds into an empty folder, because setuptools would also pack files that an earlier version left in build/."""

    def run(self) -> None:
        shutil.rmtree(self.build_lib, ignore_errors=True)
        super().run()


setup(
    ext_modules=[] if PURE else [LOOP],
    options={} if PURE else {"bdist_wheel": {"py_limited_api": "cp311"}},
    cmdclass={"build": FreshBuild},
)
