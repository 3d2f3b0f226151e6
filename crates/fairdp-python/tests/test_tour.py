"""The tour in docs/python.md gives what it says."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[3]
TOUR = ROOT / "docs" / "python.md"


def test_the_tour_holds(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # The end of a block would be taken for its last example's output.
    text = re.sub(r"^```.*$", "", TOUR.read_text("utf-8"), flags=re.MULTILINE)
    tour = doctest.DocTestParser().get_doctest(text, {}, "python.md", str(TOUR), 0)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    runner.run(tour)
    assert runner.tries > 20 and runner.failures == 0


@pytest.mark.parametrize("page", ["README.md", "docs/train.md"])
def test_short_blocks_run(page, tmp_path, monkeypatch):
    """With a table, as a reader of these pages has one."""
    pd = pytest.importorskip("pandas")
    pytest.importorskip("sklearn")
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(1)
    age = random.integers(18, 90, 6_000)
    outcome = (random.random(6_000) < age / 100).astype(int)
    table = pd.DataFrame({"age": age, "group": random.choice(["a", "b"], 6_000), "outcome": outcome})
    table.to_csv("table.csv", index=False)
    text = (ROOT / page).read_text("utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    assert blocks
    names = {"X": table[["age"]], "y": table["outcome"]}
    for block in blocks:
        exec(block, names)
