"""The program of docs/release-format.md, which shares no code with ours, agrees with `verify` on sound and broken releases."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fairdp

CHECK = Path(__file__).resolve().parents[3] / "docs/examples/verify_release.py"
SEAL = ',\n  "seal": "'


def resealed(release: Path, change: Callable[[str], str]) -> None:
    """Changes a statement and seals it again, as somebody who lies would."""
    path = release / "statement.json"
    body = path.read_text("utf-8").rpartition(SEAL)[0]
    changed = change(body)
    assert changed != body
    path.write_text(changed + SEAL + hashlib.sha256(changed.encode()).hexdigest() + '"\n}\n', "utf-8")


def appended(name: str) -> Callable[[Path], None]:
    def change(release: Path) -> None:
        with (release / name).open("ab") as file:
            file.write(b" ")

    return change


def one_more(release: Path) -> None:
    (release / "notes.txt").write_text("x")


def smaller(release: Path) -> None:
    resealed(release, lambda body: re.sub(r'"epsilon": [\d.]+', '"epsilon": 0.5', body, count=1))


def quieter(release: Path) -> None:
    resealed(release, lambda body: re.sub(r'"noise_multiplier": \d', '"noise_multiplier": 9', body, count=1))


def once(release: Path) -> None:
    resealed(release, lambda body: re.sub(r'"count": \d\d+', '"count": 1', body, count=1))


BREAKS: dict[str, Callable[[Path], None] | None] = {
    "nothing": None,
    "a card": appended("card.html"),
    "a seal": appended("statement.json"),
    "no model": lambda release: (release / "model.safetensors").unlink(),
    "one file more": one_more,
    "a smaller epsilon": smaller,
    "less noise": quieter,
    "one step": once,
}

METHODS: dict[str, dict[str, Any]] = {
    "auto": {"name": "auto"},
    "counts with the steps": {"name": "dpsgd-f"},
    "sampled": {"name": "dpsgd", "sampling_rate": 0.05, "steps": 40},
}


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(3)
    path = tmp_path_factory.mktemp("table") / "table.csv"
    rows = zip(rng.integers(18, 91, 3000), rng.choice(["a", "b"], 3000), rng.choice(["no", "yes"], 3000))
    path.write_text("age,group,outcome\n" + "".join(f"{age},{group},{outcome}\n" for age, group, outcome in rows))
    return path


@pytest.fixture(scope="module", params=list(METHODS))
def release(request: pytest.FixtureRequest, table: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    config = {
        "version": 1,
        "table": {"files": [str(table)]},
        "label": {"column": "outcome", "classes": ["no", "yes"], "public": True},
        "privacy": {"epsilon": 1.0, "delta": 1e-5},
        "method": METHODS[request.param],
        "group": [{"column": "group", "values": ["a", "b"], "public": True}],
        "column": [{"name": "age", "kind": "number", "low": 18, "high": 90, "public": True}],
    }
    if request.param != "auto":
        config["model"] = {"kind": "mlp", "hidden": [4]}
    run = tmp_path_factory.mktemp("run") / "run"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fairdp.fit(config, out=run)
    return run / "release"


@pytest.mark.parametrize("broken", list(BREAKS))
def test_two_programs_agree_on_a_release(broken: str, release: Path, tmp_path: Path) -> None:
    copy = tmp_path / "release"
    shutil.copytree(release, copy)
    change = BREAKS[broken]
    if change is not None:
        change(copy)
    other = subprocess.run([sys.executable, str(CHECK), str(copy)], capture_output=True, text=True, check=False)
    assert other.returncode == (0 if change is None else 4), other.stdout + other.stderr
    if change is None:
        assert fairdp.verify(copy)["epsilon"] <= 1.0
    else:
        with pytest.raises(fairdp.FairDPError):
            fairdp.verify(copy)


def test_the_page_names_every_file_of_a_release(release: Path) -> None:
    page = (CHECK.parents[1] / "release-format.md").read_text("utf-8")
    statement = json.loads((release / "statement.json").read_text("utf-8"))
    for file in [*statement["files"], *statement]:
        assert f"`{file}`" in page or file in {"trust", "delta_reason", "model", "method", "sampling", "tuning"} | {
            "test_figures", "noise", "total_epsilon", "accountant", "seal"}, file
