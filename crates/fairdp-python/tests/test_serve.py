"""docs/examples/serve refuses what `predict` refuses, and answers as it does."""

from __future__ import annotations

import csv
import importlib.util
import json
import shutil
import threading
import urllib.error
import urllib.request
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fairdp

pytest.importorskip("onnxruntime")
SERVE = Path(__file__).resolve().parents[3] / "docs/examples/serve/serve.py"

ROW = {"age": 40, "income": 20_000.5, "region": "east", "job": "clerk", "member": True, "group": "a"}
CHANGES: dict[str, dict[str, Any]] = {
    "as declared": {},
    "blanks": {"region": " east "},
    "beyond": {"age": 400},
    "missing and declared": {"income": None},
    "missing": {"age": None},
    "an unseen value": {"region": "north pole"},
    "an unseen value that is other": {"job": "diver"},
    "a missing category": {"region": None},
    "no number": {"age": "forty"},
    "infinite": {"age": float("inf")},
    "a truth value as a text": {"member": "false"},
    "no truth value": {"member": "maybe"},
    "a number for a category": {"region": 7},
    "no column": {"age": ...},
}


def module() -> Any:
    spec = importlib.util.spec_from_file_location("serve", SERVE)
    assert spec is not None and spec.loader is not None
    serve = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(serve)
    return serve


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(1)
    folder = tmp_path_factory.mktemp("serve")
    n = 4000
    income = [*rng.uniform(0, 5e4, n - 50).round(2).astype(str), *[""] * 50]
    columns = [
        rng.integers(18, 91, n), income, rng.choice(["east", "west"], n), rng.choice(["clerk", "cook", "pilot"], n),
        rng.choice(["true", "false"], n), rng.choice(["a", "b"], n), rng.choice(["no", "yes"], n),
    ]
    with (folder / "t.csv").open("w", newline="") as file:
        csv.writer(file).writerows([[*ROW, "y"], *zip(*columns)])
    public = {"public": True}
    config = {
        "version": 1,
        "table": {"files": [str(folder / "t.csv")]},
        "label": {"column": "y", "classes": ["no", "yes"], **public},
        "privacy": {"epsilon": 2.0, "delta": 1e-5},
        "group": [{"column": "group", "values": ["a", "b"], **public}],
        "column": [
            {"name": "age", "kind": "number", "low": 18, "high": 90, **public},
            {"name": "income", "kind": "number", "low": 0, "high": 5e4, "missing": 0, **public},
            {"name": "region", "kind": "category", "values": ["east", "west"], **public},
            {"name": "job", "kind": "category", "values": ["clerk", "cook"], "other": True, **public},
            {"name": "member", "kind": "boolean", **public},
        ],
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fairdp.fit(config, out=folder / "run")
    return folder / "run"


def text(value: Any) -> str:
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


@pytest.mark.parametrize("change", list(CHANGES))
def test_the_contract(change: str, run: Path, tmp_path: Path) -> None:
    row = {name: value for name, value in {**ROW, **CHANGES[change]}.items() if value is not ...}
    with (tmp_path / "new.csv").open("w", newline="") as file:
        csv.writer(file).writerows([list(row), [text(value) for value in row.values()]])
    expected = None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fairdp.predict(run, tmp_path / "new.csv", out=tmp_path / "p.csv")
        with (tmp_path / "p.csv").open() as file:
            (expected,) = csv.DictReader(file)
    except fairdp.FairDPError:
        pass
    model = module().Model(run / "release")
    if expected is None:
        with pytest.raises(ValueError):
            model.answer([ROW, row])
        return
    (_, answer) = model.answer([ROW, row])
    assert answer["prediction"] == expected["prediction"]
    for name, probability in answer["probabilities"].items():
        assert abs(probability - float(expected[f"p_{name}"])) < 1e-5


def test_over_http_and_another_model(run: Path, tmp_path: Path) -> None:
    serve = module()
    serve.Handler.model = serve.Model(run / "release")
    serve.Handler.log_message = lambda *_: None
    server = serve.ThreadingHTTPServer(("127.0.0.1", 0), serve.Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_address[1]}"

    def post(body: object) -> tuple[int, Any]:
        try:
            with urllib.request.urlopen(address, json.dumps(body).encode()) as response:
                return response.status, json.load(response)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    status, answer = post({"rows": [ROW]})
    assert status == 200 and set(answer["answers"][0]) == {"probabilities", "prediction"}
    for wrong in [{"rows": [{**ROW, "region": "north pole"}]}, {"rows": []}, {"rows": 3}, [], {}]:
        status, answer = post(wrong)
        assert status == 422 and answer["error"], wrong
    server.shutdown()
    release = shutil.copytree(run / "release", tmp_path / "release")
    with (release / "model.onnx").open("ab") as file:
        file.write(b" ")
    with pytest.raises(SystemExit):
        serve.Model(release)
