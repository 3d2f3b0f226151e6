"""Missing values of every library, and sparse columns, which are the same as dense ones."""

from __future__ import annotations

import json

import numpy as np
import pandas
import pytest

import fairdp
from fairdp import FairDPClassifier, FairDPError
from fairdp._sparse import SparseColumn, matrix_columns, sparse
from fairdp._values import numbers

N = 1500
RNG = np.random.default_rng(5)
AGE = RNG.integers(18, 91, N).astype(float)
Y = (AGE > 50).astype(int)
GAPS = np.arange(N) % 7 == 3
DECLARED = {"epsilon": 8.0, "bounds": {"age": (18, 90)}, "classes": [0, 1]}
pytestmark = pytest.mark.filterwarnings("ignore::fairdp.CompositionWarning", "ignore::fairdp.NotPrivateWarning")


def weights(model):
    return model.release_["model.safetensors"]


def with_gaps(missing, dtype):
    return pandas.DataFrame({"age": pandas.Series([missing if gap else age for gap, age in zip(GAPS, AGE)], dtype=dtype)})


def frames():
    yield with_gaps(np.nan, "float64")
    yield with_gaps(None, "Float64")
    yield with_gaps(pandas.NA, "Int64")
    polars = pytest.importorskip("polars")
    listed = [None if gap else int(age) for gap, age in zip(GAPS, AGE)]
    yield polars.DataFrame({"age": listed})
    yield polars.DataFrame({"age": [None if age is None else float(age) for age in listed]})


def test_a_missing_number_is_the_same_in_every_library():
    of = lambda: FairDPClassifier(**DECLARED, missing={"age": 40}, random_state=1)
    every = [of().fit(frame, Y) for frame in frames()]
    column = json.loads(every[0].release_["pipeline.json"])["schema"]["columns"][0][1]
    assert column["missing"] == 40.0
    assert all(weights(model) == weights(every[0]) for model in every)
    assert every[0].statement_["mark"] == "certified"
    answers = every[0].predict_proba(with_gaps(pandas.NA, "Int64"))
    assert len(set(answers[GAPS, 1])) == 1
    with pytest.raises(ValueError, match=r"contains NaN: column `age`, record 3 has no value.*missing=\"indicator\""):
        FairDPClassifier(**DECLARED).fit(with_gaps(np.nan, "float64"), Y)


def test_an_indicator_is_declared_for_every_column_of_numbers_whether_one_is_missing_or_not():
    model = FairDPClassifier(**DECLARED, missing="indicator", random_state=1).fit(with_gaps(np.nan, "float64"), Y)
    whole = FairDPClassifier(**DECLARED, missing="indicator", random_state=1).fit(pandas.DataFrame({"age": AGE}), Y)
    schemas = [json.loads(each.release_["pipeline.json"])["schema"] for each in (model, whole)]
    assert schemas[0] == schemas[1] and schemas[0]["columns"][0][1]["missing"] == 18.0
    assert not model._sensitive and model.statement_["given"] == []
    for missing in ("mean", {"age": np.nan}, 3):
        with pytest.raises((ValueError, TypeError), match="missing"):
            FairDPClassifier(**DECLARED, missing=missing).fit(with_gaps(np.nan, "float64"), Y)
    with pytest.raises(ValueError, match="missing: there is no column 'height'"):
        FairDPClassifier(**DECLARED, missing={"height": 1}).fit(with_gaps(np.nan, "float64"), Y)


def test_what_a_mask_hides_is_missing():
    shown = np.ma.masked_array(np.column_stack([AGE, AGE]), mask=np.column_stack([GAPS, np.zeros(N, dtype=bool)]))
    shown.data[GAPS, 0] = 1e6
    with_nan = np.column_stack([np.where(GAPS, np.nan, AGE), AGE])
    of = lambda X: FairDPClassifier(8.0, bounds=(18, 90), classes=[0, 1], missing="indicator", random_state=1).fit(X, Y)
    assert weights(of(shown)) == weights(of(with_nan))
    with pytest.raises(ValueError, match="contains NaN: column `x0`, record 3"):
        FairDPClassifier(8.0, bounds=(18, 90), classes=[0, 1]).fit(shown, Y)
    whole = np.ma.masked_array([1, 2, 3], mask=[False, True, False])
    assert np.isnan(numbers(whole, "x", True)).tolist() == [False, True, False]


