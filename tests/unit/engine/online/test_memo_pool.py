"""The target workload as columns: worked out once, never shared with who writes to them."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

import fastsim as fs
from fastsim.engine.online.kernel_columns import ModelIds, typical_columns
from fastsim.engine.online.memo_pool import MOST_IDLE, MemoPool, memo_key, target
from fastsim_ext.select.state_memo import Memo

TYPICAL = fs.TypicalPods((1000, 4000), (500, 0), (1, 0), (("T4",), ()), (3, 2), (0.6, 0.4))
MODELS = ("T4", "P100")


def test_columns_and_key_are_those_of_the_target() -> None:
    plain = typical_columns(TYPICAL, ModelIds(MODELS))
    for _ in range(2):
        columns, key = target(TYPICAL, MODELS)
        assert memo_key(columns) == key == memo_key(plain)
        assert target(TYPICAL, MODELS[::-1])[1] != key


def test_who_writes_to_them_changes_nobody_elses() -> None:
    columns, key = target(TYPICAL, MODELS)
    columns["fit"][:] = 7
    columns["groups"]["scratch"][:] = 7
    again, _ = target(TYPICAL, MODELS)
    assert not np.any(again["fit"] == 7) and not np.any(again["groups"]["scratch"] == 7)
    assert memo_key(again) == key


def test_a_target_made_of_lists_will_do() -> None:
    lists: Any = (["T4"], [])
    listed = dataclasses.replace(TYPICAL, gpu_models=lists)
    assert target(listed, MODELS)[1] == target(TYPICAL, MODELS)[1]


def test_few_memos_are_idle_whatever_their_size() -> None:
    pool = MemoPool()
    memos = [Memo(2, 1, 1 << 20) for _ in range(MOST_IDLE + 3)]
    for number, memo in enumerate(memos):
        pool.release(str(number), memo)
    assert pool.acquire("2", 2, 1, 1 << 20) is not memos[2]  # dropped with those before it
    assert pool.acquire("3", 2, 1, 1 << 20) is memos[3]


def test_idle_memos_have_a_limit_of_bytes() -> None:
    first, second = Memo(2, 1, 1 << 20), Memo(2, 1, 1 << 20)
    pool = MemoPool(most_bytes=first.bytes + second.bytes - 1)
    pool.release("a", first)
    pool.release("b", second)
    assert pool.acquire("a", 2, 1, 1 << 20) is not first and pool.acquire("b", 2, 1, 1 << 20) is second
