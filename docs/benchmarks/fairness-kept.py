"""How much of the reduction of the gap of equalised odds the noise leaves, by table and ε.

    python fairness-kept.py DATA_DIR TABLE SEEDS [EPSILON ...]

TABLE is adult, dutch or generated. Half of the records are fitted on, with thresholds by group; the other half judges
without noise: the common threshold, the released thresholds, those of the same rule on exact counts of the same model,
the same two with coins, and Fairlearn's ThresholdOptimizer on the same scores. Nothing is chosen by the half that
judges. With `prices` for TABLE, price lists of fits on a generated table are compared with 60,000 fresh records each.
Needs fairdp, fairlearn, pandas and scikit-learn.
"""

import hashlib
import json
import sys
import warnings

import numpy as np
import pandas as pd
from fairlearn.postprocessing import ThresholdOptimizer
from sklearn.base import BaseEstimator

from fairdp import FairDPClassifier

SEX = "sex"


def adult(folder):
    names = (
        "age workclass fnlwgt education education-num marital-status occupation relationship race sex capital-gain "
        "capital-loss hours-per-week native-country income"
    ).split()
    read = lambda name, skip: pd.read_csv(
        f"{folder}/adult/{name}", names=names, skipinitialspace=True, na_values="?", skiprows=skip
    )
    table = pd.concat([read("adult.data", 0), read("adult.test", 1)]).dropna().drop(columns=["fnlwgt", "education"])
    y = table.pop("income").str.startswith(">").astype(int)
    return table.reset_index(drop=True), y.to_numpy()


def dutch(folder):
    lines = open(f"{folder}/dutch/dutch_census_2001.arff").read().splitlines()
    names = [line.split()[1] for line in lines if line.lower().startswith("@attribute")]
    start = next(i for i, line in enumerate(lines) if line.lower().startswith("@data"))
    rows = [line.split(",") for line in lines[start + 1 :] if line.strip()]
    table = pd.DataFrame(rows, columns=names).map(lambda value: "v" + value.strip().strip("'"))
    y = (table.pop("occupation") == "v2_1").astype(int)
    return table, y.to_numpy()


def generated(n, seed):
    """Of group b scores are lower by 1 and tell classes apart less well."""
    rng = np.random.default_rng(seed)
    b = rng.random(n) < 0.4
    z = rng.normal(size=(n, 3))
    chance = 1 / (1 + np.exp(-(1.6 * z[:, 0] + 0.8 * z[:, 1] - 0.4)))
    y = (rng.random(n) < chance).astype(int)
    z[b, 0] = 0.7 * z[b, 0] - 0.5
    table = pd.DataFrame(z, columns=["x", "y", "z"]).clip(-4, 4)
    return table.assign(sex=np.where(b, "b", "a")), y


def fitted(table, y, epsilon, seed, **options):
    numbers = [name for name in table.drop(columns=SEX) if table[name].dtype.kind in "if"]
    bounds = {name: (float(table[name].min()), float(table[name].max())) for name in numbers}
    categories = {name: sorted(set(table[name])) for name in table.drop(columns=SEX) if name not in numbers}
    model = FairDPClassifier(
        epsilon, delta=1e-5, bounds=bounds, categories=categories, classes=[0, 1], decision="compromise",
        groups={SEX: sorted(set(table[SEX]))}, fairness="equalized-odds", random_state=seed, **options,
    )
    return model.fit(table.drop(columns=SEX), y, sensitive_features=table[[SEX]])


def scores(model, table):
    probability = model.predict_proba(table.drop(columns=SEX))
    return np.log(probability[:, 1]) - np.log(probability[:, 0])


def with_exact_counts(model, score, y, group):
    """The same release, as if counts had no noise: for comparison only."""
    release = dict(model.release_)
    file = json.loads(release["scores.json"])
    cells = np.searchsorted(file["edges"], score, side="left")
    counts = np.zeros((file["training"]["n_groups"], 2, len(file["edges"]) + 1))
    np.add.at(counts, (group, y, cells), 1)
    file["training"].update(noise_std=0.0, prefixes=np.cumsum(counts, 2).ravel().tolist())
    old = hashlib.sha256(release["scores.json"]).hexdigest()
    release["scores.json"] = json.dumps(file).encode()
    body, _ = release["statement.json"].decode().rsplit(',\n  "seal": "', 1)
    body = body.replace(old, hashlib.sha256(release["scores.json"]).hexdigest())
    seal = hashlib.sha256(body.encode()).hexdigest()
    release["statement.json"] = f'{body},\n  "seal": "{seal}"\n}}\n'.encode()
    exact = FairDPClassifier()
    exact.__dict__.update({**model.__dict__, "release_": release})
    return exact


def gap_and_accuracy(answer, y, group):
    rates = [[answer[(group == place) & (y == value)].mean() for value in (0, 1)] for place in (0, 1)]
    return np.abs(np.subtract(*rates)).max(), np.where(y == 1, answer, 1 - answer).mean()


