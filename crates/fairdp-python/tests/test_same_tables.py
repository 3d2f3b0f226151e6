"""The same tables through CSV, Parquet, pandas and polars, by the program's configuration and by the
estimator: equal releases, bit for bit.
"""

from __future__ import annotations

import datetime as dt
import os
import shutil
import subprocess

import numpy as np
import pytest

import fairdp
from fairdp import FairDPClassifier
from fairdp._table import section

pandas = pytest.importorskip("pandas")
polars = pytest.importorskip("polars")
pytest.importorskip("pyarrow")
pytestmark = pytest.mark.filterwarnings(
    "ignore::fairdp.CompositionWarning", "ignore::fairdp.NotPrivateWarning", "ignore::fairdp.UnmatchedValuesWarning"
)

N = 120
N_TABLES = 40
DAYS = ("2020-01-01", "2023-12-31")
JOBS = ["clerk", "nurse", "cook"]
PROGRAM = os.environ.get("FAIRDP_PROGRAM") or shutil.which("fairdp")


def columns(seed):
    """A table of a few kinds of columns, by its number: values, and what is declared of them."""
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 91, N)
    found = {"age": age, "pay": np.exp(rng.normal(7, 1, N)).round(2)}
    bounds = {"age": (18, 90), "pay": (0.0, 20_000.0)}
    entries = [
        {"name": "age", "kind": "number", "low": 18, "high": 90, "bins": 4},
        {"name": "pay", "kind": "number", "low": 0.0, "high": 20_000.0, "bins": 4},
    ]
    declared = {"bounds": bounds, "bins": 4}
    if seed % 2:
        found["single"] = rng.normal(size=N).astype(np.float32)
        bounds["single"] = (-3, 3)
        entries.append({"name": "single", "kind": "number", "low": -3, "high": 3, "bins": 4})
    if seed % 3 == 0:
        found["job"] = rng.choice([*JOBS, "other, with a comma"], N)
        declared["categories"] = {"job": JOBS}
        entries.append({"name": "job", "kind": "category", "values": JOBS, "other": True})
    if seed % 4 == 1:
        found["flag"] = rng.random(N) < 0.5
        entries.append({"name": "flag", "kind": "boolean"})
    if seed % 5 < 2:
        found["day"] = np.datetime64(DAYS[0]) + rng.integers(0, 1400, N)
        bounds["day"] = DAYS
        entries.append({"name": "day", "kind": "date", "low": DAYS[0], "high": DAYS[1], "bins": 4})
    if seed % 5 > 2:
        found["v"] = list(rng.normal(size=(N, 3)).astype(np.float32 if seed % 2 else np.float64))
        declared["vectors"] = {"v": 3.0}
        entries.append({"name": "v", "kind": "vector", "length": 3, "norm": 3.0})
    found["y"] = np.where((age > 50) ^ (rng.random(N) < 0.1), "yes", "no")
    return found, declared, entries


def configuration(entries, table):
    parts = [
        section("version = 1", {"fairness": "none"}),
        section("[table]", {"files": [table], "missing": [""]}),
        section("[label]", {"column": "y", "classes": ["no", "yes"]}),
        section("[privacy]", {"epsilon": 20.0, "delta": 1e-5}),
        section("[test]", {"fraction": 0.2}),
        section("[model]", {"decision": "accuracy"}),
        *(section("[[column]]", entry) for entry in entries),
    ]
    return "\n".join(parts)


def frames(found):
    """pandas with what NumPy has, polars with lists and dates in its own types."""
    of_polars = {
        name: polars.Series(name, [value.tolist() for value in values], dtype=polars.List(_real(values[0])))
        if name == "v"
        else polars.Series(name, values.astype("datetime64[D]").astype(dt.date).tolist() if name == "day" else values)
        for name, values in found.items()
    }
    as_pandas = {name: values.astype("datetime64[s]") if name == "day" else values for name, values in found.items()}
    return pandas.DataFrame(as_pandas), polars.DataFrame(of_polars)


def _real(vector):
    return polars.Float32 if vector.dtype == np.float32 else polars.Float64


def write_csv(found):
    def written(name, values):
        if name == "v":
            return ["[" + ", ".join(str(number) for number in vector) + "]" for vector in values]
        return [str(value) for value in values]

    pandas.DataFrame({name: written(name, values) for name, values in found.items()}).to_csv("t.csv", index=False)


def model(release):
    return release["model.safetensors"], release["fairness.json"]


@pytest.mark.parametrize("seed", range(N_TABLES))
def test_a_table_has_one_release(seed, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found, declared, entries = columns(seed)
    as_pandas, as_polars = frames(found)
    write_csv(found)
    if seed % 2:
        as_pandas.to_parquet("t.parquet")
    else:
        as_polars.write_parquet("t.parquet")
    releases = {}
    for name in ("csv", "parquet"):
        (tmp_path / f"{name}.toml").write_text(configuration(entries, f"t.{name}"))
        releases[name] = model(fairdp.fit(f"{name}.toml", out=name, seed=seed, threads=1).files)
    estimator = FairDPClassifier(20.0, 1e-5, classes=["no", "yes"], random_state=seed, **declared)
    for name, frame in (("pandas", as_pandas), ("polars", as_polars)):
        X = frame.drop(columns="y") if name == "pandas" else frame.drop("y")
        fitted = estimator.fit(X, frame["y"])
        assert fitted.statement_["mark"] == "certified"
        releases[name] = model(fitted.release_)
    if PROGRAM is not None and seed % 8 == 0:
        arguments = [PROGRAM, "fit", "csv.toml", "--out", "program", "--seed", str(seed), "-q"]
        subprocess.run(arguments, check=True)
        releases["program"] = model(fairdp.load("program").files)
    different = [name for name, release in releases.items() if release != releases["csv"]]
    assert not different, f"{different} differ from csv; columns {list(found)}"
