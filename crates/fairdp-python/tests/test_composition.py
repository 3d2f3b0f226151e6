"""What several fits cost together is said where one looks; what a seed takes is said too."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas
import pytest
from sklearn.base import clone
from sklearn.ensemble import BaggingClassifier
from sklearn.model_selection import GridSearchCV

from fairdp import CompositionWarning, FairDPClassifier, FairDPError, NotPrivateWarning, _composition

DECLARED = {"bounds": (0, 100), "classes": [0, 1]}


@pytest.fixture(autouse=True)
def a_new_process(monkeypatch):
    monkeypatch.setattr(_composition, "_fits", [])


def table(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    age = rng.uniform(0, 100, (n, 1))
    return age, ((age[:, 0] > 50) ^ (rng.random(n) < 0.1)).astype(int)


def warned(fit, category):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit()
    return [str(entry.message) for entry in caught if issubclass(entry.category, category)]


def test_the_second_fit_without_a_ledger_warns():
    X, y = table()
    model = FairDPClassifier(1.0, **DECLARED)
    assert warned(lambda: model.fit(X, y), CompositionWarning) == []
    one = model.epsilon_
    assert model.total_epsilon_ == pytest.approx(one)
    (message,) = warned(lambda: clone(model).fit(X[:2000], y[:2000]), CompositionWarning)
    assert message.startswith("this process made 1 fit before") and "not those of other processes" in message
    assert one < model.total_epsilon_ < 2 * one
    (message,) = warned(lambda: model.fit(X, y), CompositionWarning)
    assert message.startswith("this process made 2 fits before")
    assert "made 2 fits before this one, whose ε add up to" in model.statement_["tuning"]
    assert "not seen" in model.statement_["tuning"]


def test_a_model_of_another_process_counts_itself():
    X, y = table()
    model = FairDPClassifier(1.0, **DECLARED).fit(X, y)
    stored = pickle.dumps(model)
    _composition._fits.clear()
    assert pickle.loads(stored).total_epsilon_ == pytest.approx(model.epsilon_)


@pytest.mark.filterwarnings("ignore::fairdp.CompositionWarning")
def test_a_search_says_what_it_knows():
    X, y = table()
    search = GridSearchCV(FairDPClassifier(1.0, **DECLARED), {"bins": [4, 8]}, cv=2).fit(X, y)
    best = search.best_estimator_
    assert "made 4 fits before this one" in best.statement_["tuning"]
    assert "public numbers" not in best.statement_["tuning"]
    assert best.epsilon_ <= 1 < best.total_epsilon_
    assert b"bootstrap sample" in best.release_["statement.md"]


def test_a_ledger_adds_up_the_fits_of_all_clones(tmp_path):
    X, y = table()
    model = FairDPClassifier(1.0, **DECLARED, ledger=tmp_path / "ledger.json", total_epsilon=1.8)
    assert warned(lambda: model.fit(X, y), CompositionWarning) == []
    assert model.total_epsilon_ == pytest.approx(model.epsilon_)
    other = clone(model)
    assert warned(lambda: other.fit(X, y), CompositionWarning) == []
    assert model.epsilon_ < other.total_epsilon_ <= 1.8
    with pytest.raises(FairDPError, match=r"2 fits have spent .* beyond the cap of 1.8"):
        clone(model).fit(X, y)
    with pytest.raises(FairDPError, match="1 fits have spent .* beyond the cap of 1"):
        alone = FairDPClassifier(1.0, **DECLARED, ledger=str(tmp_path / "other.json"))
        alone.fit(X, y).fit(X, y)
    with pytest.raises(FairDPError, match="total_epsilon = 2: expected with ledger="):
        FairDPClassifier(1.0, **DECLARED, total_epsilon=2).fit(X, y)
    with pytest.raises(FairDPError, match="total_epsilon = 0.5: expected a finite number of at least epsilon, 1.0"):
        FairDPClassifier(1.0, **DECLARED, ledger=tmp_path / "third.json", total_epsilon=0.5).fit(X, y)


def test_nothing_is_seeded_in_silence():
    X, y = table()
    model = FairDPClassifier(1.0, **DECLARED, random_state=3)
    (message,) = warned(lambda: model.fit(X, y), NotPrivateWarning)
    assert message.startswith("random_state: not private")
    with pytest.warns(NotPrivateWarning, match="follows from the seed 3"):
        assert model.epsilon_ <= 1
    assert "not private" in repr(model) and "not private" not in repr(FairDPClassifier())
    assert "not private" in repr(model.set_params(random_state=None))
    assert model.statement_["private"] is False and b"**Not private**" in model.release_["statement.md"]
    assert "not private" not in repr(model.fit(X, y))
    assert warned(lambda: model.epsilon_, NotPrivateWarning) == []


@pytest.mark.filterwarnings("ignore::fairdp.CompositionWarning")
def test_an_ensemble_that_seeds_its_parts_warns():
    X, y = table()
    messages = warned(lambda: BaggingClassifier(FairDPClassifier(1.0, **DECLARED), 2).fit(X, y), NotPrivateWarning)
    assert len(messages) == 2 and all("Ensembles" in message for message in messages)


@pytest.mark.filterwarnings("ignore::fairdp.CompositionWarning")
def test_after_a_refit_that_fails_the_old_model_answers():
    X, y = table()
    frame = pandas.DataFrame({"age": X[:, 0]})
    model = FairDPClassifier(1.0, **DECLARED).fit(frame, y)
    before, release = model.predict(frame), model.release_
    wider = frame.assign(other=1.0)
    for refit in (
        lambda: model.fit(wider.assign(other=np.nan), y),
        lambda: model.fit(wider, np.full(3000, 2)),
        lambda: model.fit(wider[:20], y[:20]),
        lambda: model.set_params(epsilon=-1).fit(wider, y),
    ):
        with pytest.raises(ValueError):
            refit()
    assert (model.predict(frame) == before).all() and model.release_ is release
    assert list(model.feature_names_in_) == ["age"] and model.n_features_in_ == 1


def test_what_is_not_fitted_has_spent_nothing():
    for name in ("epsilon_", "total_epsilon_"):
        assert not hasattr(FairDPClassifier(), name)
