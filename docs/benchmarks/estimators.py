"""Private classifiers in one scikit-learn loop: the same splits, bounds, categories and ε for each.

    pip install crates/fairdp-python scikit-learn==1.6.1 pandas diffprivlib==0.6.6 interpret-core==0.7.8
    cargo xtask data export adult > adult.csv
    python docs/benchmarks/estimators.py adult.csv

scikit-learn 1.6.1 is one that all three import under. Bounds are those of the table's
documentation, and so are the categories, which are read here from the whole file. `sex` is not
among the inputs. diffprivlib has δ = 0.
"""

from __future__ import annotations

import sys
import time
import warnings

import numpy as np
import pandas as pd
from diffprivlib.models import LogisticRegression as DiffprivlibRegression
from interpret.privacy import DPExplainableBoostingClassifier
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, balanced_accuracy_score, roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder

from fairdp import FairDPClassifier, metrics

DELTA = 1e-5
SPLITS = 3
BOUNDS = {
    "age": (17, 90),
    "education-num": (1, 16),
    "capital-gain": (0, 99_999),
    "capital-loss": (0, 4_356),
    "hours-per-week": (1, 99),
}


def encoder(values):
    """Numbers to [0, 1] by their bounds, categories to indicators: a row's norm is at most √13."""
    low, high = np.array(list(BOUNDS.values()), dtype=float).T
    scaled = FunctionTransformer(lambda numbers: (numbers - low) / (high - low))
    indicators = OneHotEncoder(categories=list(values.values()), handle_unknown="ignore", sparse_output=False)
    return make_column_transformer((scaled, list(BOUNDS)), (indicators, list(values)))


def estimators(epsilon, values):
    """By name."""
    norm = (len(BOUNDS) + len(values)) ** 0.5
    declared = {"bounds": BOUNDS, "categories": values, "classes": [0, 1], "test_fraction": 0.0}
    return {
        "FairDPClassifier": FairDPClassifier(epsilon, DELTA, **declared),
        "FairDPClassifier, `decision=\"balanced\"`": FairDPClassifier(epsilon, DELTA, decision="balanced", **declared),
        "FairDPClassifier, `model=\"mlp\"`": FairDPClassifier(epsilon, DELTA, model="mlp", **declared),
        "DP-EBM": DPExplainableBoostingClassifier(epsilon=epsilon, delta=DELTA, privacy_bounds=BOUNDS),
        "diffprivlib, logistic regression": make_pipeline(
            encoder(values), DiffprivlibRegression(epsilon=epsilon, data_norm=norm, max_iter=1000)
        ),
    }


def measured(estimator, X, y, sex):
    """Means over splits: accuracy, balanced accuracy, AUC, difference of equalized odds, seconds of
    a fit.
    """
    rows = []
    for split in range(SPLITS):
        parts = train_test_split(X, y, sex, test_size=0.2, random_state=split)
        X_train, X_test, y_train, y_test, _, sex_test = parts
        begun = time.monotonic()
        model = clone(estimator).fit(X_train, y_train)
        seconds = time.monotonic() - begun
        answers, scores = np.asarray(model.predict(X_test)).astype(int), model.predict_proba(X_test)[:, 1]
        odds = metrics.equalized_odds_difference(y_test, answers, sensitive_features=sex_test)
        rows.append(
            [
                accuracy_score(y_test, answers),
                balanced_accuracy_score(y_test, answers),
                roc_auc_score(y_test, scores),
                odds,
                seconds,
            ]
        )
    return np.mean(rows, axis=0)


def main(path):
    """Prints the table."""
    warnings.simplefilter("ignore")
    table = pd.read_csv(path, keep_default_na=False)
    y, sex = (table.pop("income") == ">50K").astype(int), table.pop("sex")
    values = {name: sorted(table[name].unique()) for name in table.columns if name not in BOUNDS}
    print("| ε | estimator | accuracy | balanced accuracy | AUC | equalized odds difference | seconds |")
    print("|---|---|---|---|---|---|---|")
    rows = [(epsilon, name, model) for epsilon in (0.5, 1.0, 3.0) for name, model in estimators(epsilon, values).items()]
    plain = make_pipeline(encoder(values), LogisticRegression(max_iter=1000))
    for epsilon, name, model in [*rows, ("–", "logistic regression, not private (scikit-learn)", plain)]:
        accuracy, balanced, auc, odds, seconds = measured(model, table, y, sex)
        print(f"| {epsilon} | {name} | {accuracy:.4f} | {balanced:.4f} | {auc:.4f} | {odds:.4f} | {seconds:.1f} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
