"""The classifier keeps scikit-learn's contract, and says what it spent and what no ε covers."""

from __future__ import annotations

import contextlib
import json
import pickle
import signal
import stat
import sys
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

import numpy as np
import pandas
import polars
import pytest
from sklearn.model_selection import cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from fairdp import (
    CompositionWarning,
    FairDPClassifier,
    FairDPError,
    NotPrivateWarning,
    PrivacyLeakWarning,
    UnmatchedValuesWarning,
)
from fairdp._table import texts

# Every test fits in this one process; the tests of what is said of that ask for it.
pytestmark = pytest.mark.filterwarnings("ignore::fairdp.CompositionWarning", "ignore::fairdp.NotPrivateWarning")

DECLARED = {
    "bounds": {"age": (0, 100)},
    "categories": {"job": ["clerk", "nurse"]},
    "classes": [0, 1],
    "groups": {"sex": ["f", "m"]},
}


def people(n=3000, seed=0):
    """A table in which outcomes depend on age and job, and less so for one group."""
    rng = np.random.default_rng(seed)
    frame = pandas.DataFrame(
        {
            "age": rng.integers(18, 91, n),
            "job": rng.choice(["clerk", "nurse", "other"], n),
            "full_time": rng.random(n) < 0.7,
        }
    )
    sex = pandas.Series(rng.choice(["f", "m"], n, p=[0.3, 0.7]), name="sex")
    score = (frame.age - 50) / 15 + (frame.job == "clerk") + (sex == "f") * rng.normal(size=n)
    return frame, (score + 0.3 * rng.normal(size=n) > 0.3).astype(int), sex


# The checks fit tables of 20 rows, which an ordinary ε refuses: hence this one. A table whose rows
# are repeated has more records, with noise of its own and other records in the test: its model is
# not that of weights.
REPEATED = "rows that are repeated are other records, with other noise"
EXPECTED = {f"check_sample_weight_equivalence_on_{kind}_data": REPEATED for kind in ("dense", "sparse")}


@parametrize_with_checks([FairDPClassifier(epsilon=1000.0)], expected_failed_checks=lambda _: EXPECTED)
def test_scikit_learns_contract(estimator, check):
    with warnings.catch_warnings():
        for category in (CompositionWarning, NotPrivateWarning, PrivacyLeakWarning, UnmatchedValuesWarning):
            warnings.simplefilter("ignore", category)
        check(estimator)


def test_what_is_declared_is_certified():
    X, y, sex = people()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", CompositionWarning)
        model = FairDPClassifier(epsilon=2.0, **DECLARED).fit(X, y, sensitive_features=sex)
    assert 1.9 < model.epsilon_ <= 2.0
    assert model.statement_["mark"] == "certified" and model.statement_["private"] and model.statement_["given"] == []
    assert {group["group"] for group in model.fairness_["groups"]} == {"f", "m"}
    assert model.score(X, y) > 0.8
    probabilities = model.predict_proba(X)
    assert probabilities.shape == (3000, 2) and np.allclose(probabilities.sum(axis=1), 1)
    assert (model.classes_[probabilities.argmax(axis=1)] == model.predict(X)).all()


def test_what_is_taken_from_the_records_is_named():
    X, y, sex = people()
    with pytest.warns(PrivacyLeakWarning, match="bounds of `age`, values of `job`, the classes, values of `sex`"):
        model = FairDPClassifier().fit(X, y, sensitive_features=sex)
    assert model.statement_["mark"] == "conditional"
    assert len(model.statement_["given"]) == 4
    assert b"Not covered by" in model.release_["statement.md"]


def test_bounds_can_be_paid_for():
    X, y, _ = people()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", CompositionWarning)
        model = FairDPClassifier(2.0, bounds="private", categories=DECLARED["categories"], classes=[0, 1]).fit(X, y)
    assert any("bounds of `age`" in event["purpose"] for event in model.statement_["events"])
    assert model.epsilon_ <= 2.0 and model.score(X, y) > 0.75


