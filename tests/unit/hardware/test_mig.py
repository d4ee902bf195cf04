"""Partitioned GPUs: the table's facts, which layouts fit, texts, and what is refused."""

from __future__ import annotations

import re
from collections import Counter
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastsim.errors import InputError
from fastsim.hardware import mig

A100 = mig.profiles()["A100-40GB"]
MAXIMAL = {
    "7g.40gb", "4g.20gb+3g.20gb", "2*3g.20gb", "3g.20gb+2*2g.10gb", "3g.20gb+2g.10gb+2*1g.5gb", "3g.20gb+4*1g.5gb",
    "4g.20gb+2g.10gb+1g.5gb", "4g.20gb+3*1g.5gb", "3*2g.10gb+1g.5gb", "2*2g.10gb+3*1g.5gb", "2g.10gb+5*1g.5gb",
    "7*1g.5gb",
}  # fmt: skip
"""NVIDIA's combinations for an A100 of 40 GB to which nothing can be added, without the double-memory profile."""


def test_the_combinations_of_an_a100_are_the_documented_ones() -> None:
    names = ("1g.5gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb")
    every = [Counter(dict(zip(names, counts, strict=True))) for counts in product(range(8), repeat=len(names))]
    fitting = [+counts for counts in every if mig.fit(+counts, A100)]
    maximal = [one for one in fitting if not any(one < other for other in fitting)]
    assert {frozenset(one.items()) for one in maximal} == {frozenset(mig.counted(text).items()) for text in MAXIMAL}


@pytest.mark.parametrize("model", mig.profiles())
def test_every_profile_is_what_its_name_says(model: str) -> None:
    for name, profile in mig.profiles()[model].items():
        compute, gigabytes = map(int, re.fullmatch(r"(\d)g\.(\d+)gb(?:\+me)?", name).groups())  # type: ignore[union-attr]
        assert profile.compute_slices == compute <= profile.gpu_slices
        assert 0.85 * gigabytes * 1024 < profile.memory_mib <= gigabytes * 1024
        assert mig.fit({name: profile.instances}, mig.profiles()[model])
        assert not mig.fit({name: profile.instances + 1}, mig.profiles()[model])


def test_one_resource_is_one_share_of_a_gpu() -> None:
    shares: dict[str, set[int]] = {}
    for known in mig.profiles().values():
        for profile in known.values():
            shares.setdefault(profile.resource, set()).add(profile.gpu_milli)
    assert all(len(milli) == 1 for milli in shares.values())
    assert shares["mig-1g.5gb"] == {142} and shares["mig-4g.20gb"] == {571} and shares["mig-7g.80gb"] == {1000}
    assert shares["mig-1g.6gb"] == {250} and shares["mig-1g.5gb.me"] == {142}


def test_places_have_to_line_up() -> None:
    # The double-memory profile begins at even slices: beside two of three slices there is room for none.
    assert mig.fit({"1g.10gb": 4}, A100) and mig.fit({"3g.20gb": 1, "1g.10gb": 2}, A100)
    assert not mig.fit({"3g.20gb": 2, "1g.10gb": 1}, A100)
    assert not mig.fit({"4g.20gb": 1, "2g.10gb": 2}, A100), "the last two slices hold no second one"


def test_the_media_engines_are_there_once() -> None:
    a30 = mig.profiles()["A30"]
    assert mig.fit({"1g.6gb+me": 1, "1g.6gb": 3}, a30)
    assert not mig.fit({"1g.6gb+me": 1, "2g.12gb+me": 1}, a30)


@given(st.sampled_from(sorted(mig.profiles())), st.data())
def test_less_fits_where_more_fits_and_slices_are_enough(model: str, data: st.DataObject) -> None:
    known = mig.profiles()[model]
    names = data.draw(st.lists(st.sampled_from(sorted(known)), min_size=1, max_size=7))
    if mig.fit(Counter(names), known):
        assert mig.fit(Counter(names[1:]), known)
        assert sum(known[name].compute_slices for name in names) <= known[names[0]].gpu_slices
        assert sum(known[name].memory_slices for name in names) <= max(p.memory_slices for p in known.values())
        assert sum(known[name].gpu_milli for name in names) <= mig.WHOLE


def test_texts() -> None:
    assert mig.counted(" 2*1g.5gb + 1g.5gb+me+1g.5gb") == {"1g.5gb": 3, "1g.5gb+me": 1}
    assert mig.request("1g.5gb+me") == [("mig-1g.5gb.me", 1)]
    assert mig.layouts("7*1g.5gb", 2) == ["7*1g.5gb", "7*1g.5gb"]
    assert mig.layouts("7*1g.5gb;", 2) == ["7*1g.5gb", ""] and mig.layouts(None, 2) == ["", ""]
    assert mig.layout_text(["", "7*1g.5gb", None]) == ";7*1g.5gb;"
    assert mig.layout_text(["", ""]) is mig.layout_text("") is mig.layout_text(None) is None
    assert mig.instances("2g.10gb+1g.5gb;;1g.5gb", 3) == (2, (("mig-1g.5gb", 2), ("mig-2g.10gb", 1)))
    assert mig.instances(None, 3) == (0, ())


@pytest.mark.parametrize("text", ["+", "1g.5gb+", "me", "0*1g.5gb", "-1*1g.5gb", "1g.5gb*2", "9999999*1g.5gb"])
def test_texts_that_mean_nothing(text: str) -> None:
    with pytest.raises(ValueError, match=re.escape(text)):
        mig.counted(text)


def test_names_of_resources() -> None:
    assert mig.resource_name("nvidia.com/mig-1g.5gb") == mig.resource_name("mig-1g.5gb") == "mig-1g.5gb"
    assert mig.resource_name("nvidia.com/gpu") == "nvidia.com/gpu"
    assert mig.gpu_milli([("mig-1g.5gb", 2), ("nic", 7), ("mig-3g.20gb", 1)]) == 2 * 142 + 428
    assert mig.request_fault([("nic", 2**40), ("mig-1g.5gb", 3)]) is None
    assert "one of: mig-1g.6gb, " in (mig.request_fault([("mig-1g.4gb", 1)]) or "")
    assert "at most" in (mig.request_fault([("mig-1g.5gb", 2**21)]) or "")


@pytest.mark.parametrize(
    ("text", "gpus", "model", "words"),
    [
        ("1g.5gb", 0, None, ["'1g.5gb'", "null, because num_gpu is 0"]),
        ("1g.5gb", 2, "T4", ["'1g.5gb' on T4", "a model that can be partitioned: A30, A100-40GB"]),
        ("1g.10gb;1g.5gb", 2, "A100", ["profile '1g.5gb' on A100", "one of: 1g.10gb, "]),
        ("7*1g.5gb;;", 2, "A100-40GB", ["3 layouts", "one for all GPUs or one for each of 2"]),
        ("1g.5gb,1g.5gb", 1, "A100-40GB", ["'1g.5gb,1g.5gb'", "'3g.20gb+4g.20gb' or '2*1g.5gb'"]),
        ("8*1g.5gb", 1, "A100-40GB", ["'8*1g.5gb'", "fit on one A100-40GB", "7 of 1g.5gb"]),
        (";4g.20gb+2*2g.10gb", 2, "A100-40GB", ["'4g.20gb+2*2g.10gb'", "fit on one"]),
    ],
)
def test_impossible_layouts(text: str, gpus: int, model: str | None, words: list[str]) -> None:
    with pytest.raises(InputError) as error:
        mig.refuse("nodes.csv:3: mig", text, gpus, model)
    assert all(word in str(error.value) for word in ["nodes.csv:3: mig", *words]), str(error.value)
