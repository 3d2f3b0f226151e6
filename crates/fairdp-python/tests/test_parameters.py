"""What is out of range is refused under the name that Python has for it."""

from __future__ import annotations

import numpy as np
import pandas
import pytest

from fairdp import FairDPClassifier, FairDPError, PrivacyLeakWarning, UnmatchedValuesWarning

N = 2000
AGE = np.random.default_rng(0).integers(18, 81, N)
Y = (AGE > 50).astype(int)
X = pandas.DataFrame({"age": AGE})
DECLARED = {"bounds": {"age": (18, 80)}, "classes": [0, 1]}
pytestmark = pytest.mark.filterwarnings("ignore::fairdp.CompositionWarning", "ignore::fairdp.PrivacyLeakWarning")

REFUSED = {
    "epsilon": [0, -1, np.nan, np.inf, "1", None, True, 10**400],
    "delta": [0, 1, -1, 1e-13, 1e-3, "1e-6", True, 10**400],
    "bounds": [5, (1,), (2, 1), (0, np.nan), (0, 1e300), "public", {"age": "wide"}, {"age": (0, 10**400)}, (2**60 + 18, 2**60 + 80)],
    "bins": [2.5, 0, -1, 5000, "8", True, np.float64(4)],
    "test_fraction": [-0.1, 0.95, 1, "0.1", None, np.nan],
    "unit_rows": ["last", None, "mean"],
    "unit_target": ["maximum", "mean", 3],
    "formats": ["day-first", {"age": "german"}, {"age": {}}, {"age": {"comma": ","}}, {"age": {"decimal": 3}}, {"agee": "iso"}],
    "parts": [["month"], {"age": ["month"]}, {"age": "month"}, {"age": ["hour"]}, {"agee": ["month"]}],
    "max_records_per_unit": [0, 2.5, "2", True, 1, 5, 10**30],
    "n_jobs": [0, 1.5, "2", True],
    "random_state": [-1, 1.5, "x", 2**64, True],
    "model": ["linear", None, 3, ["mlp"]],
    "hidden": [8, "8", [2.5], [0], [True], [[8]]],
    "fairness": ["eo", None, ["none"]],
    "decision": ["argmax", None],
    "method": ["dpsgd-ff", 3, None],
    "method_options": ["steps", {"stepz": 3}, {"steps": 2.5}, {"steps": object()}, {"learning_rate": -1}],
    "categories": [["age"], {"age": "18"}, {"age": 18}, {"agee": [1]}, {"age": []}],
    "classes": ["01", 1, [0], [0, None], [0, "0"], [0, 0.0, False]],
    "missing": [3, "mean", {"age": np.nan}, {"age": "40"}, {"agee": 40}, {"age": 12}],
    "groups": [["f"], {"sex": ["f"]}],
    "bands": [[30], {"sex": [1, 2]}],
    "ledger": [3, b"x"],
    "total_epsilon": [2.0, 0.5],
    "start_from": [3, b"x"],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in REFUSED.items() for value in values])
@pytest.mark.filterwarnings("ignore::fairdp.NotPrivateWarning")
def test_a_refusal_names_the_parameter(name, value):
    if name == "hidden" or (name, value) == ("method_options", {"steps": 2.5}):
        extra = {"model": "mlp"}
    elif name == "method_options":
        extra = {"method": "dpsgd"}
    else:
        extra = {}
    with pytest.raises((TypeError, ValueError)) as caught:
        FairDPClassifier(**{**DECLARED, **extra, name: value}).fit(X, Y)
    message = str(caught.value)
    names = {"method_options": ("method_options",), "categories": ("categories", "`age`"), "bounds": ("bounds",)}
    assert any(known in message for known in names.get(name, (name,))), message
    assert "configuration" not in message and len(message) < 400, message


