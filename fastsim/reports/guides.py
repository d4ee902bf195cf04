"""Guides that ship with the package, one Markdown file per topic: their list, their text, and a site built from them.

The site is made by MkDocs (extra ``docs``) from the guides and from the docstrings of the public names.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import inspect
import logging
import os
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory

from fastsim.errors import FastsimError, ScenarioError
from fastsim.foundation.folder_lock import held
from fastsim.foundation.parquet import replacing_folder

TOPICS = (
    "evaluation", "pods", "rounds", "adaptive", "traces", "policies", "kubernetes", "telemetry",
    "capacity", "sweeps", "papers", "originals", "figures", "agents", "exactness",
)  # fmt: skip
"""Topics in the order in which they are listed; each is a file of ``fastsim/guides``."""
NEEDED = ("mkdocs", "material", "mkdocstrings")
"""Modules of the extra ``docs``."""


def guide(topic: str) -> str:
    """The Markdown text of a topic; ScenarioError with the nearest topics for an unknown one."""
    if topic not in TOPICS:
        near = difflib.get_close_matches(topic, TOPICS, n=1)
        raise ScenarioError("topic", repr(topic), f"{near[0]!r}?" if near else f"one of {', '.join(TOPICS)}")
    return files("fastsim").joinpath("guides", f"{topic}.md").read_text(encoding="utf-8")


def title(topic: str) -> str:
    """The heading of a guide."""
    return guide(topic).partition("\n")[0].removeprefix("# ")


def write_site(folder: str | os.PathLike[str], overwrite: bool = False) -> Path:
    """Write the guides and the API reference as a site of static pages, complete or not at all."""
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise FastsimError(f"the site needs {', '.join(missing)}: pip install 'fastsim-gpu[docs]'")
    target = Path(folder)
    with TemporaryDirectory() as sources, held(target, overwrite), replacing_folder(target) as partial:
        _write_pages(Path(sources))
        _build(Path(sources), partial.absolute())  # MkDocs counts relative ones from its sources
    return target


def _write_pages(sources: Path) -> None:
    pages = {f"{topic}.md": guide(topic) for topic in TOPICS}
    pages["index.md"] = "# fastsim\n\n" + "".join(f"- [{title(topic)}]({topic}.md)\n" for topic in TOPICS)
    pages["reference.md"] = "# Reference\n\n" + "".join(
        f"## {name}\n\n::: {path}\n\n" for name, path in _public_names()
    )
    (sources / "docs").mkdir()
    for name, text in pages.items():
        (sources / "docs" / name).write_text(text, encoding="utf-8")


def _public_names() -> Iterator[tuple[str, str]]:
    """Names of ``fastsim`` and ``fastsim.policies`` that have docstrings, and where each is defined."""
    for prefix, module in (("", "fastsim"), ("policies.", "fastsim.policies")):
        package = importlib.import_module(module)
        for name in sorted(dir(package)):
            value = getattr(package, name)
            if inspect.isclass(value) or inspect.isfunction(value):
                yield prefix + name, f"{value.__module__}.{value.__qualname__}"


def _build(sources: Path, site: Path) -> None:
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    logging.getLogger("mkdocs").setLevel(logging.ERROR)
    logging.getLogger("griffe").setLevel(logging.ERROR)
    options = {"show_root_heading": False, "show_source": False, "heading_level": 3, "show_signature_annotations": True}
    names = [{title(topic): f"{topic}.md"} for topic in TOPICS]
    (sources / "mkdocs.yml").write_text("site_name: fastsim\n", encoding="utf-8")
    config = load_config(
        config_file=str(sources / "mkdocs.yml"),
        site_name="fastsim",
        docs_dir=str(sources / "docs"),
        site_dir=str(site),
        use_directory_urls=False,
        theme={"name": "material", "font": False, "palette": _palette()},
        markdown_extensions=["tables", "fenced_code", "pymdownx.highlight", "pymdownx.superfences", "toc"],
        plugins=["search", {"mkdocstrings": {"handlers": {"python": {"options": options}}}}],
        nav=[{"Guides": [{"Overview": "index.md"}, *names]}, {"Reference": "reference.md"}],
    )
    build(config)


def _palette() -> list[dict[str, object]]:
    """Colours as the reader's system has them, or light or dark as a button of the page chooses, in turn."""
    looks = (("", "auto", "light"), (": light", "7", "dark"), (": dark", "4", "system"))
    return [
        {
            "media": f"(prefers-color-scheme{look})",
            "scheme": "slate" if look == ": dark" else "default",
            "primary": "indigo",
            "toggle": {"icon": f"material/brightness-{icon}", "name": f"Colours: {then}"},
        }
        for look, icon, then in looks
    ]
