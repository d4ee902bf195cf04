"""No garbage collection inside, and the state from before afterwards."""

from __future__ import annotations

import gc

import pytest

from fastsim.foundation.limits.garbage import FEW, settled, uncollected


def test_collection_is_off_inside_and_as_before_afterwards() -> None:
    with pytest.raises(ValueError, match="inside"), uncollected():
        with uncollected():
            assert not gc.isenabled()
        assert not gc.isenabled()
        raise ValueError("inside")
    assert gc.isenabled()


def test_collection_that_was_off_stays_off() -> None:
    gc.disable()
    try:
        with uncollected():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def made() -> list[list[int]]:
    """Enough objects that stay."""
    with uncollected():
        return [[] for _ in range(FEW + 1)]


def test_what_was_made_is_left_out_until_the_command_ends() -> None:
    gc.unfreeze()
    kept = [made()]
    assert not gc.get_freeze_count()
    with settled():
        kept.append(made())
        assert gc.get_freeze_count() > FEW
    assert not gc.get_freeze_count()


def test_objects_that_others_have_frozen_stay_frozen() -> None:
    gc.freeze()
    frozen = gc.get_freeze_count()
    with settled():
        kept = made()
    assert len(kept) <= frozen and 0 < gc.get_freeze_count() <= frozen
    kept = made()
    assert 0 < gc.get_freeze_count() <= frozen
    gc.unfreeze()


def test_few_objects_are_left_to_the_collector() -> None:
    with settled():
        with uncollected():
            few: list[list[int]] = [[] for _ in range(FEW // 2)]
        assert few and not gc.get_freeze_count()
