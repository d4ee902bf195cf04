"""Results as JSON on standard output."""

from __future__ import annotations

from typing import Any

import click


def print_json(value: Any) -> None:
    """Print a value that JSON can say; what it cannot, such as a path, as its text."""
    import json

    click.echo(json.dumps(value, indent=2, default=str))
