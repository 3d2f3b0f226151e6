"""What `fairdp export registry` writes is valid by the schema of the registry that it is for."""

from __future__ import annotations

from pathlib import Path

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
    assert text.count("# missing: ") == text.count("MISSING: ") == 2
    # The validator is no sieve.
    assert problems({**entry, "tier": 0}) and problems({**entry, "surprise": 1})
