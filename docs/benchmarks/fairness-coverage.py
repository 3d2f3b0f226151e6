"""How often the intervals that whole fits print hold the truth.

    python fairness-coverage.py FITS [FIRST_SEED]

Records are drawn from a known population of 202 kinds of people, so the rates of a model that was fitted are exact.
Every interval of `fairness.json` is compared with them. Figures whose misses are above the binomial law of 5 % at
1 % divided by the number of figures are marked. Needs fairdp and SciPy.
"""

import json
import sys
import warnings
from collections import defaultdict

import numpy as np
from scipy.stats import binom

from fairdp import FairDPClassifier

RECORDS = 8_000
VALUES = 101
x = np.tile(np.arange(VALUES), 2)
group = np.repeat([0, 1], VALUES)
positive = np.where(group == 0, 0.1 + 0.8 * x / 100, 0.1 + 0.45 * x / 100)
tally = defaultdict(lambda: [0, 0])


def check(what, rate, truth):
    tally[what][0] += not rate["low"] - 1e-9 <= truth <= rate["high"] + 1e-9
    tally[what][1] += 1


def rates(answer, of):
    p, a = positive[of], answer[of]
    true, false = (p * a).sum() / p.sum(), ((1 - p) * a).sum() / (1 - p).sum()
    right = np.where(a == 1, p, 1 - p).mean()
    return {
        "accuracy": right,
        "balanced_accuracy": 0.5 * (1 - false + true),
        "selection_rate": a.mean(),
        "true_positive_rate": true,
        "false_positive_rate": false,
    }


def area(score, edges, of):
    cell = np.searchsorted(edges, score[of], side="left")
    one, none = (np.bincount(cell, weights, len(edges) + 1) for weights in (positive[of], 1 - positive[of]))
    return (one * (np.cumsum(none) - none / 2)).sum() / one.sum() / none.sum()


def one_fit(seed):
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 2 * VALUES, RECORDS)
    y = (rng.random(RECORDS) < positive[kind]).astype(int)
    sex = np.array(["a", "b"])[group]
    model = FairDPClassifier(
        1.0, delta=1e-5, bounds={"x0": (0, 100)}, categories={"x1": [0, 1]}, classes=[0, 1], groups={"g": ["a", "b"]},
        decision="compromise", fairness="equalized-odds", test_fraction=0.4, random_state=seed,
    )
    people = np.c_[x, group].astype(float)
    model.fit(people[kind], y, sensitive_features={"g": sex[kind]})
    probability = model.predict_proba(people)
    score = np.log(probability[:, 1]) - np.log(probability[:, 0])
    fairness, edges = model.fairness_, json.loads(model.release_["scores.json"])["edges"]
    own = (score > np.take(fairness["thresholds"]["by_group"][:2], group)).astype(int)
    everyone = np.full(2 * VALUES, True)
    for who, found, of in [("all", fairness["overall"], everyone)] + [
        ("group", found, group == place) for place, found in enumerate(fairness["groups"][:2])
    ]:
        for what, truth in rates(own, of).items():
            check(f"{what}, {who}", found[what], truth)
        check(f"auc, {who}", found["auc"], area(score, edges, of))
    for name in ("price_list", "price_list_of_one_threshold"):
        for price in fairness[name]:
            answer = (score > np.take(price["thresholds"]["by_group"][:2], group)).astype(int)
            all_, a, b = (rates(answer, of) for of in (everyone, group == 0, group == 1))
            gap = {what: abs(a[what] - b[what]) for what in a}
            low, high = sorted((a["selection_rate"], b["selection_rate"]))
            truths = {
                "accuracy": all_["accuracy"],
                "balanced_accuracy": all_["balanced_accuracy"],
                "least_balanced_accuracy": min(a["balanced_accuracy"], b["balanced_accuracy"]),
                "equalized_odds_difference": max(gap["true_positive_rate"], gap["false_positive_rate"]),
                "equal_opportunity_difference": gap["true_positive_rate"],
                "demographic_parity_difference": gap["selection_rate"],
                "demographic_parity_ratio": low / high if high > 0 else 1.0,
            }
            for what, truth in truths.items():
                check(f"{name}, {price['mode']}: {what}", known(price["figures"][what]), truth)


def known(rate):
    return rate.get("without_unknown") or rate


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    for seed in range(first, first + int(sys.argv[1])):
        one_fit(seed)
    for what, (missed, n) in tally.items():
        failed = missed > binom.isf(0.01 / len(tally), n, 0.05)
        print(f"{what}: {100 * (1 - missed / n):.1f} % of {n}{' FAILED' if failed else ''}")
    print(f"{len(tally)} figures, least {100 * (1 - max(missed / n for missed, n in tally.values())):.1f} %")
