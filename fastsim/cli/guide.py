"""The verb guide: the guides of the package in the terminal, or as a site."""

from __future__ import annotations

from pathlib import Path

import click


@click.command(epilog="Example: fastsim guide kubernetes")
@click.argument("topic", required=False)
@click.option(
    "--html", type=click.Path(path_type=Path), metavar="DIR",
    help="Build a site of all guides and the API; its search needs a web server.",
)  # fmt: skip
@click.option("--force", is_flag=True, help="Replace a site that is there.")
def guide(topic: str | None, html: Path | None, force: bool) -> None:
    """List the guides, show the one on TOPIC, or build a site of them."""
    from fastsim.reports import guides

    if html is not None:
        if topic:
            raise click.UsageError("--html builds the site of all guides: leave TOPIC out")
        click.echo(f"{guides.write_site(html, overwrite=force)}/index.html")
    elif topic:
        _show(guides.guide(topic))
    else:
        width = max(map(len, guides.TOPICS))
        click.echo("\n".join(f"{name:<{width}}  {guides.title(name)}" for name in guides.TOPICS))


def _show(text: str) -> None:
    """Markdown rendered for a terminal, and as it is for a pipe."""
    from rich.console import Console
    from rich.markdown import Markdown

    console = Console()
    if console.is_terminal:
        console.print(Markdown(text))
    else:
        click.echo(text, nl=False)