@pytest.mark.filterwarnings("error::fairdp.PrivacyLeakWarning")
def test_truth_values_are_one_feature_and_sparse_ones_are_dense_ones():
    job = pandas.Series(RNG.integers(0, 300, N).astype(str))
    dense = pandas.get_dummies(job).assign(age=AGE)
    of_sparse = pandas.get_dummies(job, sparse=True).assign(age=AGE)
    of = lambda X: FairDPClassifier(**DECLARED, random_state=1).fit(X, Y)
    model = of(dense)
    schema = json.loads(model.release_["pipeline.json"])["schema"]
    assert schema["columns"][0][1] == {"kind": "boolean", "values": ["0", "1"], "missing": False}
    assert weights(model) == weights(of(of_sparse))
    assert (model.predict_proba(dense) == model.predict_proba(of_sparse)).all()


def test_a_sparse_matrix_is_the_dense_one():
    scipy = pytest.importorskip("scipy.sparse")
    dense = np.where(RNG.random((N, 40)) < 0.05, RNG.random((N, 40)), 0.0)
    dense[:, 0] = AGE / 90
    of = lambda X: FairDPClassifier(8.0, bounds=(0, 1), classes=[0, 1], bins=1, random_state=1).fit(X, Y)
    model = of(dense)
    for make in (scipy.csr_matrix, scipy.csc_array, scipy.coo_array):
        assert weights(of(make(dense))) == weights(model)
        assert (model.predict_proba(make(dense)) == model.predict_proba(dense)).all()
    wrong = scipy.csr_matrix(np.where(np.arange(N)[:, None] == 5, np.nan, dense))
    with pytest.raises(ValueError, match="contains NaN: column `x0`, record 5"):
        of(wrong)


def test_no_dense_copy_of_a_sparse_column_is_made(monkeypatch):
    scipy = pytest.importorskip("scipy.sparse")
    monkeypatch.setattr(SparseColumn, "dense", lambda self: pytest.fail("a dense copy"))
    matrix = scipy.random_array((N, 200), density=0.01, rng=RNG, format="csr")
    FairDPClassifier(8.0, bounds=(0, 1), classes=[0, 1], bins=1).fit(matrix, Y)
    found = matrix_columns(matrix)
    assert sum(len(column.values) for column in found) == matrix.nnz


def test_sparse_columns_by_hand():
    column = sparse(pandas.Series(pandas.arrays.SparseArray([0.0, 2.0, 0.0, -1.0], fill_value=0.0)))
    assert (column.min(), column.max(), len(column)) == (-1.0, 2.0, 4)
    assert column.record_where(lambda values: values == 0) == 0 and column.record_where(np.isnan) is None
    assert column.handed_over()[:2] == (4, 0.0)
    gaps = sparse(pandas.Series(pandas.arrays.SparseArray([1.0, np.nan, 3.0])))
    assert gaps.record_where(np.isnan) == 1 and (gaps.min(), gaps.max()) == (1.0, 3.0)
    assert column.dense().tolist() == [0.0, 2.0, 0.0, -1.0]
    assert sparse(np.zeros(3)) is None


