"""Standard output belongs to results: whatever else is written to it goes to standard error."""

from __future__ import annotations

import os
import sys
from contextlib import suppress


def keep_for_results() -> None:
    """Give ``sys.stdout`` a file descriptor of its own, and point descriptor 1 of the process at standard error.

    Compiled libraries and processes that are started write to descriptor 1, past ``sys.stdout``. Without standard
    output or standard error nothing changes.
    """
    stream = sys.stdout
    with suppress(OSError, ValueError, AttributeError):
        stream.flush()
        output, errors = stream.fileno(), sys.stderr.fileno()
        copy_fd = os.dup(output)
        os.dup2(errors, output)
        results = open(  # noqa: SIM115 (it is there until the process ends)
            copy_fd, "w", buffering=1 if stream.isatty() else -1, encoding=stream.encoding, errors=stream.errors
        )
        sys.stdout = sys.__stdout__ = results  # type: ignore[misc]