def test_a_seed_repeats_a_run_and_takes_its_privacy():
    X, y, _ = people()
    of = lambda seed: FairDPClassifier(**DECLARED | {"groups": None}, random_state=seed).fit(X, y)
    first, again, other = of(1), of(1), of(2)
    assert first.release_["model.safetensors"] == again.release_["model.safetensors"]
    assert first.release_["model.safetensors"] != other.release_["model.safetensors"]
    assert first.statement_["private"] is False and first.statement_["seed"] == 1
    assert of(None).statement_["private"] is True
    assert of(None).release_["model.safetensors"] != of(None).release_["model.safetensors"]


def test_the_kind_of_table_does_not_matter():
    X, y, sex = people()
    options = {**DECLARED, "random_state": 3}
    by_pandas = FairDPClassifier(**options).fit(X, y, sensitive_features=sex)
    in_polars = polars.DataFrame({name: X[name].tolist() for name in X})
    by_polars = FairDPClassifier(**options).fit(in_polars, y, sensitive_features=polars.Series("sex", sex.tolist()))
    assert by_pandas.release_["model.safetensors"] == by_polars.release_["model.safetensors"]
    assert (by_pandas.predict(X) == by_polars.predict(in_polars)).all()
    assert list(by_polars.feature_names_in_) == list(X.columns)
    codes = np.column_stack([X.age, X.job.map({"clerk": 0, "nurse": 1, "other": 2}), X.full_time])
    by_numpy = FairDPClassifier(
        bounds={"x0": (0, 100), "x2": (0, 1)}, categories={"x1": [0, 1]}, classes=[0, 1], random_state=3
    ).fit(codes, y)
    assert by_numpy.score(codes, y) > 0.75


def test_classes_are_any_values():
    X, y, _ = people()
    labels = np.where(y == 1, "yes", "no")
    model = FairDPClassifier(**DECLARED | {"groups": None, "classes": ["yes", "no"]}).fit(X, labels)
    assert model.classes_.tolist() == ["no", "yes"] and set(model.predict(X)) == {"no", "yes"}
    three = np.digitize(X.age, [40, 60])
    model = FairDPClassifier(3.0, **DECLARED | {"groups": None, "classes": [0, 1, 2]}).fit(X, three)
    assert model.predict_proba(X).shape == (3000, 3) and model.score(X, three) > 0.7
    with pytest.raises(ValueError, match="classes: y has 2, which is not among"):
        FairDPClassifier(**DECLARED).fit(X, three)
    with pytest.raises(ValueError, match="one class"):
        FairDPClassifier().fit(X, np.zeros(3000, dtype=int))


def test_thresholds_by_group_need_the_groups():
    X, _, sex = people(8000)
    # At an age the sexes decide otherwise, so that one threshold for both has a gap beyond the noise.
    y = (X["age"] > np.where(sex == "m", 65, 40)).astype(int)
    model = FairDPClassifier(4.0, **DECLARED, fairness="equalized-odds").fit(X, y, sensitive_features=sex)
    assert set(model.fairness_["thresholds"]) and model.predict(X, sensitive_features=sex).shape == (8000,)
    assert model.predict_proba(X).shape == (8000, 2)
    with pytest.raises(ValueError, match="decisions depend on `sex`"):
        model.predict(X)
    with pytest.raises(ValueError, match="`sex` holds 2 values, expected 8000"):
        model.predict(X, sensitive_features={"sex": ["f", "m"]})


