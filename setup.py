"""Configures the compiled extension and nothing else; all metadata is in pyproject.toml."""

import multiprocessing
import os
import platform
import sys
import zlib
from pathlib import Path

from Cython.Build import cythonize
from Cython.Compiler import Options
from setuptools import Extension, setup

zlib.Z_DEFAULT_COMPRESSION = zlib.Z_BEST_COMPRESSION  # of the wheel, which is written once and fetched often

# The checked build trades speed for bounds checks, Python division and verify() after every event.
CHECKED = os.environ.get("FASTSIM_CHECKED", "0") == "1"
# The sanitized build stops at accesses out of bounds and undefined behaviour; .ci/sanitized starts a command in it.
SANITIZED = os.environ.get("FASTSIM_SANITIZED", "0") == "1"
BUILD = ("build/checked" if CHECKED else "build/release") + ("-sanitized" if SANITIZED else "")
SHARED = "fastsim_ext._shared"  # one copy of Cython's own support code instead of one per module

# Scores are truncated to integers, so a fused multiply-add could change a placement. With -O1 the checked build, which
# every landing compiles anew, takes half the time.
if sys.platform == "win32":
    FLAGS = ["/O2", "/fp:precise"]
else:
    FLAGS = ["-O1" if CHECKED else "-O3", "-g0", "-ffp-contract=off", "-fno-math-errno"]
    if sys.platform == "linux" and platform.machine() == "x86_64":
        FLAGS.append("-march=x86-64-v2")  # numpy asks for no less
SANITIZERS = ["-fsanitize=address,undefined"] if SANITIZED else []
if SANITIZED:
    FLAGS = [*FLAGS, *SANITIZERS, "-O1", "-g1", "-fno-omit-frame-pointer"]  # lines and callers for the reports

# Names of functions and tables for unwinding the stack are for profilers alone and would be a tenth of the wheel each;
# FASTSIM_SYMBOLS=1 keeps them. Calls to Python go straight through the table of addresses, without a stub for each, and
# targets of jumps and segments follow each other without gaps. The compiler's name, and bytes that name a build, are
# left out.
STRIPPED = sys.platform == "linux" and os.environ.get("FASTSIM_SYMBOLS", "0") != "1" and not SANITIZED
SHORT = ["-fno-asynchronous-unwind-tables", "-fno-plt", "-falign-jumps=1", "-fno-ident"]
COMPILER_FLAGS = [*FLAGS, *SHORT] if STRIPPED else FLAGS
LINKER_FLAGS = ["-Wl,-s", "-Wl,--build-id=none", "-Wl,-z,noseparate-code"] if STRIPPED else SANITIZERS

MACROS = [
    ("FASTSIM_CHECKED", str(int(CHECKED))),
    ("FASTSIM_FLAGS", f'"{" ".join(FLAGS)}"'),
    ("CYTHON_CLINE_IN_TRACEBACK", "0"),
    ("CYTHON_COMPRESS_STRINGS", "0"),  # the wheel compresses them with all the rest, and better
]

DIRECTIVES = {
    "language_level": 3,
    "boundscheck": CHECKED,
    "wraparound": False,
    "initializedcheck": CHECKED,
    "cdivision": not CHECKED,
    "embedsignature": CHECKED,
    "binding": False,  # plain functions of C: nobody asks compiled ones for their code or their defaults
    "auto_pickle": False,  # no object of a module is ever pickled; Python refuses it by itself
    "freethreading_compatible": True,
}

# Stubs tell what compiled functions do and take; a second copy in the modules would be a fortieth of the wheel.
Options.docstrings = CHECKED

CORES = os.cpu_count() or 1
# Where a new process would begin by running this file again, translation stays in one.
TRANSLATORS = CORES if multiprocessing.get_start_method() == "fork" else 0

SOURCES = {".".join(path.with_suffix("").parts): path.as_posix() for path in sorted(Path("fastsim_ext").rglob("*.pyx"))}
# Modules that work once for a run, a checkpoint, a round or a decision, not once for an event, and those that are as
# fast when they are small.
SMALL = {
    f"fastsim_ext.{name}"
    for name in (
        "_shared", "adaptive.goodput_table", "adaptive.loop", "adaptive.snapshot", "adaptive.training_job", "build",
        "online.decision_trace", "online.fifo_pool", "online.ordered_queue", "online.preempt",
        "online.preferences", "online.queue_loop", "online.stepped_loop", "online.stepped_queue",
        "online.topology_spread", "rounds.cluster_metrics", "rounds.job_table", "rounds.leases", "rounds.loop",
        "rounds.node_presence", "rounds.ordered_loop", "rounds.resource_shares", "rounds.round_log",
        "rounds.server_allocation", "rounds.share_loop", "rounds.snapshot", "select.waiting_line",
        "solvers.block_equations", "solvers.block_path", "solvers.self_dual_embedding", "state.departure_queue",
        "state.gpu_prices", "state.gpu_readings", "state.outcome_columns", "state.pod_membership", "state.pod_outcomes",
        "state.pod_table", "state.request_index", "state.tenant_usage",
    )
}  # fmt: skip


def flags_of(name):
    """The compiler's flags for a module."""
    if name in SMALL and "-O3" in COMPILER_FLAGS:
        return ["-Os" if flag == "-O3" else flag for flag in COMPILER_FLAGS]
    return COMPILER_FLAGS


MODULES = [
    Extension(name, [source], extra_compile_args=flags_of(name), extra_link_args=LINKER_FLAGS, define_macros=MACROS)
    for name, source in {**SOURCES, SHARED: SHARED.replace(".", "/") + ".c"}.items()
]

setup(
    ext_modules=cythonize(
        MODULES,
        build_dir=BUILD,
        nthreads=TRANSLATORS,
        annotate=not CHECKED,  # pages in build/release that show where a line still talks to Python
        compiler_directives=DIRECTIVES,
        shared_utility_qualified_name=SHARED,
    ),
    options={"build": {"build_base": BUILD}, "build_ext": {"parallel": CORES}},
)
