"""Whether the parameters of the estimators are in range: every refusal names the parameter."""

from __future__ import annotations

import math
import os
import re
import sys
from collections.abc import Iterable, Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np

from fairdp._fairdp import FairDPError
from fairdp._values import shown

_CHOICES = {
    "model": ("auto", "additive", "mlp", "network"),
    "fairness": ("none", "worst-group", "equalized-odds", "equal-opportunity", "demographic-parity"),
    "decision": ("accuracy", "compromise", "balanced"),
    "unit_rows": ("first", "mean"),
}
_TARGETS = ("last", "maximum", "each-class")
_NUMBER_TARGETS = ("last", "maximum", "mean")
_NUMBER_KEYS = ("decimal", "thousands", "unit")
_DATE_FORMATS = ("iso", "day-first", "month-first", "epoch-seconds", "epoch-milliseconds")
_PARTS = ("year", "month", "weekday")
_OPTIONS = ("sampling_rate", "sampling", "steps", "learning_rate", "settings")
_FAIRNESS_OPTIONS = ("max_loss", "max_gap", "smallest", "one_threshold", "coins", "class")
_LEAST_DELTA = 1e-12

# Names of the estimators' parameters in a configuration.
_NAMES = {
    "privacy.epsilon": "epsilon",
    "privacy.delta": "delta",
    "privacy.total_epsilon": "total_epsilon",
    "test.fraction": "test_fraction",
    "unit.max_records": "max_records_per_unit",
    "unit.target": "unit_target",
    'unit.target = "each-class"': 'unit_target = "each-class"',
    'rows = "mean"': 'unit_rows = "mean"',
    "model.kind": "model",
    "model.hidden": "hidden",
    "model.network": "network",
    "model.decision": "decision",
    'model.objective = "equal-classes"': "class_weight = 'balanced'",
    "method.name": "method",
    "method.sampling_rate": 'method_options["sampling_rate"]',
    "method.sampling": 'method_options["sampling"]',
    "method.steps": 'method_options["steps"]',
    "method.learning_rate": 'method_options["learning_rate"]',
    "method.settings": 'method_options["settings"]',
    "label.classes": "classes",
    "--ledger FILE": "ledger=",
    "--from": "start_from",
}
_CONFIGURED = re.compile("|".join(re.escape(name) for name in sorted(_NAMES, key=len, reverse=True)))


# What a regressor does not have.
_OF_CLASSES: dict[str, Any] = {
    "model": "auto",
    "fairness": "none",
    "decision": "accuracy",
    "classes": None,
    "class_weight": None,
    "hidden": None,
    "network": None,
    "method_options": None,
    "fairness_options": None,
}