def test_a_method_by_name_and_a_network():
    X, y, sex = people()
    for name in ("dpsgd-f", "group-dro"):
        method = {"method": name, "method_options": {"steps": 20}}
        model = FairDPClassifier(4.0, **DECLARED, **method).fit(X, y, sensitive_features=sex)
        assert name in model.statement_["method"]
    rates = {"by": "group", "rates": [0.2, 0.5]}
    method = {"method": "asc", "method_options": {"steps": 20, "sampling": rates}}
    model = FairDPClassifier(4.0, **DECLARED, **method).fit(X, y, sensitive_features=sex)
    of_groups = model.statement_["epsilon_of_groups"].values()
    assert len(of_groups) == 2 and all(3.96 < epsilon <= 4 for epsilon in of_groups)
    method["method"] = "asc-by-loss"
    method["method_options"]["sampling"] = {"by": "loss", "least": 0.2, "largest": 0.8}
    model = FairDPClassifier(4.0, **DECLARED, **method).fit(X, y, sensitive_features=sex)
    assert 3.99 < model.statement_["epsilon"] <= 4 and "at a rate from 0.2 to 0.8" in model.statement_["method"]
    with pytest.raises(FairDPError, match="sampling.*expected with"):
        FairDPClassifier(**DECLARED, method="asc").fit(X, y, sensitive_features=sex)
    model = FairDPClassifier(8.0, **DECLARED, model="mlp", hidden=[8]).fit(X, y, sensitive_features=sex)
    assert "[8]" in model.statement_["model"]
    with pytest.raises(FairDPError, match="unknown; .*did you mean `dpsgd-f`"):
        FairDPClassifier(**DECLARED, method="dpsgd-ff").fit(X, y, sensitive_features=sex)


def test_records_of_one_person_are_protected_together():
    X, y, _ = people()
    person = np.repeat(np.arange(1000), 3)
    model = FairDPClassifier(4.0, **DECLARED | {"groups": None}, max_records_per_unit=2).fit(X, y, units=person)
    assert model.statement_["unit"]["max_records"] == 2


def test_all_rows_of_a_person_are_one_record():
    X, y, _ = people()
    person = np.repeat(np.arange(1000), 3)
    declared = DECLARED | {"groups": None}
    model = FairDPClassifier(4.0, **declared, unit_rows="mean", unit_target="maximum").fit(X, y, units=person)
    assert model.statement_["unit"]["rows"] == "mean" and model.epsilon_ <= 4.0
    each = FairDPClassifier(4.0, **declared, unit_rows="mean", unit_target="each-class").fit(X, y, units=person)
    assert each.score(X, y) > 0.75
    with pytest.raises(ValueError, match="unit_rows = 'mean': expected units in fit"):
        FairDPClassifier(4.0, **declared, unit_rows="mean").fit(X, y)


def test_what_is_refused_names_the_column():
    X, y, sex = people()
    with pytest.raises(ValueError, match="contains NaN: column `age`, record 7"):
        FairDPClassifier(**DECLARED).fit(X.assign(age=X.age.where(X.index != 7)), y)
    with pytest.raises(ValueError, match="bounds: there is no column 'agee'"):
        FairDPClassifier(bounds={"agee": (0, 1)}).fit(X, y)
    with pytest.raises(ValueError, match="there is no sensitive feature 'sex'"):
        FairDPClassifier(**DECLARED).fit(X, y)
    with pytest.raises(TypeError, match="column `when` holds timedelta64"):
        FairDPClassifier(**DECLARED).fit(X.assign(when=pandas.Timedelta("1D")), y)
    with pytest.raises(TypeError, match="bounds: column `age` holds object, expected numbers"):
        FairDPClassifier(**DECLARED).fit(X.assign(age=X.age.astype(object)), y)
    both = {**DECLARED, "categories": {**DECLARED["categories"], "age": [20, 30]}}
    with pytest.raises(TypeError, match="bounds: column `age` is among the categories"):
        FairDPClassifier(**both).fit(X, y)
    with pytest.raises(ValueError, match="n_jobs = 0"):
        FairDPClassifier(**DECLARED, n_jobs=0).fit(X, y, sensitive_features=sex)
    with pytest.raises(FairDPError, match="^epsilon = -1.0: expected a finite number above 0"):
        FairDPClassifier(-1.0, **DECLARED).fit(X, y, sensitive_features=sex)
    with pytest.raises(FairDPError, match="^delta = 1e-3: expected below one over the number of records"):
        FairDPClassifier(1.0, 1e-3, **DECLARED).fit(X, y, sensitive_features=sex)
    with pytest.raises(FairDPError, match="records are too few"):
        FairDPClassifier(0.01, **DECLARED).fit(X[:100], y[:100], sensitive_features=sex[:100])
    with pytest.raises(FairDPError, match="column `sex`: `x` is not"):
        FairDPClassifier(**DECLARED).fit(X, y, sensitive_features=sex.where(sex.index != 5, "x"))


