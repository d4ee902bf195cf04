"""No garbage collection inside, and the state from before afterwards."""

from __future__ import annotations

import gc

import pytest

from fastsim.foundation.limits.garbage import settled, uncollected


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


def test_what_was_made_is_left_out_until_the_command_ends() -> None:
    gc.unfreeze()
    with uncollected():
        pass
    assert not gc.get_freeze_count()
    with settled():
        with uncollected():
            pass
        assert gc.get_freeze_count()
    assert not gc.get_freeze_count()
    gc.freeze()
    frozen = gc.get_freeze_count()
    with settled(), uncollected():
        pass
    assert 0 < gc.get_freeze_count() <= frozen
    gc.unfreeze()
