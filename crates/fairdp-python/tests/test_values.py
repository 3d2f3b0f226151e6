"""The text of a value depends on its own record alone; a value is one in every spelling."""

from __future__ import annotations

import datetime as dt
import warnings
from decimal import Decimal

import numpy as np
import pandas
import polars
import pyarrow
import pytest

from fairdp import FairDPClassifier
from fairdp._values import text, texts

UTC = dt.timezone.utc
DAYS = [dt.datetime(2020, 1, 1), dt.datetime(2021, 6, 1, 12, 30)]
DATES = [dt.date(2020, 1, 1), dt.date(2021, 6, 1)]
SPANS = [dt.timedelta(days=1), dt.timedelta(seconds=1.5)]
BIG = 2**53
N = 2000


def arrow(values, kind):
    return pandas.Series(values, dtype=pandas.ArrowDtype(kind))


def intervals(last):
    return pandas.Series(pandas.cut([1, 30] * (N // 2 - 1) + [1, last], [0, 20, 40]))


def in_pandas(dtype=None):
    return lambda values: pandas.Series(values, dtype=dtype)


def in_polars(dtype=None):
    return lambda values: polars.Series("x", values, dtype=dtype)


INTERVALS = [pandas.Interval(0, 20), pandas.Interval(20, 40)]
PERIODS = [pandas.Period("2020-01", "M"), pandas.Period("2021-06", "M")]
ZONED = [day.replace(tzinfo=UTC) for day in DAYS]
# What makes the column, its two values, and what one record has in the place of the second.
KINDS = {
    "numpy bool": (lambda v: np.array(v), [False, True], [False]),
    "numpy int": (lambda v: np.array(v), [1, 2], [-7, 2**62]),
    "numpy uint": (lambda v: np.array(v, dtype=np.uint64), [BIG, BIG + 1], [2**64 - 1]),
    "numpy float": (lambda v: np.array(v), [0.1, 1.0], [np.nan, 1e300, 2.5]),
    "numpy float32": (lambda v: np.array(v, dtype=np.float32), [np.float32(0.1), 1.0], [np.nan, 3e38]),
    "numpy object": (lambda v: np.array(v, dtype=object), ["a", 1], [None, np.nan, 2.5, True, Decimal("0.1"), "", b"z"]),
    "numpy str": (lambda v: np.array(v), ["a", "b"], ["", "a longer text than the others"]),
    "numpy datetime": (lambda v: np.array(v, dtype="M8[us]"), DAYS, [None, dt.datetime(2199, 1, 1, 1, 1, 1, 7)]),
    "numpy days": (lambda v: np.array(v, dtype="M8[D]"), DATES, [None]),
    "numpy timedelta": (lambda v: np.array(v, dtype="m8[us]"), SPANS, [None, dt.timedelta(microseconds=1)]),
    "pandas bool": (in_pandas(), [False, True], [None, "x", 3]),
    "pandas int": (in_pandas(), [1, 2], [None, 2.5, "x"]),
    "pandas float": (in_pandas(), [0.5, 2.0], [None, "x"]),
    "pandas object": (in_pandas(object), [BIG, BIG + 1], [None, 0.5, "x"]),
    "pandas str": (in_pandas("str"), ["a", "b"], [None]),
    "pandas Int64": (in_pandas("Int64"), [BIG, BIG + 1], [None]),
    "pandas UInt64": (in_pandas("UInt64"), [BIG, BIG + 1], [None]),
    "pandas Float32": (in_pandas("Float32"), [0.25, 2.0], [None]),
    "pandas boolean": (in_pandas("boolean"), [False, True], [None]),
    "pandas string": (in_pandas("string"), ["a", "b"], [None]),
    "pandas category of texts": (in_pandas("category"), ["a", "b"], [None, "c"]),
    "pandas category of integers": (in_pandas("category"), [BIG, BIG + 1], [None, 7]),
    "pandas category of truth values": (in_pandas("category"), [False, True], [None]),
    "pandas category of intervals": (None, INTERVALS, [101, None]),
    "pandas ordered category": (in_pandas(pandas.CategoricalDtype(["low", "high"], True)), ["low", "high"], [None]),
    "pandas intervals": (in_pandas(), INTERVALS, [None, pandas.Interval(0.5, 1)]),
    "pandas datetime": (in_pandas("datetime64[ns]"), DAYS, [None, pandas.Timestamp("2020-01-01 00:00:00.000000001")]),
    "pandas zoned datetime": (in_pandas("datetime64[us, UTC]"), ZONED, [None]),
    "pandas timedelta": (in_pandas("timedelta64[ns]"), SPANS, [None]),
    "pandas period": (in_pandas("period[M]"), PERIODS, [None]),
    "pandas sparse": (in_pandas(pandas.SparseDtype("int64", 0)), [0, 5], [7]),
    "pandas decimals": (in_pandas(object), [Decimal("0.10"), Decimal("2")], [None, Decimal("NaN"), "x"]),
    "polars Boolean": (in_polars(polars.Boolean), [False, True], [None]),
    "polars Int64": (in_polars(polars.Int64), [BIG, BIG + 1], [None]),
    "polars UInt8": (in_polars(polars.UInt8), [1, 255], [None]),
    "polars Float32": (in_polars(polars.Float32), [0.25, 2.0], [None]),
    "polars String": (in_polars(polars.String), ["a", "b"], [None, ""]),
    "polars Categorical": (in_polars(polars.Categorical), ["a", "b"], [None, "c"]),
    "polars Enum": (in_polars(polars.Enum(["a", "b", "c"])), ["a", "b"], [None, "c"]),
    "polars Date": (in_polars(polars.Date), DATES, [None]),
    "polars Datetime": (in_polars(polars.Datetime("ns")), DAYS, [None]),
    "polars zoned Datetime": (in_polars(polars.Datetime("us", "UTC")), ZONED, [None]),
    "polars Duration": (in_polars(polars.Duration("us")), SPANS, [None]),
    "polars Time": (in_polars(polars.Time), [dt.time(1), dt.time(2)], [None]),
    "polars Decimal": (in_polars(polars.Decimal(10, 2)), [Decimal("0.10"), Decimal("2.00")], [None]),
    "pyarrow bool": (lambda v: arrow(v, pyarrow.bool_()), [False, True], [None]),
    "pyarrow int64": (lambda v: arrow(v, pyarrow.int64()), [BIG, BIG + 1], [None]),
    "pyarrow float": (lambda v: arrow(v, pyarrow.float32()), [0.25, 2.0], [None]),
    "pyarrow string": (lambda v: arrow(v, pyarrow.string()), ["a", "b"], [None]),
    "pyarrow date": (lambda v: arrow(v, pyarrow.date32()), DATES, [None]),
    "pyarrow timestamp": (lambda v: arrow(v, pyarrow.timestamp("ns")), DAYS, [None]),
    "pyarrow decimal": (lambda v: arrow(v, pyarrow.decimal128(10, 2)), [Decimal("0.10"), Decimal("2.00")], [None]),
}


def column(name, last):
    """Two values in turns, but for the last record."""
    make, values, _ = KINDS[name]
    if make is None:
        return intervals(30 if last is values[1] else np.nan if last is None else last)
    return make([*values * (N // 2 - 1), values[0], last])


def as_frame(values):
    if isinstance(values, polars.Series):
        return polars.DataFrame({"x": values})
    return pandas.DataFrame({"x": values})


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", KINDS)
def test_one_record_moves_no_other(name):
    _, values, others = KINDS[name]
    whole = column(name, values[1])
    levels, positions = texts(whole, "x")
    model = FairDPClassifier(8.0, categories={"x": [*values, None]}, classes=[0, 1], random_state=0)
    model = model.fit(as_frame(whole), np.array([0, 1] * (N // 2)))
    probabilities = model.predict_proba(as_frame(whole))
    assert abs(probabilities[0, 1] - probabilities[1, 1]) > 0.5, "both declared values are found"
    for other in others:
        changed = column(name, other)
        new_levels, new_positions = texts(changed, "x")
        assert [new_levels[place] for place in new_positions[:-1]] == [levels[place] for place in positions[:-1]], other
        np.testing.assert_array_equal(model.predict_proba(as_frame(changed))[:-1], probabilities[:-1])


@pytest.mark.parametrize("name", KINDS)
def test_a_declared_value_has_the_text_of_its_column(name):
    _, values, _ = KINDS[name]
    levels, _ = texts(column(name, values[1]), "x")
    assert set(levels[1:]) == {text(value) for value in values}