def test_missing_categories_can_be_a_feature():
    X, y, _ = people()
    X.loc[::10, "job"] = None
    declared = {**DECLARED, "groups": None, "categories": {"job": ["clerk", "nurse", None]}}
    model = FairDPClassifier(**declared).fit(X, y)
    assert json.loads(model.release_["pipeline.json"])["schema"]["columns"][1][1]["missing"] is True
    assert model.predict(X[:20]).shape == (20,)


def test_an_empty_text_is_a_missing_one():
    X, y, _ = people()
    X.loc[::10, "job"] = " "
    with pytest.warns(PrivacyLeakWarning):
        model = FairDPClassifier(bounds={"age": (0, 100)}, classes=[0, 1]).fit(X, y)
    column = json.loads(model.release_["pipeline.json"])["schema"]["columns"][1][1]
    assert column["missing"] is True and sorted(column["values"]) == ["clerk", "nurse", "other"]


def test_categories_do_not_depend_on_the_width_of_a_number():
    X, y, _ = people()
    X["rate"] = np.where(X.index % 3 == 0, 0.1, 0.2)
    declared = {**DECLARED, "groups": None, "categories": {**DECLARED["categories"], "rate": [0.1, 0.2]}}
    model = FairDPClassifier(**declared, random_state=1).fit(X, y)
    np.testing.assert_array_equal(model.predict_proba(X), model.predict_proba(X.astype({"rate": np.float32})))


def test_texts_of_a_record_do_not_depend_on_the_others():
    column = np.array([0, 1, 2, "n/a", 1, True, 1.0, Decimal("1.00"), None], dtype=object)
    found, positions = texts(column)
    assert [found[position] for position in positions] == ["0", "1", "2", "n/a", "1", "True", "1", "1.00", ""]
    found, positions = texts(np.array([True, 1, 0], dtype=object))
    assert [found[position] for position in positions] == ["True", "1", "0"]


def test_a_release_is_saved_and_verified(tmp_path):
    X, y, _ = people()
    model = FairDPClassifier(**DECLARED | {"groups": None}).fit(X, y)
    model.save(tmp_path / "release")
    names = {path.name for path in (tmp_path / "release").iterdir()}
    assert {"statement.json", "statement.md", "model.safetensors", "model.onnx", "card.html"} <= names
    with pytest.raises(FileExistsError):
        model.save(tmp_path / "release")
    assert (pickle.loads(pickle.dumps(model)).predict(X) == model.predict(X)).all()


