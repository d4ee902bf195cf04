"""Pages and scripts in HTML: what is between the tags of a script is written here alone, so that no name ends it.

A browser ends a script at the next ``</script``, also inside a text of the program, and ``<!--`` hides the end that is
meant. Names are the user's, or those of another's cluster, and may be either.
"""

from __future__ import annotations

import json
import re
from html import escape
from typing import Any

HEAD = '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
SIGNS = {"<": "\\u003c", ">": "\\u003e", "\u2028": "\\u2028", "\u2029": "\\u2029"}
"""Signs that JSON has in texts only and that mean something to a browser or in JavaScript, with other spellings."""
TAGS = re.compile(r"</?script|<!--", re.IGNORECASE)
"""Text that a program must not have inside its element."""
CHART = """
const place = document.getElementById("chart");
vegaEmbed(place, JSON.parse(document.getElementById("spec").textContent), { renderer: "svg" })
  .then(() => { place.dataset.ready = "yes"; }, (problem) => console.error(problem));
"""


def page(title: str, body: str, *, head: str = "", style: str = "") -> str:
    """A whole document; all but the title is HTML."""
    styled = f"<style>{style}</style>" if style else ""
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head>{HEAD}{head}<title>{escape(title)}</title>{styled}</head>'
        f"<body>{body}</body></html>\n"
    )


def data_script(document: str, name: str) -> str:
    """A JSON text that scripts of the page find under the name."""
    return f'<script type="application/json" id="{escape(name)}">{script_json(document)}</script>'


def code_script(code: str) -> str:
    """A program of ours or of a library, which has no names in it; ValueError if a part of it means a tag."""
    if found := TAGS.search(code):
        raise ValueError(f"found {found[0]!r} in a program, expected none of {TAGS.pattern}")
    return f"<script>{code}</script>"


def script_json(document: str) -> str:
    """The same JSON without a sign that means something to a browser."""
    for sign, spelled in SIGNS.items():
        document = document.replace(sign, spelled)
    return document


def chart_page(spec: str, title: str, scripts: str) -> str:
    """A page of one chart, whose specification is JSON and which ``scripts`` draw."""
    body = f'<div id="chart"></div>{data_script(spec, "spec")}{code_script(CHART)}'
    return page(title, body, head=code_script(scripts))


class ScriptEncoder(json.JSONEncoder):
    """Writes JSON that may stand in a script."""

    def encode(self, o: Any) -> str:
        """The value as JSON."""
        return script_json(super().encode(o))
