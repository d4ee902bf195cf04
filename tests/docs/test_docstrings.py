"""Examples in docstrings are run."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import warnings

import pytest

import fastsim
from fastsim.errors import FastsimError

MODULES = ["fastsim", *(m.name for m in pkgutil.walk_packages(fastsim.__path__, "fastsim."))]


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples(name: str) -> None:
    try:
        module = importlib.import_module(name)
    except FastsimError as lacking:  # a library of users that no extra brings
        pytest.skip(str(lacking))
    for lazy in dir(module):  # names that are loaded at first use would change the module while it is searched
        getattr(module, lazy)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an example may show a warning; its output is what counts
        result = doctest.testmod(
            importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
        )
    assert result.failed == 0