def test_nothing_is_left_in_the_temporary_folder(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    seen = []
    X, y, _ = people()
    # A text that the records have and nothing declares. Files come and go while they are looked at.
    X.loc[::10, "job"] = "astronaut"

    def watch(stage, done, of):
        for path in tmp_path.iterdir():
            seen.append(stat.S_IMODE(path.stat().st_mode))
            for file in path.rglob("*"):
                with contextlib.suppress(FileNotFoundError, IsADirectoryError):
                    assert b"astronaut" not in file.read_bytes()

    FairDPClassifier(**DECLARED | {"groups": None}).fit(X, y, progress=watch)
    assert set(seen) == {0o700} and list(tmp_path.iterdir()) == []


def test_progress_is_told_and_may_end_the_run():
    X, y, _ = people()
    model = FairDPClassifier(**DECLARED | {"groups": None})
    told = []
    model.fit(X, y, progress=lambda *message: told.append(message))
    assert told[0][0].startswith("reading") and told[-1][0] == "done"
    assert [done for _, done, of in told if of] == list(range(1, 101))

    class EnoughError(Exception):
        pass

    def end(stage, done, of):
        if done == 3:
            raise EnoughError

    with pytest.raises(EnoughError):
        model.fit(X, y, progress=end)


@pytest.mark.skipif(sys.platform == "win32", reason="signals of another kind")
@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("is_told", [True, False])
def test_control_c_ends_a_fit(is_told):
    X, y, _ = people(20_000)
    options = {"method": "dpsgd", "method_options": {"steps": 1_000_000}}
    model = FairDPClassifier(8.0, **DECLARED | {"groups": None}, **options)
    began = threading.Event()

    def interrupt():
        began.wait(60 if is_told else 2)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y, progress=(lambda stage, done, of: began.set() if done else None) if is_told else None)
    thread.join()
    assert time.monotonic() - start < 60


def test_threads_fit_and_predict_side_by_side():
    X, y, _ = people()
    of = lambda seed: FairDPClassifier(**DECLARED | {"groups": None}, random_state=seed).fit(X, y).predict(X)
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(of, range(4)))
    assert all((mine == of(seed)).all() for seed, mine in enumerate(together))


def test_it_is_an_estimator_like_any_other():
    X, y, _ = people()
    model = FairDPClassifier(**DECLARED | {"groups": None}, random_state=0)
    assert cross_val_score(model, X, y, cv=3).mean() > 0.75


def test_a_score_takes_the_groups():
    X, y, sex = people(8000)
    # The young women among the positive are not: rates differ, and another threshold is more accurate.
    y = y.where((sex == "m") | (X.age > 60), 0)
    model = FairDPClassifier(epsilon=4.0, fairness="equalized-odds", **DECLARED).fit(X, y, sensitive_features=sex)
    assert model.score(X, y, sensitive_features=sex) == (model.predict(X, sensitive_features=sex) == y).mean()
    with pytest.raises(ValueError, match="`sex`, which is not given; given are `other`"):
        model.score(X, y, sensitive_features={"other": sex})
    with pytest.raises(ValueError, match="fairness = 'eo': expected one of none, worst-group"):
        FairDPClassifier(fairness="eo").fit(X, y)
    with pytest.raises(ValueError, match="needs sensitive_features"):
        FairDPClassifier(fairness="worst-group").fit(X, y)


def test_what_has_no_name_goes_by_its_place():
    X, y, sex = people()
    options = {**DECLARED, "groups": None, "fairness": "worst-group", "random_state": 1}
    with pytest.warns(PrivacyLeakWarning):
        model = FairDPClassifier(**options).fit(X, y, sensitive_features=sex)
    named = model.predict(X, sensitive_features=sex)
    assert (named == model.predict(X, sensitive_features=sex.to_numpy())).all()
    numeric = X[["age", "full_time"]].astype(float)
    model = FairDPClassifier(bounds=(0, 100), classes=[0, 1], random_state=1).fit(numeric, y)
    with pytest.warns(UserWarning, match="feature names"):
        by_place = model.predict(numeric.to_numpy())
    assert (by_place == model.predict(numeric)).all()


