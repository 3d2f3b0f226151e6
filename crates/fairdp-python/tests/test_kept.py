"""Releases and ledgers of earlier versions hold in this one: a folder of `kept` for each version of a format."""

from __future__ import annotations

import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import fairdp

KEPT = sorted((Path(__file__).parent / "kept").iterdir())
CHECK = Path(__file__).resolve().parents[3] / "docs/examples/verify_release.py"


@pytest.mark.parametrize("kept", KEPT, ids=lambda kept: kept.name)
def test_a_release_holds(kept: Path, tmp_path: Path) -> None:
    release = shutil.copytree(kept / "release", tmp_path / "release")
    statement = fairdp.verify(release)
    assert statement["private"] and statement["epsilon"] <= 1.0
    assert fairdp.load(release).fairness["measured"]
    assert subprocess.run([sys.executable, str(CHECK), str(release)], capture_output=True, check=False).returncode == 0
    with (release / "scores.json").open("ab") as file:
        file.write(b" ")
    with pytest.raises(fairdp.FairDPError, match="scores.json"):
        fairdp.verify(release)


@pytest.mark.parametrize("kept", KEPT, ids=lambda kept: kept.name)
def test_a_ledger_goes_on(kept: Path, tmp_path: Path) -> None:
    ledger = shutil.copy(kept / "ledger.json", tmp_path / "ledger.json")
    rng = np.random.default_rng(1)
    rows = zip(rng.integers(18, 91, 3000), rng.choice(["no", "yes"], 3000))
    (tmp_path / "t.csv").write_text("age,y\n" + "".join(f"{age},{y}\n" for age, y in rows))
    config = {
        "version": 1,
        "table": {"files": [str(tmp_path / "t.csv")]},
        "label": {"column": "y", "classes": ["no", "yes"], "public": True},
        "privacy": {"epsilon": 1.0, "delta": 1e-5},
        "column": [{"name": "age", "kind": "number", "low": 18, "high": 90, "public": True}],
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fairdp.fit(config, out=tmp_path / "run", ledger=ledger)
    total = fairdp.verify(tmp_path / "run")["total_epsilon"]
    assert 1.3 < total < 2.0
    # Not the same ledger with a byte changed.
    text = Path(ledger).read_text("utf-8")
    Path(ledger).write_text(text.replace('"cap":2.0', '"cap":9.0'), "utf-8")
    with pytest.raises(fairdp.FairDPError, match="line 1 was changed"):
        fairdp.fit(config, out=tmp_path / "again", ledger=ledger)
