"""Rates by group equal Fairlearn's; intervals surround what they are about; frames come back as
they came in.
"""

from __future__ import annotations

import math
import warnings

import fairlearn.metrics as fairlearn
import numpy as np
import pandas
import polars
import pytest
import sklearn.metrics as sklearn
from hypothesis import given, settings
from hypothesis import strategies as st

from fairdp import MetricError, metrics

PARITIES = (
    "demographic_parity_difference",
    "demographic_parity_ratio",
    "equal_opportunity_difference",
    "equal_opportunity_ratio",
    "equalized_odds_difference",
    "equalized_odds_ratio",
)
THEIRS = {
    "selection_rate": fairlearn.selection_rate,
    "true_positive_rate": fairlearn.true_positive_rate,
    "false_positive_rate": fairlearn.false_positive_rate,
    "true_negative_rate": fairlearn.true_negative_rate,
    "false_negative_rate": fairlearn.false_negative_rate,
    "accuracy": sklearn.accuracy_score,
    "precision": lambda *values, **weights: sklearn.precision_score(*values, **weights, zero_division=0),
    "f1": lambda *values, **weights: sklearn.f1_score(*values, **weights, zero_division=0),
}


@st.composite
def decisions(draw):
    """Labels, predictions, two features and weights: groups of one record, empty classes and
    constants included.
    """
    n = draw(st.integers(1, 40))
    bits = st.lists(st.integers(0, 1), min_size=n, max_size=n)
    level = st.sampled_from(draw(st.sampled_from([["a"], ["a", "b"], ["a", "b", "c", "d", "e"]])))
    features = st.lists(level, min_size=n, max_size=n)
    weight = st.one_of(st.floats(1e-6, 1e6), st.sampled_from([1e-12, 1.0, 1e12]))
    weights = draw(st.one_of(st.none(), st.lists(weight, min_size=n, max_size=n)))
    return np.array(draw(bits)), np.array(draw(bits)), draw(features), draw(features), weights


def close(ours, theirs):
    return (math.isnan(ours) and math.isnan(theirs)) or abs(ours - theirs) <= 1e-12


@given(decisions(), st.sampled_from(["between_groups", "to_overall"]))
@settings(max_examples=25, deadline=None)
def test_a_frame_is_fairlearns(drawn, method):
    y_true, y_pred, first, second, weights = drawn
    features = pandas.DataFrame({"first": first, "second": second})
    ours = metrics.frame(y_true, y_pred, sensitive_features=features, metrics=list(THEIRS), sample_weight=weights)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = fairlearn.MetricFrame(
            metrics=THEIRS,
            y_true=y_true,
            y_pred=y_pred,
            sensitive_features=features,
            sample_params={name: {"sample_weight": weights} for name in THEIRS} if weights else None,
        )
        pandas.testing.assert_frame_equal(ours.by_group, theirs.by_group, check_dtype=False, rtol=0, atol=1e-12)
        for ours_, theirs_ in [
            (ours.overall, theirs.overall),
            (ours.group_min(), theirs.group_min()),
            (ours.group_max(), theirs.group_max()),
            (ours.difference(method), theirs.difference(method=method)),
            (ours.ratio(method), theirs.ratio(method=method)),
        ]:
            pandas.testing.assert_series_equal(ours_, theirs_, check_dtype=False, rtol=0, atol=1e-12)