def test_declared_values_are_the_ones_that_occur():
    y = np.array([0, 1] * 1000)
    days = pandas.to_datetime(["2020-01-01", "2021-06-01"] * 1000)
    numbers = pandas.array([2**53, 2**53 + 1] * 999 + [2**53, None], dtype="Int64")
    for column, values in (
        (pandas.Series(days).astype("datetime64[ns]"), [pandas.Timestamp("2020-01-01"), pandas.Timestamp("2021-06-01")]),
        (pandas.Series(numbers), [2**53, 2**53 + 1, pandas.NA]),
    ):
        X = pandas.DataFrame({"x": column})
        model = FairDPClassifier(epsilon=4.0, categories={"x": values}, classes=[0, 1], random_state=1).fit(X, y)
        assert model.score(X, y) > 0.99
    with pytest.raises(TypeError, match="values of `x` are 'clerk', expected a list"):
        FairDPClassifier(categories={"x": "clerk"}, classes=[0, 1]).fit(pandas.DataFrame({"x": ["clerk"] * 2000}), y)
    with pytest.raises(TypeError, match="classes = 'ab'"):
        FairDPClassifier(classes="ab").fit(np.zeros((2000, 1)), y)
    with pytest.raises(ValueError, match="bounds of `x0` are 5, expected a pair"):
        FairDPClassifier(bounds={"x0": 5}, classes=[0, 1]).fit(np.zeros((2000, 1)), y)


def test_one_class_of_many_is_compared():
    X, y, sex = people()
    classes = np.where(np.arange(len(y)) % 3 == 0, 2, y)
    options = {"smallest": 500, "class": 1}
    model = FairDPClassifier(4.0, **{**DECLARED, "classes": [0, 1, 2]}, fairness_options=options)
    model.fit(X, classes, sensitive_features=sex)
    assert model.fairness_["class"] == "1" and len(model.price_list_) == 5
    assert len(model.fairness_["groups"][0]["recall"]) == 3 and model.fairness_["groups"][0]["auc"]["value"] > 0.5
    other = model.with_fairness("equal-opportunity", max_loss=0.1)
    assert other.fairness_options["class"] == 1 and other.epsilon_ == model.epsilon_
    with pytest.raises(FairDPError, match=r"fairness_options\['class'\]|fairness.class = 9"):
        FairDPClassifier(4.0, **{**DECLARED, "classes": [0, 1, 2]}, fairness_options={"class": 9}).fit(
            X, classes, sensitive_features=sex
        )


def test_another_notion_of_fairness_costs_nothing():
    X, y, sex = people()
    model = FairDPClassifier(4.0, **DECLARED, fairness_options={"smallest": 500}).fit(X, y, sensitive_features=sex)
    assert [price["mode"] for price in model.price_list_][:2] == ["none", "worst-group"]
    assert all(price["figures"]["accuracy"]["low"] <= price["figures"]["accuracy"]["high"] for price in model.price_list_)
    other = model.with_fairness("equalized-odds", max_loss=0.1)
    assert other.epsilon_ == model.epsilon_ and other.release_["model.safetensors"] == model.release_["model.safetensors"]
    assert other.statement_["derived_from"]["mode"] == "equalized-odds" and "derived_from" not in model.statement_
    assert other.predict(X, sensitive_features=sex).shape == y.shape
    same = model.with_fairness("demographic-parity", max_loss=0.1, one_threshold=True)
    assert same.predict(X).shape == y.shape and len(same.fairness_["price_list_of_one_threshold"]) == 5
    tossed = model.with_fairness("equalized-odds", max_loss=0.1, coins=True)
    answers = tossed.predict(X, sensitive_features=sex)
    assert (answers == tossed.predict(X, sensitive_features=sex)).all()
    assert tossed.statement_["derived_from"]["coins"] and tossed.fairness_["thresholds"]["aim"]["coins"]
    with pytest.raises(TypeError, match="one_threshold.* = 1: expected True or False"):
        model.with_fairness("equalized-odds", one_threshold=1)
    with pytest.raises(ValueError, match="fairness = 'fair': expected one of none"):
        model.with_fairness("fair")
    with pytest.raises(FairDPError, match="max_loss = 2"):
        model.with_fairness("equalized-odds", max_loss=2)
    with pytest.raises(ValueError, match="fairness_options: 'cap' is unknown, expected some of max_loss"):
        FairDPClassifier(fairness_options={"cap": 1}).fit(X, y)
