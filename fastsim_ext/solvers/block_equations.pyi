"""Newton's equations of cone programs whose jobs meet only in the GPUs and in one level.

The steps are those of ``tests/reference/rounds/block_equations.py``, without numpy; that module explains the numbers.
"""