def test_dates_are_days_within_bounds():
    day = pandas.Series(pandas.Timestamp("2020-01-01") + pandas.to_timedelta(RNG.integers(0, 1000, N), unit="D"), name="day")
    bounds = {"day": ("2020-01-01", "2022-09-30")}
    declared = {"classes": [0, 1], "random_state": 1}
    models = [
        FairDPClassifier(8.0, bounds=bounds, **declared).fit(column.to_frame("day"), Y)
        for column in (day, day.dt.tz_localize("UTC"), day.dt.strftime("%Y-%m-%d"), day.dt.date)
    ]
    for other in models[1:]:
        assert other.release_["model.safetensors"] == models[0].release_["model.safetensors"]
    assert models[0].statement_["mark"] == "certified"
    assert (models[0].predict_proba(day.to_frame()) == models[2].predict_proba(day.to_frame())).all()
    with pytest.warns(fairdp.estimator.PrivacyLeakWarning, match="bounds of `day`"):
        read = FairDPClassifier(8.0, **declared).fit(day.to_frame(), Y)
    assert f'"low":"{day.min().date()}"' in read.release_["pipeline.json"].decode().replace(" ", "")
    gaps = day.where(day.index != 3).to_frame()
    with pytest.raises(FairDPError, match="day"):
        FairDPClassifier(8.0, bounds=bounds, **declared).fit(gaps, Y)
    FairDPClassifier(8.0, bounds=bounds, missing="indicator", **declared).fit(gaps, Y)
    for wrong in (("2020-01-01", 3), ("2020-01-01",), "public"):
        with pytest.raises(ValueError, match="bounds of `day` are .*, expected a pair of dates"):
            FairDPClassifier(8.0, bounds={"day": wrong}, **declared).fit(day.to_frame(), Y)
    with pytest.raises(FairDPError, match="two dates, the earlier one first"):
        FairDPClassifier(8.0, bounds={"day": ("2022-01-01", "2020-01-01")}, **declared).fit(day.to_frame(), Y)


def test_bounds_of_dates_can_be_paid_for_and_parts_are_features():
    day = pandas.Series(pandas.Timestamp("2020-01-01") + pandas.to_timedelta(RNG.integers(0, 700, N), unit="D"), name="day")
    winter = day.dt.month.isin([12, 1, 2]).astype(int)
    declared = {"classes": [0, 1], "random_state": 1}
    paid = FairDPClassifier(8.0, bounds="private", parts={"day": ["month"]}, **declared).fit(day.to_frame(), winter)
    assert paid.statement_["mark"] == "certified" and paid.score(day.to_frame(), winter) > 0.95
    assert any(event["purpose"] == "bounds of `day`" for event in paid.statement_["events"])
    assert '"parts":["month"]' in paid.release_["pipeline.json"].decode().replace(" ", "").replace("\n", "")
    plain = FairDPClassifier(8.0, bounds={"day": "private"}, **declared).fit(day.to_frame(), winter)
    assert plain.score(day.to_frame(), winter) < paid.score(day.to_frame(), winter)
    with pytest.raises(FairDPError, match="parts"):
        FairDPClassifier(8.0, bounds="private", parts={"day": ["year"]}, **declared).fit(day.to_frame(), winter)


def test_texts_of_numbers_and_dates_have_a_format():
    amount, when = RNG.integers(0, 500_000, N) / 100, pandas.Timestamp("2020-01-01") + pandas.to_timedelta(
        RNG.integers(0, 900, N), unit="D"
    )
    german = [f"{value:,.2f} €".replace(",", "_").replace(".", ",").replace("_", ".") for value in amount]
    written = pandas.DataFrame({"amount": german, "when": pandas.Series(when).dt.strftime("%d.%m.%Y")})
    clean = pandas.DataFrame({"amount": amount, "when": when})
    y = (amount > 2_000).astype(int)
    bounds = {"amount": (0, 5_000), "when": ("2020-01-01", "2022-12-31")}
    declared = {"bounds": bounds, "classes": [0, 1], "random_state": 1}
    formats = {"amount": {"decimal": ",", "thousands": ".", "unit": "€"}, "when": "day-first"}
    model = FairDPClassifier(8.0, formats=formats, bands={"pay": [1_000]}, **declared)
    formats["pay"] = formats["amount"]
    model.fit(written, y, sensitive_features=pandas.Series(german, name="pay"))
    other = FairDPClassifier(8.0, bands={"pay": [1_000]}, **declared)
    other.fit(clean, y, sensitive_features=pandas.Series(amount, name="pay"))
    assert model.release_["model.safetensors"] == other.release_["model.safetensors"]
    assert model.fairness_ == other.fairness_
    assert (model.predict(written) == other.predict(clean)).all()
    with pytest.raises(ValueError, match="formats: `amount` has no bounds"):
        FairDPClassifier(8.0, formats={"amount": formats["amount"]}, classes=[0, 1]).fit(written[["amount"]], y)


