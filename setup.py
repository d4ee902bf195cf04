"""Configures the compiled extension and nothing else; all metadata is in pyproject.toml."""

import os
import sys
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup

# The checked build trades speed for bounds checks and for verify() after every event.
CHECKED = os.environ.get("FASTSIM_CHECKED", "0") == "1"

# Scores are truncated to integers, so a fused multiply-add could change a placement.
FLAGS = [] if sys.platform == "win32" else ["-O3", "-g0", "-ffp-contract=off", "-fno-math-errno"]

DIRECTIVES = {
    "language_level": 3,
    "boundscheck": CHECKED,
    "wraparound": False,
    "initializedcheck": CHECKED,
    "cdivision": not CHECKED,
    "embedsignature": True,
    "freethreading_compatible": True,
}

MODULES = [
    Extension(f"fastsim_ext.{path.stem}", [str(path)], extra_compile_args=FLAGS, define_macros=[("CYTHON_CLINE_IN_TRACEBACK", "0")])
    for path in sorted(Path("fastsim_ext").glob("*.pyx"))
]

setup(
    ext_modules=cythonize(
        MODULES,
        build_dir="build/checked" if CHECKED else "build/release",
        compiler_directives=DIRECTIVES,
        compile_time_env=None,
    )
)
