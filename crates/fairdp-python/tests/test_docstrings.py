"""Every example in a docstring gives what it says."""

from __future__ import annotations

import doctest
import importlib

import pytest

MODULES = ("fairdp", "fairdp.accounting", "fairdp.clipping", "fairdp.estimator", "fairdp.metrics")


@pytest.mark.parametrize("name", MODULES)
def test_examples_hold(name):
    failed, attempted = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert attempted > 0 and failed == 0
