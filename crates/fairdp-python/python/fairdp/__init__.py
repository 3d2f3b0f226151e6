"""Differentially private training that is fair to every group."""

from fairdp._fairdp import MetricError, __version__

__all__ = ["MetricError", "__version__"]