@given(decisions())
@settings(max_examples=15, deadline=None)
def test_control_features_are_fairlearns(drawn):
    y_true, y_pred, first, second, _ = drawn
    control = pandas.Series(second, name="control")
    ours = metrics.frame(
        y_true,
        y_pred,
        sensitive_features=pandas.Series(first, name="group"),
        control_features=control,
        metrics=["selection_rate", "true_positive_rate"],
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = fairlearn.MetricFrame(
            metrics={name: THEIRS[name] for name in ("selection_rate", "true_positive_rate")},
            y_true=y_true,
            y_pred=y_pred,
            sensitive_features=pandas.Series(first, name="group"),
            control_features=control,
        )
        for ours_, theirs_ in [
            (ours.by_group, theirs.by_group),
            (ours.overall, theirs.overall),
            (ours.difference(), theirs.difference()),
            (ours.ratio(), theirs.ratio()),
        ]:
            pandas.testing.assert_frame_equal(
                ours_, theirs_, check_dtype=False, check_index_type=False, rtol=0, atol=1e-12
            )


@given(decisions(), st.sampled_from(["between_groups", "to_overall"]), st.sampled_from(["worst_case", "mean"]))
@settings(max_examples=25, deadline=None)
@pytest.mark.parametrize("name", PARITIES)
def test_parities_are_fairlearns(name, drawn, method, agg):
    y_true, y_pred, first, _, weights = drawn
    options = {"sensitive_features": first, "method": method, "sample_weight": weights}
    if name.startswith("equalized_odds"):
        options["agg"] = agg
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours, theirs = getattr(metrics, name)(y_true, y_pred, **options), getattr(fairlearn, name)(y_true, y_pred, **options)
    if name == "equalized_odds_ratio" and (math.isnan(ours) or math.isnan(theirs)):
        # One of the two ratios is 0 to 0. Fairlearn then answers the other one or nan, whichever
        # comes first; here it is 0 if the other one is, and otherwise nan.
        assert math.isnan(ours) or ours == 0
        return
    assert close(ours, theirs), (ours, theirs)


@given(decisions())
@settings(max_examples=15, deadline=None)
@pytest.mark.parametrize("name", sorted(set(THEIRS)))
def test_single_rates_are_theirs(name, drawn):
    y_true, y_pred, _, _, weights = drawn
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = THEIRS[name](y_true, y_pred, sample_weight=weights)
    assert close(getattr(metrics, name)(y_true, y_pred, sample_weight=weights), float(theirs))


def test_balanced_accuracy_is_scikit_learns():
    y_true, y_pred = [1, 1, 1, 0, 0], [1, 0, 0, 0, 1]
    assert close(metrics.balanced_accuracy(y_true, y_pred), sklearn.balanced_accuracy_score(y_true, y_pred))


def test_a_frame_comes_back_as_it_came():
    y_true, y_pred, group = [1, 0, 1, 0], [1, 0, 0, 1], ["f", "f", "m", "m"]
    of = lambda features: metrics.frame(y_true, y_pred, sensitive_features=features, metrics=["accuracy", "count"])
    by_pandas = of(pandas.DataFrame({"sex": group})).by_group
    assert by_pandas.loc["f"].to_dict() == {"accuracy": 1.0, "count": 2}
    by_polars = of(polars.DataFrame({"sex": group})).by_group
    assert by_polars.rows(named=True)[1] == {"sex": "m", "accuracy": 0.0, "count": 2}
    by_numpy = of(np.array(group)).by_group
    assert by_numpy["sensitive_feature_0"].tolist() == ["f", "m"]
    assert of({"sex": group}).overall == {"accuracy": 0.5, "count": 4}
    assert of(polars.Series("sex", group)).difference().rows() == [(1.0,)]


def test_groups_may_be_of_any_type():
    of = lambda group: metrics.frame([1, 0, 1], [1, 1, 1], sensitive_features=group, metrics=["accuracy"]).by_group
    assert of([3, 1, 3])["sensitive_feature_0"].tolist() == [1, 3]
    assert of([True, False, True])["accuracy"].tolist() == [0.0, 1.0]
    assert of(["a", 1, "a"])["sensitive_feature_0"].tolist() == [1, "a"]
    assert of(pandas.Categorical(["b", "a", "b"]))["sensitive_feature_0"].tolist() == ["a", "b"]


def test_labels_of_two_texts_need_the_positive_one():
    y_true, y_pred = ["yes", "no", "yes"], ["yes", "yes", "no"]
    assert metrics.true_positive_rate(y_true, y_pred, pos_label="yes") == 0.5
    with pytest.raises(ValueError, match="pos_label = 'maybe': expected one of the labels"):
        metrics.true_positive_rate(y_true, y_pred, pos_label="maybe")
    with pytest.raises(ValueError, match="pos_label"):
        metrics.true_positive_rate(y_true, y_pred)
    with pytest.raises(ValueError, match="3 values"):
        metrics.accuracy([0, 1, 2], [0, 1, 2])


def test_an_empty_class_is_zero_or_undefined():
    y_true, y_pred, group = [0, 0, 1], [0, 1, 1], ["a", "a", "b"]
    of = lambda empty: metrics.frame(
        y_true, y_pred, sensitive_features=group, metrics=["true_positive_rate"], empty=empty
    )
    assert of("zero").difference() == {"true_positive_rate": 1.0}
    assert math.isnan(of("undefined").by_group["true_positive_rate"][0])
    for method in ("between_groups", "to_overall"):
        assert math.isnan(of("undefined").difference(method)["true_positive_rate"])
        assert math.isnan(of("undefined").ratio(method)["true_positive_rate"])


def test_a_gap_with_an_unknown_part_is_unknown():
    # Group a has no positive record; b and c differ.
    y_true, y_pred = [0, 0, 1, 1, 1, 1], [0, 1, 1, 0, 1, 1]
    options = {"sensitive_features": ["a", "a", "b", "b", "c", "c"]}
    assert metrics.equal_opportunity_difference(y_true, y_pred, **options) == 1.0
    for name in ("equal_opportunity_difference", "equal_opportunity_ratio", "equalized_odds_difference"):
        assert math.isnan(getattr(metrics, name)(y_true, y_pred, **options, empty="undefined")), name
    # A group without a record is in no comparison: there is no m in the north.
    features = {"sex": ["f", "m", "f", "f"], "place": ["south", "south", "south", "north"]}
    table = metrics.frame([1, 1, 1, 1], [1, 0, 1, 1], sensitive_features=features, metrics=["accuracy"], empty="undefined")
    assert table.difference() == {"accuracy": 1.0} and math.isnan(table.by_group["accuracy"][2])


def test_functions_by_name_take_empty():
    y_true, y_pred = [0, 0], [0, 0]
    undefined = ("true_positive_rate", "false_negative_rate", "balanced_accuracy", "precision", "f1")
    for name in (name for name in metrics.METRICS):
        value = getattr(metrics, name)(y_true, y_pred, empty="undefined")
        assert math.isnan(value) == (name in undefined), name
        assert not math.isnan(getattr(metrics, name)(y_true, y_pred)), name
    for name in PARITIES:
        getattr(metrics, name)(y_true, y_pred, sensitive_features=["a", "b"], empty="undefined")
        with pytest.raises(ValueError, match="empty = 'none'"):
            getattr(metrics, name)(y_true, y_pred, sensitive_features=["a", "b"], empty="none")


@pytest.mark.parametrize("name", metrics.METRICS)
def test_records_without_weight_have_no_rate(name):
    alone = getattr(metrics, name)([0, 1], [0, 1], sample_weight=[0, 0])
    frame = metrics.frame([0, 1], [0, 1], sensitive_features=["a", "b"], sample_weight=[0, 0], metrics=[name, "count"])
    assert math.isnan(alone) and math.isnan(frame.overall[name])
    assert frame.by_group["count"].tolist() == [1, 1]


def test_the_worse_of_two_ratios_is_0_where_one_is():
    # No true positive in group a: a ratio of 0. No false positive at all: 0 to 0.
    y_true, y_pred, group = [1, 0, 1, 0], [0, 0, 1, 0], ["a", "a", "b", "b"]
    of = lambda agg: metrics.equalized_odds_ratio(y_true, y_pred, sensitive_features=group, agg=agg)
    assert of("worst_case") == 0 and math.isnan(of("mean"))


@given(decisions())
@settings(max_examples=15, deadline=None)
def test_balanced_accuracy_is_scikit_learns_where_a_class_is_empty(drawn):
    y_true, y_pred, first, _, weights = drawn
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = sklearn.balanced_accuracy_score(y_true, y_pred, sample_weight=weights)
    assert close(metrics.balanced_accuracy(y_true, y_pred, sample_weight=weights), float(theirs))
    frame = metrics.frame(y_true, y_pred, sensitive_features=first, sample_weight=weights, metrics=["balanced_accuracy"])
    assert close(frame.overall["balanced_accuracy"], float(theirs))
    if len(set(y_true)) == 1:
        assert math.isnan(metrics.balanced_accuracy(y_true, y_pred, sample_weight=weights, empty="undefined"))


def test_intervals_surround_their_values():
    rng = np.random.default_rng(5)
    y_true = rng.integers(0, 2, 400)
    y_pred = np.where(rng.random(400) < 0.8, y_true, 1 - y_true)
    features = pandas.DataFrame({"sex": rng.choice(["f", "m"], 400), "old": rng.choice([True, False], 400)})
    frame = metrics.frame(
        y_true, y_pred, sensitive_features=features, metrics=["accuracy", "f1", "balanced_accuracy"]
    )
    table = frame.intervals(level=0.9)
    assert len(table) == 3 * (1 + 4 + 2)
    assert ((table.low <= table.value) & (table.value <= table.high)).all()
    for name, kind in [("accuracy", "exact"), ("f1", "exact"), ("balanced_accuracy", "approximate")]:
        assert table[table.metric == name].interval.tolist() == [kind] * 5 + ["pairs"] * 2
    with pytest.warns(DeprecationWarning, match="n_resamples and random_state change nothing"):
        pandas.testing.assert_frame_equal(table, frame.intervals(level=0.9, n_resamples=200, random_state=1))
    # Clopper and Pearson: no failure among 10 has the lower end 0.025^(1/10).
    alone = metrics.frame([1] * 10, [1] * 10, sensitive_features=["a"] * 10, metrics=["accuracy"]).intervals()
    assert abs(alone["low"][0] - 0.025**0.1) < 1e-9


@pytest.mark.parametrize("weighted", [False, True])
def test_groups_that_are_alike_may_have_no_difference(weighted):
    y_true, y_pred = [1, 1, 1, 0, 0, 0] * 200, [1, 1, 0, 0, 0, 1] * 200
    weights = [2.0] * 1200 if weighted else None
    frame = metrics.frame(y_true, y_pred, sensitive_features=["a"] * 600 + ["b"] * 600, sample_weight=weights)
    table = frame.intervals()
    rows = {"statistic": table["statistic"].tolist(), "low": table["low"], "high": table["high"]}
    for statistic, low, high in zip(*rows.values(), strict=True):
        assert 0 <= low < high <= 1, statistic
        assert statistic != "difference" or low == 0
        assert statistic != "ratio" or high == 1


def test_one_record_leaves_the_other_groups_known():
    group = pandas.Series(["a"] * 30 + ["b"] * 30 + ["c"], name="g")
    frame = metrics.frame([0, 1] * 30 + [1], [0, 1, 1, 0] * 15 + [1], sensitive_features=group, metrics=["accuracy"])
    table = frame.intervals()
    assert table.n_undefined.tolist() == [0, 0, 0, 0, 1, 1]
    assert (table.low[3], table.high[3]) == (0, 1) and table.high[1] < 1
    assert (table.high[4], table.low[5]) == (1, 0)


def test_nothing_is_compared_with_an_unknown_rate():
    y_true, y_pred = [0] * 30 + [1, 0] * 15, [0] * 30 + [1, 0] * 15
    group = pandas.Series(["a"] * 30 + ["b"] * 30, name="g")
    frame = metrics.frame(y_true, y_pred, sensitive_features=group, metrics=["true_positive_rate"], empty="undefined")
    table = frame.intervals()
    assert table.value[3:].isna().all() and table.n_undefined[3:].tolist() == [1, 1]
    assert table.low[3:].tolist() == [0, 0] and table.high[3:].tolist() == [1, 1]


def test_what_is_wrong_is_named():
    with pytest.raises(ValueError, match="`sex`: record 1 has no value"):
        metrics.frame([0, 1], [0, 1], sensitive_features={"sex": ["f", None]})
    with pytest.raises(ValueError, match="`sex` holds 3 values, expected 2"):
        metrics.frame([0, 1], [0, 1], sensitive_features={"sex": ["f", "m", "m"]})
    with pytest.raises(MetricError, match="length of predictions = 1: expected 2"):
        metrics.accuracy([0, 1], [0])
    with pytest.raises(MetricError, match="weights = -1: expected finite numbers of at least 0"):
        metrics.accuracy([0, 1], [0, 1], sample_weight=[1, -1])
    with pytest.raises(ValueError, match="between_groups"):
        metrics.demographic_parity_ratio([0], [0], sensitive_features=["a"], method="between")
    with pytest.raises(ValueError, match="'recal' is unknown"):
        metrics.frame([0], [0], sensitive_features=["a"], metrics=["recal"])
    with pytest.raises(MetricError, match="level = 2"):
        metrics.frame([0, 1], [0, 1], sensitive_features=["a", "b"]).intervals(level=2.0)


def test_a_group_of_records_without_weight_has_no_rates():
    y_true, y_pred, sex = [1, 0, 1, 0], [1, 0, 0, 1], ["a", "a", "b", "b"]
    weighted = {"sensitive_features": sex, "sample_weight": [0, 0, 1, 1]}
    theirs = fairlearn.demographic_parity_difference(y_true, y_pred, **weighted)
    assert metrics.demographic_parity_difference(y_true, y_pred, **weighted) == theirs == 0


@pytest.mark.parametrize("name", ["accuracy", "value"])
def test_features_are_not_named_as_columns_of_a_result(name):
    with pytest.raises(ValueError, match=f"feature `{name}`"):
        metrics.frame([1, 0], [1, 0], sensitive_features={name: ["a", "b"]})
    with pytest.raises(ValueError, match="feature `sex`"):
        metrics.frame([1, 0], [1, 0], sensitive_features={"sex": ["a", "b"]}, control_features={"sex": ["a", "b"]})
