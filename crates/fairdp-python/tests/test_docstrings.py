"""Every example in a docstring gives what it says."""

from __future__ import annotations

import doctest
import importlib

import pytest

MODULES = ("fairdp", "fairdp.accounting", "fairdp.clipping", "fairdp.estimator", "fairdp.metrics")
OPACUS = ("fairdp.opacus", "fairdp.opacus.accountant")


@pytest.mark.parametrize("name", MODULES + OPACUS)
def test_examples_hold(name):
    if name in OPACUS:
        pytest.importorskip("opacus")
    failed, attempted = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert attempted > 0 and failed == 0
