"""No name ends a script: pages are built by one module, and so is the JSON in them."""

from __future__ import annotations

import json

import pytest

from fastsim.reports.charts.html_page import ScriptEncoder, chart_page, code_script, data_script, page, script_json
from tests.hostile_names import NAMES, content_of


@pytest.mark.parametrize("name", NAMES)
def test_json_in_a_script_is_the_same_value_and_ends_nothing(name: str) -> None:
    for document in (json.dumps({name: [name]}), json.dumps({name: [name]}, ensure_ascii=False)):
        safe = script_json(document)
        assert json.loads(safe) == {name: [name]} and not set(safe) & {"<", ">", "\u2028", "\u2029"}
        assert content_of(page(name, data_script(document, "spec"))).data == {"spec": {name: [name]}}
    assert json.dumps({name: name}, cls=ScriptEncoder) == script_json(json.dumps({name: name}))


@pytest.mark.parametrize("name", NAMES)
def test_a_title_is_text(name: str) -> None:
    whole = content_of(chart_page("{}", name, "let drawn;"))
    assert whole.programs[0] == "let drawn;" and len(whole.programs) == 2 and whole.data == {"spec": {}}
    assert "".join(whole.title.split()) == "".join(name.split())


@pytest.mark.parametrize("code", ["'</script>'", "'</SCRIPT'", "'<script>'", "x <!--y"])
def test_programs_have_no_tags(code: str) -> None:
    with pytest.raises(ValueError, match="in a program"):
        code_script(code)
