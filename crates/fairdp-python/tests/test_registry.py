"""What `fairdp export registry` writes is valid by the schema of the registry that it is for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

jsonschema = pytest.importorskip("jsonschema")
yaml = pytest.importorskip("yaml")

HERE = Path(__file__).parent / "registry"


def test_an_entry_is_valid_and_each_field_is_filled_or_named() -> None:
    text = (HERE / "entry.yaml").read_text("utf-8")
    schema, entry = (yaml.safe_load(part) for part in [(HERE / "deployments-schema.yaml").read_text("utf-8"), text])
    validator = jsonschema.Draft202012Validator(schema, format_checker=jsonschema.FormatChecker())

    def problems(entry: object) -> list[str]:
        return [error.message for error in validator.iter_errors(entry)]

    assert problems(entry) == []
    named = {line.split(": ")[1] for line in text.splitlines() if line.startswith("# missing: ")}
    filled = {field for field, value in _fields(entry) if "MISSING: " not in str(value)}
    # For approximate privacy there is no rho.
    assert {field for field, _ in _fields(schema)} == named | filled | {"rho"} and not named & filled
    assert len(named) == text.count("MISSING: ") + 5 == 7
    # The validator is no sieve.
    assert problems({**entry, "tier": 0}) and problems({**entry, "surprise": 1})


def _fields(tree: Any) -> list[tuple[str, object]]:
    """The fields of an entry, or of a schema, that have no fields of their own."""
    inner = tree.get("properties", tree)
    found: list[tuple[str, object]] = []
    for name, value in inner.items():
        is_group = isinstance(value, dict) and ("properties" in value or inner is tree)
        found += _fields(value) if is_group else [(name, value)]
    return found
