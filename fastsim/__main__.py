"""The command ``fastsim``, also as ``python -m fastsim``: the entry point.

Ctrl-C while the modules of the command line are still being loaded ends the process without a traceback, as it ends
other programs. ``python -m`` puts the current folder before all other places of modules; it is taken out before a
module is loaded from there, as a folder of traces may hold files that have the name of a library.
"""

import sys

COLLECTED_AFTER = 50_000, 20, 50
"""New objects, collections of them, and collections of older ones, after which garbage is looked for.

Python's own numbers, 700, 10 and 10, take up to a fifth of a command's time: most objects stay until it ends.
"""


def main() -> None:
    """Load the command line, run it and leave the process with its exit code."""
    _leave_current_folder()
    import gc
    import signal

    gc.set_threshold(*COLLECTED_AFTER)

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from fastsim.cli import main as cli

    cli.main()


def _leave_current_folder() -> None:
    """Take the current folder out of ``sys.path`` if Python put it first, unless it is where fastsim is loaded from."""
    import os  # Python has loaded it before it looks anywhere

    if sys.flags.safe_path:  # what comes first is the user's choice
        return
    try:
        folder = os.getcwd()
    except OSError:  # it is gone
        return
    ours = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    if sys.path and sys.path[0] in ("", folder) and folder != ours:
        del sys.path[0]


if __name__ == "__main__":
    main()
