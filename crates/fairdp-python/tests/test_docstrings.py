"""Every example in a docstring gives what it says."""

from __future__ import annotations

import doctest
import importlib

import pytest

MODULES = ("fairdp", "fairdp.accounting", "fairdp.clipping", "fairdp.estimator", "fairdp.metrics", "fairdp.opacus")


@pytest.mark.parametrize("name", MODULES)
def test_examples_hold(name):
    if name == "fairdp.opacus":
        pytest.importorskip("opacus")
    failed, attempted = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert attempted > 0 and failed == 0
