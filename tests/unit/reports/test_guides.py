"""Guides: their list is that of the files, each is of a readable length, an unknown topic names the nearest."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

import fastsim
from fastsim.errors import FastsimError, ScenarioError
from fastsim.reports import guides

FOLDER = Path(fastsim.__file__).parent / "guides"


def test_every_file_is_a_topic() -> None:
    assert sorted(guides.TOPICS) == sorted(path.stem for path in FOLDER.glob("*.md"))
    assert len(guides.TOPICS) <= 15, "more than a reader looks through: join two"


@pytest.mark.parametrize("topic", guides.TOPICS)
def test_a_guide_has_a_title_and_a_readable_length(topic: str) -> None:
    text = guides.guide(topic)
    assert text.startswith(f"# {guides.title(topic)}\n")
    assert 25 <= len(text.splitlines()) <= 150


@pytest.mark.parametrize(
    ("topic", "told"),
    [
        ("traces", "Results join with your table on your own `pod_id`, in any order"),
        ("traces", "an id in two rows is refused"),
        ("policies", "A scorer is called for every pod, so work on whole arrays"),
    ],
)
def test_a_guide_answers_what_readers_have_asked(topic: str, told: str) -> None:
    assert told in " ".join(guides.guide(topic).split())


def test_an_unknown_topic_names_the_nearest() -> None:
    with pytest.raises(ScenarioError, match="'kubernetes'"):
        guides.guide("kubernets")
    with pytest.raises(ScenarioError, match="one of evaluation, pods, rounds"):
        guides.guide("xyzzy")


@pytest.mark.skipif(find_spec("mkdocs") is not None, reason="mkdocs is installed")
def test_a_site_without_its_extra_says_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(FastsimError, match=r"fastsim-gpu\[docs\]"):
        guides.write_site(tmp_path / "site")
    assert not (tmp_path / "site").exists()


@pytest.mark.skipif(find_spec("mkdocs") is None, reason="mkdocs is not installed (extra docs)")
def test_the_site_has_a_page_for_each_guide_and_the_reference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    site = guides.write_site("site")
    assert {f"{topic}.html" for topic in guides.TOPICS} <= {path.name for path in site.iterdir()}
    for look in ("", ": light", ": dark"):
        assert f'data-md-color-media="(prefers-color-scheme{look})"' in (site / "index.html").read_text(
            encoding="utf-8"
        )
    reference = (site / "reference.html").read_text(encoding="utf-8")
    assert "simulate" in reference and "max_min_fairness" not in (site / "index.html").read_text(encoding="utf-8")
