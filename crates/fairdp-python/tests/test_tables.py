"""Tables in files: Python and the program make the same runs, and read each other's."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pandas
import pytest

import fairdp
from fairdp import FairDPClassifier, FairDPError

N = 3000
RNG = np.random.default_rng(3)
PEOPLE = pandas.DataFrame(
    {
        "age": RNG.integers(18, 81, N),
        "job": RNG.choice(["clerk", "nurse", "cook"], N),
        "sex": RNG.choice(["f", "m"], N),
    }
)
PEOPLE["y"] = np.where((PEOPLE["age"] > 50) ^ (RNG.random(N) < 0.1), "yes", "no")
pytestmark = pytest.mark.filterwarnings("ignore::fairdp.CompositionWarning", "ignore::fairdp.NotPrivateWarning")


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    PEOPLE.to_csv("table.csv", index=False)
    return tmp_path


@pytest.fixture
def config(here):
    text = fairdp.init("table.csv", "y", groups=["sex"], epsilon=2.0)
    assert 'from = "data"' in text
    (here / "c.toml").write_text(text.replace('from = "data"', "public = true"))
    return here / "c.toml"


def test_a_file_a_mapping_and_keywords_are_one_fit(config, here):
    tomllib = pytest.importorskip("tomllib")
    of_file = fairdp.fit(config, out="a", seed=1)
    mapping = tomllib.loads(config.read_text())
    mapping["table"]["files"] = ["table.csv"]
    of_mapping = fairdp.fit(mapping, out="b", seed=1, threads=1)
    assert of_file.files["model.safetensors"] == of_mapping.files["model.safetensors"]
    assert of_file.statement["mark"] == "certified"
    with pytest.raises(FairDPError, match="read from the records"):
        fairdp.fit(table="table.csv", label="y", groups=["sex"], epsilon=2.0, out="c", seed=1)
    hasty = fairdp.fit(table="table.csv", label="y", groups=["sex"], epsilon=2.0, out="d", seed=1, accept_uncovered=True)
    assert hasty.statement["mark"] == "conditional"
    assert hasty.files["model.safetensors"] == of_file.files["model.safetensors"]


def test_a_frame_is_answered_as_its_file(config, here):
    release = fairdp.fit(config, out="run", seed=1)
    counts = fairdp.predict("run", "table.csv", out="p.csv", keep=["age", "job"], explain=2)
    assert counts["rows"] == counts["answered"] == N and counts["remarks"] == []
    found = pandas.read_csv("p.csv")
    assert found["job"].tolist() == PEOPLE["job"].tolist()
    assert release.classes == ["no", "yes"]
    assert (release.predict(PEOPLE) == found["prediction"]).all()
    assert np.array_equal(release.predict_proba(PEOPLE), found[["p_no", "p_yes"]].to_numpy())
    assert (release.predict({"job": PEOPLE["job"].tolist(), "age": PEOPLE["age"].to_numpy()}) == found["prediction"]).all()
    reasons = release.explain(PEOPLE, 2)
    assert [row[0][0] for row in reasons] == found["reason_1"].tolist()
    assert [row[1][1] for row in reasons] == found["change_2"].tolist()
    assert reasons[0][0][0] == "age" and abs(reasons[0][0][1]) > abs(reasons[0][1][1])

    # An estimator of the same run.
    model = FairDPClassifier.load("run")
    assert (model.predict(PEOPLE[["job", "age"]][["age", "job"]]) == found["prediction"]).all()
    assert model.explain(PEOPLE[["age", "job"]], 2) == reasons
    assert model.epsilon_ == release.epsilon and model.card_ == release.card
    model.save("again")
    assert fairdp.load("again").files == release.files
    with pytest.raises(FileExistsError):
        release.save("again")


def test_what_a_model_does_not_know_is_said(config, here):
    release = fairdp.fit(config, out="run", seed=1)
    odd = PEOPLE.head(10).assign(age=[200, 30] * 5, job=["smith"] + ["nurse"] * 9)
    with pytest.warns(fairdp.UnmatchedValuesWarning) as caught:
        release.predict(odd)
    remarks = {str(warning.message) for warning in caught}
    odd.to_csv("odd.csv", index=False)
    with pytest.warns(fairdp.UnmatchedValuesWarning) as caught:
        told = fairdp.predict("run", "odd.csv", out="p.csv")
    assert remarks == set(told["remarks"]) == {str(warning.message) for warning in caught} and len(remarks) == 2
    assert all(warning.filename == __file__ for warning in caught)
    with pytest.raises(FairDPError, match="column age: 5 of 10 beyond"):
        fairdp.predict("run", "odd.csv", out="q.csv", strict=True)
    # The fit says so of its own table, too.
    text = config.read_text().replace('values = ["clerk", "cook", "nurse"]', 'values = ["clerk", "nurse"]')
    assert text != config.read_text()
    config.write_text(text)
    with pytest.warns(fairdp.UnmatchedValuesWarning, match="column job"):
        fairdp.fit(config, out="few", seed=1)


def test_a_plan_is_the_fit(config, here):
    planned = fairdp.plan(config, out="run")
    assert planned["table"]["records"] == N and not (here / "run").exists()
    assert planned["mark"] == "certified" and not planned["uncovered"]
    release = fairdp.fit(config, out="run")
    purposes = [event["purpose"] for event in release.statement["events"]]
    assert [entry["purpose"] for entry in planned["releases"]] == purposes
    with pytest.raises(FairDPError, match="run"):
        fairdp.plan(config, out="run")
    assert fairdp.plan(config, no_data=True)["table"] is None


def test_defaults_are_the_programs(config, here):
    release = fairdp.fit(config, out="run")
    model = FairDPClassifier(2.0, bounds=(18, 81), classes=["no", "yes"], random_state=1).fit(PEOPLE[["age"]], PEOPLE["y"])
    assert model.statement_["delta"] == release.statement["delta"] == 1e-5
    # A fifth of 3,000, drawn record by record: 600 ± 6 · 22.
    assert all(468 < of["records"]["test"] < 732 for of in (model.statement_, release.statement))


def test_refusals_name_the_argument(config, here):
    for arguments, expected in [
        ({}, "config, or table= and label="),
        ({"config": config, "label": "y"}, "label is a keyword of init"),
        ({"config": 3}, "config is int"),
        ({"config": config, "progress": 3}, "progress = 3"),
    ]:
        with pytest.raises(TypeError, match=expected):
            fairdp.fit(**arguments, out="run")
    with pytest.raises(ValueError, match="threads = 0"):
        fairdp.fit(config, out="run", threads=0)
    release = fairdp.fit(config, out="run", seed=1)
    for most in (0, 3, True, "2"):
        with pytest.raises(ValueError, match="most = .*: expected a whole number from 1 to 2"):
            release.explain(PEOPLE, most)
    with pytest.raises(TypeError, match="X is ndarray"):
        release.predict(PEOPLE.to_numpy())
    with pytest.raises(FairDPError, match="age"):
        release.predict(PEOPLE[["job"]])
    (here / "run/release/statement.md").write_text("changed")
    for read in (fairdp.load, fairdp.verify, FairDPClassifier.load):
        with pytest.raises(FairDPError, match="statement.md"):
            read("run")


def test_classes_of_a_release_have_their_type(here):
    for values in ([0, 1], [False, True], ["no", "yes"]):
        y = np.array(values)[(PEOPLE["age"] > 50).astype(int)]
        model = FairDPClassifier(4.0, bounds=(18, 81), classes=values, random_state=1).fit(PEOPLE[["age"]], y)
        model.save(f"release {values}")
        again = FairDPClassifier.load(f"release {values}")
        assert again.classes_.tolist() == values and again.classes_.dtype.kind == np.array(values).dtype.kind.replace("U", "O")
        assert np.array_equal(again.predict(PEOPLE[["age"]]), model.predict(PEOPLE[["age"]]))
    array = FairDPClassifier(4.0, bounds=(18, 81), classes=[0, 1]).fit(PEOPLE[["age"]].to_numpy(), y == "yes")
    array.save("array")
    assert FairDPClassifier.load("array").predict(PEOPLE[["age"]].to_numpy()).shape == (N,)


def test_a_notebook_sees_the_card_and_progress(config, here, capsys):
    release = fairdp.fit(config, out="run", seed=1, progress=True)
    shown = release._repr_html_()
    assert shown.startswith("<iframe srcdoc=") and "&lt;h1&gt;Model card" in shown and "<h1>" not in shown
    error = capsys.readouterr().err
    assert "\r" in error and " of 100" in error and error.endswith("\r")
    assert "epsilon 2 " in repr(release) and "seeded" in repr(release)
    told = []
    fairdp.fit(config, out="again", seed=1, progress=lambda *message: told.append(message))
    assert any(of == 100 for _, _, of in told)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        json.dumps(fairdp.verify("again"))
