"""Groups of verbs with one that may be left out: `fastsim sweep FILE` is `fastsim sweep run FILE`."""

from __future__ import annotations

import os
from typing import Any, ClassVar

import click

from fastsim.errors import suggestion


class UsualVerb(click.Group):
    """A group in which words that name no verb are those of its usual one."""

    usual: ClassVar[str] = "run"

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """The verb and its arguments."""
        if args and args[0] not in self.commands:
            self._refuse_other_words(args)
            args = [self.usual, *args]
        return super().resolve_command(ctx, args)

    def _refuse_other_words(self, args: list[str]) -> None:
        """UsageError for a word before a path that is neither a verb nor a path; click complains about the path."""
        word, *rest = args
        if rest and not rest[0].startswith("-") and word != "-" and not os.path.exists(word):
            near = suggestion(word, self.commands)
            expected = f"one of {', '.join(self.commands)}, or a path"
            raise click.UsageError(f"found {word!r}, expected {expected}" + (f": {near}" if near else ""))

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """The arguments that are left."""
        if args and args[0].startswith("-") and args[0] not in ("-h", "--help"):
            args = [self.usual, *args]  # options may come before the file
        return super().parse_args(ctx, args)