def check(parameters: Mapping[str, Any]) -> None:
    """Checks all that can be checked without a record."""
    given = {**_OF_CLASSES, **parameters}
    _real("epsilon", given["epsilon"], "a finite number above 0", lambda value: 0 < value < math.inf)
    expected = f"a number from {_LEAST_DELTA:g} to below 1"
    if given["delta"] is not None:
        _real("delta", given["delta"], expected, lambda value: _LEAST_DELTA <= value < 1)
    _real("test_fraction", given["test_fraction"], "a number from 0 to 0.9", lambda value: 0 <= value <= 0.9)
    if given["total_epsilon"] is not None:
        expected = f"a finite number of at least epsilon, {shown(given['epsilon'])}"
        least = float(given["epsilon"])
        _real("total_epsilon", given["total_epsilon"], expected, lambda value: least <= value < math.inf)
        if given["ledger"] is None:
            raise FairDPError(f"total_epsilon = {shown(given['total_epsilon'])}: expected with ledger=, which keeps it")
    if given["max_weight"] is not None:
        _real("max_weight", given["max_weight"], "a finite number above 0", lambda value: 0 < value < math.inf)
    if given["class_weight"] not in (None, "balanced") and not isinstance(given["class_weight"], Mapping):
        raise ValueError(f"class_weight = {shown(given['class_weight'])}: expected 'balanced' or a mapping from class to weight")
    if given["ledger"] is not None and not isinstance(given["ledger"], (str, os.PathLike)):
        raise TypeError(f"ledger = {shown(given['ledger'])}: expected the path of a file")
    if given["start_from"] is not None and not isinstance(given["start_from"], (str, os.PathLike)):
        raise TypeError(f"start_from = {shown(given['start_from'])}: expected the path of a run or a release")
    for name, most in (("bins", 4096), ("max_records_per_unit", 2**63 - 1)):
        if given[name] is not None:
            _whole(name, given[name], 1, most)
    if given["n_jobs"] is not None:
        _whole("n_jobs", given["n_jobs"], -1024, 1024)
        if given["n_jobs"] == 0:
            raise ValueError("n_jobs = 0: expected a number of threads, or -1 for all cores")
    of_numbers = {"fairness": ("none", "mean-error")} if "label_bounds" in parameters else {}
    for name, choices in {**_CHOICES, **of_numbers}.items():
        if not isinstance(given[name], str) or given[name] not in choices:
            raise ValueError(f"{name} = {shown(given[name])}: expected one of {', '.join(choices)}")
    targets = _NUMBER_TARGETS if "label_bounds" in parameters else _TARGETS
    _check_units(given["unit_rows"], given["unit_target"], given["max_records_per_unit"], targets)
    if isinstance(given["classes"], (str, bytes)) or not isinstance(given["classes"], (Iterable, type(None))):
        raise TypeError(f"classes = {shown(given['classes'])}: expected a list of classes")
    if given["hidden"] is not None:
        if np.ndim(given["hidden"]) != 1:
            raise ValueError(f"hidden = {shown(given['hidden'])}: expected a list of widths")
        for place, width in enumerate(given["hidden"]):
            _whole(f"hidden[{place}]", width, 1, 2**16)
    if given["network"] not in (None, "zhao-cnn", "esipova-cnn"):
        raise ValueError(f"network = {shown(given['network'])}: expected one of zhao-cnn, esipova-cnn")
    if not isinstance(given["method"], str):
        raise TypeError(f"method = {shown(given['method'])}: expected a name")
    missing = given["missing"]
    if not (missing is None or isinstance(missing, Mapping) or (isinstance(missing, str) and missing == "indicator")):
        raise ValueError(f'missing = {shown(missing)}: expected "indicator", or a mapping from column to number')
    for name, value in (missing or {}).items() if isinstance(missing, Mapping) else ():
        _real(f"missing[{name!r}]", value, "a finite number", math.isfinite)
    for name in ("categories", "vectors", "images", "formats", "parts", "groups", "bands", "method_options", "fairness_options"):
        if given[name] is not None and not isinstance(given[name], Mapping):
            raise TypeError(f"{name} = {shown(given[name])}: expected a mapping")
    for name, format in (given["formats"] or {}).items():
        _check_format(name, format)
    for name, parts in (given["parts"] or {}).items():
        if isinstance(parts, str) or not isinstance(parts, Iterable) or not all(part in _PARTS for part in parts):
            raise ValueError(f"parts: {name!r} has {shown(parts)}, expected a list of some of {', '.join(_PARTS)}")
    for name in given["method_options"] or {}:
        if name not in _OPTIONS:
            raise ValueError(f"method_options: {name!r} is unknown, expected some of {', '.join(_OPTIONS)}")
    for name, value in (given["fairness_options"] or {}).items():
        if name not in _FAIRNESS_OPTIONS:
            expected = ", ".join(_FAIRNESS_OPTIONS)
            raise ValueError(f"fairness_options: {name!r} is unknown, expected some of {expected}")
        if name == "smallest":
            _whole('fairness_options["smallest"]', value, 1, 2**53)
        elif name in ("one_threshold", "coins"):
            if not isinstance(value, (bool, np.bool_)):
                raise TypeError(f"fairness_options[{name!r}] = {shown(value)}: expected True or False")
        elif name == "class":
            if value is None or np.ndim(value) != 0:
                raise TypeError(f'fairness_options["class"] = {shown(value)}: expected one of the classes')
        else:
            _real(f"fairness_options[{name!r}]", value, "a number from 0 to 1", lambda value: 0 <= value <= 1)


def _check_units(rows: str, target: Any, most: Any, targets: tuple[str, ...]) -> None:
    if target is not None and (rows != "mean" or target not in targets):
        expected = f"one of {', '.join(targets)}, with unit_rows = 'mean'"
        raise ValueError(f"unit_target = {shown(target)}: expected {expected}")
    if rows == "mean" and most is not None:
        raise ValueError(f"max_records_per_unit = {shown(most)}: not with unit_rows = 'mean', which uses all rows of a unit")


def _check_format(name: str, format: Any) -> None:
    if isinstance(format, str) and format in _DATE_FORMATS:
        return
    is_of_number = isinstance(format, Mapping) and format and all(key in _NUMBER_KEYS for key in format)
    if not is_of_number or not all(isinstance(sign, str) and sign for sign in format.values()):
        expected = f"a mapping from some of {', '.join(_NUMBER_KEYS)} to texts, or one of {', '.join(_DATE_FORMATS)}"
        raise ValueError(f"formats: {name!r} has {shown(format)}, expected {expected}")


def seed(random_state: Any) -> int | None:
    """The seed of a run; none for a private one."""
    if random_state is None:
        return None
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    if not isinstance(random_state, Integral):
        raise ValueError(f"random_state = {shown(random_state)}: expected None, a whole number or a RandomState")
    return _whole("random_state", random_state, 0, 2**64 - 1)


def renamed(message: str) -> str:
    """A refusal of the library in the names of Python: it read a configuration that no person wrote."""
    message = re.sub(r"\bconfiguration(:\d+){0,2}: ", "", message)
    message = _CONFIGURED.sub(lambda name: _NAMES[name.group()], message)
    # A double is printed with all its zeros there.
    return re.sub(r"\d{21,}(\.\d+)?", lambda digits: shown(float(digits.group())), message)


def _real(name: str, value: Any, expected: str, is_in_range: Any) -> None:
    is_real = isinstance(value, Real) and not isinstance(value, (bool, np.bool_))
    # A whole number beyond the doubles is in no range, and has no double.
    is_double = is_real and abs(value) <= sys.float_info.max
    if not is_double or not is_in_range(float(value)):
        raise FairDPError(f"{name} = {shown(value)}: expected {expected}")


def _whole(name: str, value: Any, least: int, most: int) -> int:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Integral) or not least <= int(value) <= most:
        raise ValueError(f"{name} = {shown(value)}: expected a whole number from {least} to {shown(most)}")
    return int(value)

