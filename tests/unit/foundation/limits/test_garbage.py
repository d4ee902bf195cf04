"""No garbage collection inside, and the state from before afterwards."""

from __future__ import annotations

import gc

import pytest

from fastsim.foundation.limits.garbage import uncollected


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
