"""Job types: their number and order, and fields that a line of a trace can hold."""

from __future__ import annotations

from fastsim.performance.gavel_job_types import JOB_NAMES, JOB_TYPES


def test_the_order_that_random_choices_count() -> None:
    assert len(JOB_NAMES) == len(set(JOB_NAMES)) == 26
    assert JOB_NAMES[0] == "ResNet-18 (batch size 16)" and JOB_NAMES[-2:] == ("A3C", "CycleGAN")
    families = list(dict.fromkeys(name.split(" (")[0] for name in JOB_NAMES))
    assert families == ["ResNet-18", "ResNet-50", "Transformer", "LM", "Recommendation", "A3C", "CycleGAN"]


def test_fields_fit_into_a_line() -> None:
    for kind in JOB_TYPES:
        assert not any("\t" in text or not text for text in kind[:4]) and "{" not in kind.command
        size = kind.name.partition("batch size ")[2].rstrip(")")
        assert size in kind.command
        assert kind.needs_data == ("%s" in kind.command)
