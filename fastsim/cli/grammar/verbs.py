"""Groups of verbs with one that may be left out: `fastsim sweep FILE` is `fastsim sweep run FILE`."""

from __future__ import annotations

from typing import Any, ClassVar

import click


class UsualVerb(click.Group):
    """A group in which words that name no verb are those of its usual one."""

    usual: ClassVar[str] = "run"

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """The verb and its arguments."""
        if args and args[0] not in self.commands:
            args = [self.usual, *args]
        return super().resolve_command(ctx, args)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """The arguments that are left."""
        if args and args[0].startswith("-") and args[0] not in ("-h", "--help"):
            args = [self.usual, *args]  # options may come before the file
        return super().parse_args(ctx, args)
