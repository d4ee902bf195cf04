"""``-`` where a file may stand: standard input for what is read, standard output for what is written.

Readers and writers need files that they can seek in, so standard input is copied to a temporary file first, whose
ending is that of its content. Output goes to a temporary file, and to standard output once the file is complete; text
that a verb prints beside it goes to standard error. Each stream stands for one file of a command.
"""

from __future__ import annotations

import io
import re
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import click

from fastsim.cli.process_streams import Discarded

STREAM = "-"
BINARY = (".parquet",)
"""Endings of files that no terminal shows."""
HEAD_BYTES = 4096
GZIP = b"\x1f\x8b"
ENDINGS = (
    (re.compile(rb"PAR1"), ".parquet"),
    (re.compile(rb"\s*[\[{]"), ".json"),
    (re.compile(rb"(---|#.*\n)*\s*(apiVersion|kind|items|metadata):"), ".yaml"),
    (re.compile(rb"# (HELP|TYPE|UNIT|EOF)"), ".om"),
)
"""Patterns of the first bytes of a content, each with its file name ending; any other content is CSV."""
TEXT = re.compile(r"(?P<head>(?:[\w-]+:)?)-(?P<options>\?.*)?", re.DOTALL)
"""A text of a cluster or workload whose file is ``-``."""


class FileRead(click.Path):
    """A file that is read, or ``-``."""

    def __init__(self, kind: type = Path) -> None:
        super().__init__(path_type=kind)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The file, which for ``-`` has the content of standard input."""
        if value == STREAM and ctx is not None:
            value = _from_input(ctx)
        return super().convert(value, param, ctx)


class TextRead(click.types.StringParamType):
    """The text of a cluster or workload; ``-``, ``HEAD:-`` and ``HEAD:-?options`` read standard input."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The text, with the file that has the content of standard input."""
        found = TEXT.fullmatch(value) if isinstance(value, str) else None
        if found is None or ctx is None:
            return value
        return f"{found['head']}{_from_input(ctx)}{found['options'] or ''}"


class FileWritten(click.Path):
    """A file that is written, or ``-``, whose format is that of ``ending``."""

    def __init__(self, ending: str) -> None:
        super().__init__(path_type=Path, dir_okay=False)
        self.ending = ending

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The file, whose content goes to standard output at the end if it is ``-``."""
        if value == STREAM and ctx is not None:
            value = _to_output(ctx, self.ending)
        return super().convert(value, param, ctx)


READ, READ_NAME, READ_TEXT = FileRead(), FileRead(str), TextRead()


def refuse_output(ending: str) -> None:
    """Refuse standard output for a file if it is closed, and for a binary file if it is a terminal."""
    if isinstance(sys.stdout, Discarded):
        raise click.UsageError("'-' is standard output, which is closed here: expected a file or a pipe")
    if ending in BINARY and sys.stdout.isatty():
        raise click.UsageError(f"'-' is the terminal here, and a {ending} file is binary: expected a file or a pipe")


def _from_input(ctx: click.Context) -> str:
    """The path of a file with all of standard input."""
    import shutil

    root = ctx.find_root()
    folder = _own_folder(root, "input")
    if sys.stdin is None:
        raise click.UsageError("'-' is standard input, which is closed here: expected a file or a pipe")
    if sys.stdin.isatty():
        raise click.UsageError("'-' is the terminal here: expected a file, or standard input from a pipe")
    path = folder / "standard-input"
    with path.open("wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    named = path.rename(path.with_name(path.name + _ending(path)))
    _note(root, str(named))
    return str(named)


def _ending(path: Path) -> str:
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
    packed = head.startswith(GZIP)
    if packed:
        import gzip
        import zlib

        try:
            with gzip.open(path) as content:
                head = content.read(HEAD_BYTES)
        except (OSError, EOFError, zlib.error):  # the reader names what is wrong with it
            head = b""
    kind = next((ending for pattern, ending in ENDINGS if pattern.match(head)), ".csv")
    return kind + ".gz" * packed


def _to_output(ctx: click.Context, ending: str) -> str:
    """The path of a file that is copied to standard output when the command ends, if it was written by then."""
    refuse_output(ending)
    root, stream = ctx.find_root(), sys.stdout
    path = _own_folder(root, "output") / f"standard-output{ending}"
    _note(root, str(path))
    beside = io.StringIO()

    def hand_over() -> None:
        sys.stderr.write(beside.getvalue().replace(str(path), STREAM))
        if path.is_file():
            stream.flush()
            with path.open("rb") as file:
                _pass_on(file, stream)

    root.call_on_close(hand_over)
    root.with_resource(redirect_stdout(beside))
    return str(path)


def _pass_on(file: Any, stream: Any) -> None:
    if hasattr(stream, "buffer"):
        import shutil

        shutil.copyfileobj(file, stream.buffer)
        stream.buffer.flush()
    else:  # standard output is replaced by a stream of text
        stream.write(file.read().decode())


def _own_folder(root: click.Context, stream: str) -> Path:
    """A temporary folder for the one file that a stream stands for."""
    from tempfile import TemporaryDirectory

    used = root.meta.setdefault(__name__, set())
    if stream in used:
        raise click.UsageError(f"'-' stands for standard {stream} twice: expected one file of a command")
    used.add(stream)
    return Path(root.with_resource(TemporaryDirectory(prefix="fastsim-")))


def _note(root: click.Context, path: str) -> None:
    """Let messages name the file as ``-``."""
    if root.obj is not None:
        root.obj.streams.append(path)
