"""`fairdp fit` beside what a user would take otherwise, on the same splits of one table.

    pip install interpret-core==0.7.8 scikit-learn==1.9.* pandas     # DP-EBM, gradient boosting
    pip install diffprivlib==0.6.6 scikit-learn==1.5.2 pandas        # elsewhere: does not import under 1.9
    cargo xtask data export adult > adult.csv
    python tables.py target/release/fairdp adult.csv --label income --positive '>50K' --group sex

Every method sees the training rows of a split as a user would give them, with its defaults, and
answers for the test rows. Bounds and categories are taken from the training rows by each of them. DP-EBM
and diffprivlib refuse missing values: they get the median of the training rows for a number and a
category of its own for a text. A peer that is not installed is left out.
"""

import argparse
import functools
import pathlib
import subprocess
import tempfile
import time

import numpy as np
import pandas as pd
from sklearn.metrics import accuracy_score, balanced_accuracy_score, roc_auc_score
from sklearn.model_selection import train_test_split

DELTA = 1e-5
SMALLEST_GROUP = 100


def with_fairdp(options, train, test, epsilon, model="auto"):
    with tempfile.TemporaryDirectory() as folder:
        at = lambda name: str(pathlib.Path(folder) / name)
        train.to_csv(at("train.csv"), index=False)
        test.drop(columns=[options.label]).to_csv(at("test.csv"), index=False)
        positive = ["--positive", options.positive]
        group = ["--group", options.group] + ([] if options.group_as_input is False else ["--group-as-input"])
        privacy = ["--epsilon", str(epsilon), "--delta", str(DELTA)]
        init = [options.fairdp, "init", at("train.csv"), "--label", options.label, *positive, *group, *privacy]
        config = subprocess.run(
            [*init, "--accept-uncovered", "--test-fraction", "0", "--model", model], check=True, capture_output=True
        ).stdout
        pathlib.Path(at("fairdp.toml")).write_bytes(config)
        begun = time.monotonic()
        fit = [options.fairdp, "fit", at("fairdp.toml"), "--out", at("run"), "-q"]
        subprocess.run(fit, check=True, capture_output=True)
        seconds = time.monotonic() - begun
        predict = [options.fairdp, "predict", at("run"), at("test.csv"), "--out", at("p.csv")]
        subprocess.run(predict, check=True, capture_output=True)
        answers = pd.read_csv(at("p.csv"), keep_default_na=False)
    return (answers.prediction == options.positive).values, answers[f"p_{options.positive}"].values, seconds


def inputs(options, table):
    return table.drop(columns=[options.label] + ([options.group] if options.group_as_input is False else []))


def without_missing(train, test):
    numbers = train.select_dtypes("number").columns
    filling = {column: train[column].median() if column in numbers else "missing" for column in train}
    return train.fillna(filling), test.fillna(filling)


def with_ebm(options, train, test, epsilon):
    from interpret.privacy import DPExplainableBoostingClassifier

    train, test = without_missing(train, test)
    model = DPExplainableBoostingClassifier(epsilon=epsilon, delta=DELTA)
    begun = time.monotonic()
    model.fit(inputs(options, train), train[options.label] == options.positive)
    seconds = time.monotonic() - begun
    scores = model.predict_proba(inputs(options, test))[:, 1]
    return scores > 0.5, scores, seconds


def with_diffprivlib(options, train, test, epsilon):
    from diffprivlib.models import LogisticRegression

    train, test = without_missing(train, test)
    table = pd.get_dummies(pd.concat([inputs(options, train), inputs(options, test)])).astype(float)
    low, high = table[: len(train)].min(), table[: len(train)].max()
    table = ((table - low) / (high - low).replace(0, 1)).clip(0, 1).values
    norm = float(np.linalg.norm(table[: len(train)], axis=1).max())
    model = LogisticRegression(epsilon=epsilon, data_norm=norm, max_iter=1000)
    begun = time.monotonic()
    model.fit(table[: len(train)], train[options.label] == options.positive)
    seconds = time.monotonic() - begun
    scores = model.predict_proba(table[len(train) :])[:, 1]
    return scores > 0.5, scores, seconds


def with_boosting(options, train, test, _):
    from sklearn.ensemble import HistGradientBoostingClassifier

    categorical = lambda table: inputs(options, table).apply(
        lambda column: column if pd.api.types.is_numeric_dtype(column) else column.astype("category")
    )
    both = categorical(pd.concat([train, test]))
    model = HistGradientBoostingClassifier(categorical_features="from_dtype", random_state=0)
    begun = time.monotonic()
    model.fit(both[: len(train)], train[options.label] == options.positive)
    seconds = time.monotonic() - begun
    scores = model.predict_proba(both[len(train) :])[:, 1]
    return scores > 0.5, scores, seconds


def measured(options, test, answers):
    decided, scores, seconds = answers
    truth = (test[options.label] == options.positive).values
    right = decided == truth
    groups = test[options.group].values
    by_group = [right[groups == group].mean() for group in set(groups) if (groups == group).sum() >= SMALLEST_GROUP]
    gap = max(by_group) - min(by_group)
    return (
        accuracy_score(truth, decided),
        balanced_accuracy_score(truth, decided),
        roc_auc_score(truth, scores),
        gap,
        seconds,
    )


PRIVATE = {
    "fairdp": with_fairdp,
    "fairdp-mlp": functools.partial(with_fairdp, model="mlp"),
    "DP-EBM": with_ebm,
    "diffprivlib": with_diffprivlib,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("fairdp")
    parser.add_argument("table")
    parser.add_argument("--label", required=True)
    parser.add_argument("--positive", required=True)
    parser.add_argument("--group", required=True)
    parser.add_argument("--group-as-input", action="store_true")
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.5, 1, 3])
    parser.add_argument("--only", nargs="+", default=[*PRIVATE, "boosting"])
    options = parser.parse_args()
    table = pd.read_csv(options.table)
    tasks = [(name, epsilon) for epsilon in options.epsilons for name in PRIVATE if name in options.only]
    tasks += [("boosting", None)] if "boosting" in options.only else []
    print(f"{len(table)} rows, {options.splits} splits; accuracy, balanced, AUC, gap of accuracy by group, seconds")
    missing = set()
    for name, epsilon in tasks:
        found = []
        for split in range(options.splits):
            if name in missing:
                break
            train, test = train_test_split(table, test_size=0.2, random_state=split)
            method = PRIVATE.get(name, with_boosting)
            try:
                found.append(measured(options, test, method(options, train, test, epsilon)))
            except ImportError as error:
                print(f"{name} left out: {error}")
                missing.add(name)
        if found:
            figures = np.mean(found, 0)
            print(f"{name:12} ε {epsilon}: " + " ".join(f"{figure:.4f}" for figure in figures[:4]), end="")
            print(f" {figures[4]:.1f} s", flush=True)


if __name__ == "__main__":
    main()