def answers(thresholds, score, group):
    """Probabilities of the positive answer."""
    if not thresholds.get("coins"):
        return (score > np.take(thresholds["by_group"], group)).astype(float)
    parts = [[(part["probability"], part["threshold"]) for part in of] for of in thresholds["coins"]]
    return sum(
        (group == place) * probability * (score > threshold)
        for place, of in enumerate(parts)
        for probability, threshold in of
    )


def one_table(name, folder, seeds, epsilons):
    table, y = {"adult": adult, "dutch": dutch}[name](folder) if name != "generated" else generated(80_000, 1)
    sexes = sorted(set(table[SEX]))
    group = table[SEX].map(sexes.index).to_numpy()
    for epsilon in epsilons:
        rows = []
        for seed in range(seeds):
            half = np.random.default_rng(seed).permutation(len(y))
            fit, judge = half[: len(y) // 2], half[len(y) // 2 :]
            model = fitted(table.iloc[fit].reset_index(drop=True), y[fit], epsilon, seed, test_fraction=0)
            of_fit, of_judge = scores(model, table.iloc[fit]), scores(model, table.iloc[judge])
            found = lambda thresholds: gap_and_accuracy(answers(thresholds, of_judge, group[judge]), y[judge], group[judge])
            edges = json.loads(model.release_["scores.json"])["edges"]
            row = [found({"by_group": [edges[len(edges) // 2]] * 2}), found(model.fairness_["thresholds"])]
            exact = with_exact_counts(model, of_fit, y[fit], group[fit])
            row.append(found(exact.with_fairness("equalized-odds").fairness_["thresholds"]))
            for one in (model, exact):
                row.append(found(one.with_fairness("equalized-odds", coins=True).fairness_["thresholds"]))
            row.append(fairlearn(of_fit, y[fit], group[fit], of_judge, y[judge], group[judge]))
            rows.append(row)
            print(f"# {name} ε {epsilon} seed {seed}: " + "  ".join(f"{gap:.4f} {acc:.4f}" for gap, acc in row), flush=True)
        mean = np.mean(rows, 0)
        heads = ["before", "private", "exact", "private coins", "exact coins", "Fairlearn"]
        reduction = lambda place: mean[0][0] - mean[place][0]
        print(f"{name}, ε = {epsilon}, {seeds} fits: kept {100 * reduction(1) / reduction(2):.0f} %", flush=True)
        for head, (gap, accuracy) in zip(heads, mean):
            print(f"    {head:14} gap {gap:.3f} accuracy {accuracy:.4f}", flush=True)


class Scored(BaseEstimator):
    """Scores as they are, for Fairlearn."""

    def fit(self, X, y):
        return self

    def __sklearn_is_fitted__(self):
        return True

    def predict(self, X):
        return X.ravel()


def fairlearn(score, y, group, of_judge, y_judge, group_judge):
    optimizer = ThresholdOptimizer(
        estimator=Scored(), constraints="equalized_odds", objective="accuracy_score", prefit=True, predict_method="predict"
    )
    optimizer.fit(score.reshape(-1, 1), y, sensitive_features=group)
    answer = optimizer._pmf_predict(of_judge.reshape(-1, 1), sensitive_features=group_judge)[:, 1]
    return gap_and_accuracy(answer, y_judge, group_judge)


def price_list(seeds, epsilon):
    """How many printed figures hold those of 60,000 fresh records."""
    held = {}
    for seed in range(seeds):
        table, y = generated(24_000, 100 + seed)
        model = fitted(table, y, epsilon, seed, test_fraction=0.4)
        fresh, truth = generated(60_000, 10_000 + seed)
        group, score = (fresh[SEX] == "b").to_numpy().astype(int), scores(model, fresh)
        for price in model.price_list_:
            answer = answers(price["thresholds"], score, group)
            rates = [[answer[(group == g) & (truth == c)].mean() for c in (0, 1)] for g in (0, 1)]
            selection = [answer[group == g].mean() for g in (0, 1)]
            gaps = np.abs(np.subtract(*rates))
            balanced = [0.5 * (1 - f + t) for f, t in rates]
            for what, value in {
                "accuracy": np.where(truth == 1, answer, 1 - answer).mean(),
                "least_balanced_accuracy": min(balanced),
                "equalized_odds_difference": gaps.max(),
                "equal_opportunity_difference": gaps[1],
                "demographic_parity_difference": abs(np.subtract(*selection)),
                "demographic_parity_ratio": min(selection) / max(selection),
            }.items():
                figure = price["figures"][what]
                tally = held.setdefault(what, [0, 0])
                tally[0] += figure["low"] <= value <= figure["high"]
                tally[1] += 1
        print(f"# price list, fit {seed + 1}: " + ", ".join(f"{k} {a}/{n}" for k, (a, n) in held.items()), flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    folder, name, seeds = sys.argv[1], sys.argv[2], int(sys.argv[3])
    epsilons = [float(value) for value in sys.argv[4:]] or [0.5, 1.0, 3.0]
    if name == "prices":
        price_list(seeds, epsilons[0])
    else:
        one_table(name, folder, seeds, epsilons)
