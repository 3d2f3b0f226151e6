"""Differentially private training that is fair to every group."""

from fairdp._fairdp import __version__

__all__ = ["__version__"]
