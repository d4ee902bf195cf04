"""The command ``fastsim``, also as ``python -m fastsim``: the entry point.

Ctrl-C while the modules of the command line are still being loaded ends the process without a traceback, as it ends
other programs.
"""

from __future__ import annotations

import signal


def main() -> None:
    """Load the command line, run it and leave the process with its exit code."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from fastsim.cli import main as cli

    cli.main()


if __name__ == "__main__":
    main()