def test_the_classes_and_features_are_named():
    with pytest.raises(ValueError, match="classes: y has 1, which is not among"):
        FairDPClassifier(**{**DECLARED, "classes": [0, 2]}).fit(X, Y)
    with pytest.raises(ValueError, match="max_records_per_unit = 5: expected units in fit"):
        FairDPClassifier(**DECLARED, max_records_per_unit=5).fit(X, Y)
    model = FairDPClassifier(4.0, **DECLARED, max_records_per_unit=2)
    assert model.fit(X, Y, units=np.arange(N) // 2).statement_["unit"]["max_records"] == 2


@pytest.mark.parametrize("missing", [None, np.nan, pandas.NA])
@pytest.mark.parametrize("as_frame", [True, False])
def test_a_missing_label_is_named_with_its_record(missing, as_frame):
    y = pandas.Series(Y).astype(object)
    y[7] = missing
    features = X if as_frame else X.to_numpy()
    for labels in (y, y.tolist(), y.to_numpy()):
        with pytest.raises(ValueError, match="y contains NaN: record 7 has no label"):
            FairDPClassifier(**DECLARED | {"bounds": (18, 80)}).fit(features, labels)
    with pytest.raises(ValueError, match="record 7 has no label"):
        FairDPClassifier(**DECLARED | {"bounds": (18, 80)}).fit(features, pandas.Series(Y, dtype="Int64").where(y.index != 7))


LARGE = {
    "int64": AGE.astype(np.int64) + 2**60,
    "uint64": AGE.astype(np.uint64) + np.uint64(2**63),
    "int64 of less": AGE.astype(np.int64) + 2**30,
    "objects": (AGE.astype(object) + 2**70),
    "Int64": pandas.array(AGE.astype(np.int64) + 2**60, dtype="Int64"),
    "float64": AGE.astype(np.float64) + 2.0**60,
    "float64 of less": AGE.astype(np.float64) + 2.0**40,
    "float32": AGE.astype(np.float32) + np.float32(2**30),
    "negative": -AGE.astype(np.int64) - 2**60,
}


@pytest.mark.parametrize("name", LARGE)
@pytest.mark.parametrize("as_frame", [True, False])
def test_numbers_that_single_precision_takes_for_one_are_refused(name, as_frame):
    values = LARGE[name]
    if as_frame and name == "objects":
        values = pandas.array(AGE + 2**61, dtype="Int64")
    features = pandas.DataFrame({"a": values}) if as_frame else np.asarray(values).reshape(-1, 1)
    with pytest.raises(ValueError, match="column `(a|x0)`.*single precision"):
        FairDPClassifier(classes=[0, 1]).fit(features, Y)


def test_a_constant_is_no_such_number():
    features = pandas.DataFrame({"age": AGE, "one": 7, "whole": 2**60})
    assert FairDPClassifier(4.0, classes=[0, 1]).fit(features, Y).score(features, Y) > 0.9


def test_many_groups_are_refused_or_banded():
    rng = np.random.default_rng(1)
    for income in (rng.random(N), np.arange(N), np.array([f"id{place}" for place in range(N)])):
        with pytest.raises(ValueError, match=r"`income` has 2000 values, expected at most 100: .* bands="):
            FairDPClassifier(**DECLARED).fit(X, Y, sensitive_features=pandas.Series(income, name="income"))
    income = pandas.Series(rng.random(N), name="income")
    model = FairDPClassifier(4.0, **DECLARED, bands={"income": [0.25, 0.75]}).fit(X, Y, sensitive_features=income)
    groups = [group["group"] for group in model.fairness_["groups"]]
    assert groups == ["below 0.25", "0.25 to below 0.75", "from 0.75"]
    assert model.statement_["given"] == []
    with pytest.raises(ValueError, match="bands of `income` are .* ascending"):
        FairDPClassifier(**DECLARED, bands={"income": [2, 1]}).fit(X, Y, sensitive_features=income)
    with pytest.raises(ValueError, match="'income' is in both"):
        both = {"bands": {"income": [1]}, "groups": {"income": [1]}}
        FairDPClassifier(**DECLARED, **both).fit(X, Y, sensitive_features=income)


def test_decisions_by_band_need_the_number():
    rng = np.random.default_rng(2)
    income = pandas.Series(rng.random(8000), name="income")
    age = pandas.DataFrame({"age": rng.integers(18, 81, 8000)})
    y = (age["age"] > np.where(income < 0.5, 40, 60)).astype(int)
    options = {"fairness": "equalized-odds", "bands": {"income": [0.5]}}
    model = FairDPClassifier(4.0, **DECLARED, **options).fit(age, y, sensitive_features=income)
    assert model.predict(age, sensitive_features=income).shape == (8000,)
    assert model.predict_proba(age).shape == (8000, 2)
    with pytest.raises(ValueError, match="decisions depend on `income`"):
        model.predict(age)


@pytest.mark.parametrize(
    ("values", "declared", "words"),
    [
        (np.where(Y, "yes", "no"), [0, 1], "2,000 of 2,000 values are none of those declared, such as '(yes|no)'"),
        (np.where(Y, "nurse", "clerk"), ["Nurse", "clerk"], "such as 'nurse', and no record has 'Nurse'"),
        (pandas.to_datetime(["2020-01-01 10:00"] * N), ["2020-01-01"], "such as '2020-01-01 10:00:00'"),
        (np.full(N, 2.0**60), [2**60 + 1], "float64 cannot hold the declared '1152921504606846977'"),
        (np.full(N, 2.0**60), [2**60, 2**60 + 1], "float64 cannot hold the declared '1152921504606846977'"),
    ],
)
def test_declared_values_that_never_match_are_said(values, declared, words):
    with pytest.warns(UnmatchedValuesWarning, match=f"column `x`.*{words}"):
        features = X.assign(x=values)
        FairDPClassifier(**DECLARED, categories={"x": declared}).fit(features, Y)


@pytest.mark.parametrize(
    ("values", "declared", "asked"),
    [
        (Y.astype(bool), [False, True], Y),
        (Y, [0, 1], Y.astype(bool)),
        (Y.astype(bool), [0, 1], np.where(Y, "true", "false")),
        (Y + 1, [1, 2], (Y + 1.0).astype(str)),
        ((Y + 1.0).astype(str), [1, 2], Y + 1),
        (Y + 1, ["1.0", "2.0"], Y + 1.0),
        (Y + 0.5, [0.5, 1.5], (Y + 0.5).astype(str)),
        (Y, ["0", "1"], (Y == 1).astype(object)),
    ],
)
def test_a_value_is_one_in_every_spelling(values, declared, asked, recwarn):
    of = lambda column: pandas.DataFrame({"x": column})
    model = FairDPClassifier(4.0, categories={"x": declared}, classes=[0, 1]).fit(of(values), Y)
    assert model.score(of(values), Y) > 0.95
    np.testing.assert_array_equal(model.predict_proba(of(asked)), model.predict_proba(of(values)))
    assert not any(issubclass(warning.category, UnmatchedValuesWarning) for warning in recwarn)


@pytest.mark.parametrize(
    ("labels", "classes"),
    [(Y, ["0", "1"]), (Y.astype(str), [0, 1]), (Y.astype(bool), [0, 1]), (Y, [False, True]), (Y.astype(float).astype(str), [0, 1])],
)
def test_a_label_is_one_in_every_spelling(labels, classes):
    model = FairDPClassifier(4.0, bounds=(18, 80), classes=classes).fit(X, labels)
    assert model.classes_.tolist() == classes
    assert model.score(X, labels) == model.score(X, Y) > 0.9


def test_a_group_is_one_in_every_spelling():
    sex = pandas.Series(Y.astype(bool), name="old")
    model = FairDPClassifier(4.0, **DECLARED, groups={"old": [0, 1]}).fit(X, Y, sensitive_features=sex)
    assert [group["group"] for group in model.fairness_["groups"]] == ["0", "1"]


def test_predict_says_what_it_does_not_know():
    features = X.assign(job=np.where(Y, "nurse", "clerk"))
    model = FairDPClassifier(**DECLARED, categories={"job": ["clerk", "nurse"]}).fit(features, Y)
    with pytest.warns(UnmatchedValuesWarning, match="column job: 2,000 of 2,000 values are none of those declared"):
        model.predict(features.assign(job=features["job"].str.upper()))
    with pytest.warns(UnmatchedValuesWarning, match=r"column age: 2,000 of 2,000 beyond \[18, 80\]"):
        model.predict(features.assign(age=features["age"] * 12))
    with pytest.warns(UnmatchedValuesWarning, match="column job: 1 of 2,000 values is none of those declared"):
        model.predict(features.assign(job=features["job"].where(features.index != 3, "smith")))
    with pytest.raises(TypeError, match="column `age`: record 3 is 'old', expected a number"):
        model.predict(features.assign(age=features["age"].astype(object).where(features.index != 3, "old")))


def test_nothing_about_a_columns_type_follows_from_its_records():
    whole = X.assign(b=Y.astype(bool))
    gap = whole.assign(b=whole["b"].astype(object).where(whole.index != 4, None))
    of = lambda **options: FairDPClassifier(4.0, bounds=(18, 80), classes=[0, 1], **options)
    # A column of truth values is a number; with a gap nothing says what it is.
    assert of().fit(whole, Y).statement_["given"] == []
    with pytest.raises(TypeError, match=r"column `b` holds object, and record 0 is .*: nothing says what the column is"):
        of().fit(gap, Y)
    declared = {"categories": {"b": [False, True, None]}}
    assert of(**declared).fit(gap, Y).score(gap, Y) > 0.95
    with pytest.raises(ValueError, match="contains NaN: column `b`, record 4"):
        of().fit(whole.assign(b=gap["b"].astype("boolean")), Y)
    for mixed in ([1, "x"], [1.5, None], ["x", 2]):
        with pytest.raises(TypeError, match="nothing says what the column is"):
            of().fit(X.assign(b=pandas.Series(mixed * (N // 2), dtype=object)), Y)


def test_records_and_classes_have_weights():
    # In the half with the larger weight the sign of `age - 50` is the class, in the other its opposite.
    is_heavy = np.arange(N) % 2 == 0
    y = np.where(is_heavy, AGE > 50, AGE <= 50).astype(int)
    old = pandas.DataFrame({"age": [75]})
    declared = {"bounds": {"age": (18, 80)}, "classes": [0, 1]}
    for heavy, light, expected in [(4.0, 1.0, 0.8), (1.0, 4.0, 0.2)]:
        weights = np.where(is_heavy, heavy, light)
        model = FairDPClassifier(8.0, **declared, max_weight=4.0).fit(X, y, sample_weight=weights)
        assert abs(model.predict_proba(old)[0, 1] - expected) < 0.08
        assert model.statement_["given"] == [] and "by its weight" in model.statement_["method"]
    with pytest.warns(PrivacyLeakWarning, match="the largest weight"):
        model = FairDPClassifier(8.0, **declared).fit(X, y, sample_weight=pandas.Series(weights))
    assert any("weight" in given for given in model.statement_["given"])
    # A class of three times the weight has three times the odds.
    of = lambda **options: FairDPClassifier(20.0, **declared, **options).fit(X, Y).predict_proba(X)[:, 1]
    assert of(class_weight={1: 3.0}).mean() > of().mean() + 0.02
    assert FairDPClassifier(8.0, **declared, class_weight="balanced").fit(X, Y).score(X, Y) > 0.9


def test_what_a_fit_clamped_or_came_to_is_said():
    model = FairDPClassifier(8.0, **{"bounds": {"age": (18, 80)}, "classes": [0, 1]}, max_weight=1.0)
    with pytest.warns(UserWarning, match=rf"sample_weight: {N // 2} of {N} are beyond max_weight = 1"):
        model.fit(X, Y, sample_weight=np.where(np.arange(N) % 2, 50.0, 0.5))
    with pytest.raises(ValueError, match="holds 3 values"):
        model.predict(X, sensitive_features=["f"] * 3)
    with pytest.warns(UserWarning, match="the model answers '0' for nearly everyone"):
        model.set_params(max_weight=None, random_state=0).fit(X, np.zeros_like(Y))
    with pytest.raises(FairDPError, match="column `age`: `1` is listed twice"):
        FairDPClassifier(categories={"age": [1, 1.0]}, classes=[0, 1]).fit(X, Y)


@pytest.mark.parametrize(
    ("options", "weights", "expected"),
    [
        ({}, np.zeros(N), "sample_weight: every weight is zero"),
        ({}, np.ones(3), "sample_weight"),
        ({}, np.where(AGE > 50, -1.0, 1.0), "sample_weight: record .* has -1, expected"),
        ({}, np.full(N, np.nan), "sample_weight: record 0 has nan"),
        ({}, ["much"] * N, "sample_weight holds"),
        ({"max_weight": 2.0}, None, "max_weight = 2.0: expected sample_weight"),
        ({"max_weight": 0}, np.ones(N), "max_weight = 0"),
        ({"max_weight": "2"}, np.ones(N), "max_weight = '2'"),
        ({"class_weight": "equal"}, None, "class_weight = 'equal': expected"),
        ({"class_weight": {2: 1.0}}, None, "class_weight: there is no class 2"),
        ({"class_weight": {1: -1.0}}, None, "class_weight: 1 has -1.0"),
        ({"class_weight": {0: 0, 1: 0}}, None, "class_weight: every weight is zero"),
        ({"model": "mlp"}, np.ones(N), "weight"),
        ({"method": "dpsgd", "class_weight": "balanced"}, None, "class_weight"),
    ],
)
def test_weights_out_of_range_are_refused_by_name(options, weights, expected):
    with pytest.raises(ValueError, match=expected):
        FairDPClassifier(**DECLARED, **options).fit(X, Y, sample_weight=weights)
