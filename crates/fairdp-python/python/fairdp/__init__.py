"""Differentially private training that is fair to every group.

>>> import fairdp
>>> bound = fairdp.accounting.epsilon(
...     noise_multiplier=1, sampling_rate=256/36178, steps=2826, delta=1e-6)
>>> print(bound)
epsilon at most 2.4133 (certified), at least 2.4132, at delta 1e-6, by contour integral

Modules are imported when they are used first: what needs scikit-learn or PyTorch does not keep the
rest from being imported without them.
"""

from importlib import import_module as _import_module

from fairdp._fairdp import AccountingError, ClipError, FairDPError, MetricError, __version__
from fairdp._leaks import CompositionWarning, NotPrivateWarning, PrivacyLeakWarning, UnmatchedValuesWarning

_MODULES = ("accounting", "clipping", "metrics", "tables")
_TABLES = ("Exported", "Release", "export", "fit", "init", "keygen", "load", "plan", "predict", "sign", "verify")

__all__ = [
    "AccountingError",
    "Audit",
    "ClipError",
    "CompositionWarning",
    "FairDPError",
    "MetricError",
    "NotPrivateWarning",
    "PrivacyLeakWarning",
    "UnmatchedValuesWarning",
    "__version__",
    "audit",
    *_MODULES,
    *_TABLES,
]


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return _import_module(f"fairdp.{name}")
    if name in _TABLES:
        return getattr(_import_module("fairdp.tables"), name)
    if name in ("Audit", "audit"):
        return getattr(_import_module("fairdp._audit"), name)
    if name == "FairDPClassifier":
        return _import_module("fairdp.estimator").FairDPClassifier
    if name == "FairDPRegressor":
        return _import_module("fairdp.regressor").FairDPRegressor
    raise AttributeError(f"module 'fairdp' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "FairDPClassifier", "FairDPRegressor"})