def test_vectors_are_one_column():
    vectors = RNG.normal(size=(N, 4)).clip(-2, 2).astype(np.float32)
    y = (vectors[:, 0] > 0).astype(int)
    declared = {"classes": [0, 1], "random_state": 1}
    lists = pandas.DataFrame({"v": list(vectors)})
    of_lists = FairDPClassifier(8.0, vectors={"v": 4.0}, **declared).fit(lists, y)
    of_array = FairDPClassifier(8.0, vectors={"x*": 4.0}, **declared).fit(vectors, y)
    assert of_lists.release_["model.safetensors"] == of_array.release_["model.safetensors"]
    assert (of_lists.predict_proba(lists) == of_array.predict_proba(vectors)).all()
    assert of_lists.score(lists, y) > 0.8 and of_lists.statement_["mark"] == "certified"
    ranged = FairDPClassifier(8.0, vectors={"x*": (-3, 3)}, **declared).fit(vectors, y)
    assert '"range"' in ranged.release_["pipeline.json"].decode()
    with pytest.warns(fairdp.estimator.PrivacyLeakWarning, match="norm of `v`"):
        FairDPClassifier(8.0, vectors={"v": None}, **declared).fit(lists, y)
    gaps = lists.assign(v=[None if record == 3 else vector for record, vector in enumerate(lists["v"])])
    with pytest.raises(FairDPError, match="`v`"):
        FairDPClassifier(8.0, vectors={"v": 4.0}, **declared).fit(gaps, y)
    FairDPClassifier(8.0, vectors={"v": 4.0}, missing="indicator", **declared).fit(gaps, y)
    with pytest.raises(ValueError, match="vectors: there is no column 'w'"):
        FairDPClassifier(8.0, vectors={"w": 4.0}, **declared).fit(lists, y)
    with pytest.raises(TypeError, match="column `v`: record 0 is 'ab', expected a list of numbers|nothing says"):
        FairDPClassifier(8.0, **declared).fit(lists, y)


def test_what_a_program_declared_is_read_from_frames(tmp_path, monkeypatch):
    """Dates, vectors, truth values and written numbers, of a release that the program made."""
    monkeypatch.chdir(tmp_path)
    day = pandas.Timestamp("2020-01-01") + pandas.to_timedelta(RNG.integers(0, 1000, N), unit="D")
    frame = pandas.DataFrame({"day": day, "pay": AGE * 1000.5, "flag": Y == 1})
    vectors = RNG.normal(size=(N, 3))
    written = frame.assign(
        day=day.strftime("%d.%m.%Y"),
        pay=[f"{pay:,.1f}".replace(",", "_").replace(".", ",").replace("_", ".") for pay in frame["pay"]],
        v=["[" + ", ".join(map(str, row)) + "]" for row in vectors],
        y=Y,
    )
    written.to_csv("t.csv", index=False, sep=";")
    config = fairdp.init("t.csv", "y", epsilon=8.0)
    for expected in ('format = "day-first"', 'decimal = ","', 'kind = "vector"', 'kind = "boolean"'):
        assert expected in config
    (tmp_path / "c.toml").write_text(config.replace('from = "data"', "public = true"))
    release = fairdp.fit("c.toml", out="run", seed=1)
    fairdp.predict("run", "t.csv", out="p.csv")
    expected = pandas.read_csv("p.csv")["p_1"].to_numpy()
    typed = frame.assign(v=list(vectors))
    assert np.allclose(release.predict_proba(typed)[:, 1], expected, rtol=0, atol=1e-12)
    assert np.allclose(release.predict_proba(written)[:, 1], expected, rtol=0, atol=1e-12)
    pytest.importorskip("pyarrow")
    typed.to_parquet("t.parquet")
    fairdp.predict("run", "t.parquet", out="q.csv")
    assert (tmp_path / "q.csv").read_text() == (tmp_path / "p.csv").read_text()
