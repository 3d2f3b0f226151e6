"""Writes the tables beside this file: values of fairlearn and scipy that the tests compare with.

python generate.py        (fairlearn 0.15.0, scikit-learn 1.9.1, scipy 1.17.1, numpy 2.4.6)
"""

import json
import pathlib

import numpy as np
import pandas as pd
import scipy
import sklearn
import sklearn.metrics as sk
from scipy.stats import wilcoxon

import fairlearn
import fairlearn.metrics as fl

HERE = pathlib.Path(__file__).parent
VERSIONS = f"fairlearn {fairlearn.__version__}, scikit-learn {sklearn.__version__}, scipy {scipy.__version__}, numpy {np.__version__}"

RATES = {
    "selection_rate": fl.selection_rate,
    "true_positive_rate": fl.true_positive_rate,
    "false_positive_rate": fl.false_positive_rate,
    "true_negative_rate": fl.true_negative_rate,
    "false_negative_rate": fl.false_negative_rate,
    "accuracy": sk.accuracy_score,
    "balanced_accuracy": sk.balanced_accuracy_score,
    "precision": lambda y, p: sk.precision_score(y, p, zero_division=np.nan),
    "f1": lambda y, p: sk.f1_score(y, p, zero_division=np.nan),
}


def number(x):
    """A JSON number; null for NaN."""
    x = float(x)
    return None if np.isnan(x) else x


def user_guide():
    """The inputs of the examples in fairlearn's user guide (common metrics, intersecting groups)."""
    return {
        "name": "user guide",
        "y_true": [0, 1, 1, 1, 1, 0, 1, 0, 1, 0, 0, 0, 1, 1, 1, 1, 1, 1],
        "y_pred": [0, 0, 1, 0, 1, 1, 1, 0, 0, 1, 1, 1, 1, 0, 0, 1, 1, 0],
        "sex": list("bbabbcccaacabccbcc"),
        "age": list("868888666866668666"),
    }


def random_case(name, rng, n, n_groups, missing_positives=False):
    sex = rng.integers(0, n_groups, n)
    y_true = rng.integers(0, 2, n)
    if missing_positives:
        y_true[sex == 0] = 0
    y_pred = np.where(rng.random(n) < 0.75, y_true, 1 - y_true)
    return {
        "name": name,
        "y_true": y_true.tolist(),
        "y_pred": y_pred.tolist(),
        "sex": [f"g{k}" for k in sex],
        "age": [["old", "young"][k] for k in rng.integers(0, 2, n)],
    }


def evaluate(case):
    y_true, y_pred = np.array(case["y_true"]), np.array(case["y_pred"])
    sex, age = pd.Series(case["sex"], name="sex"), pd.Series(case["age"], name="age")
    single = fl.MetricFrame(metrics=RATES, y_true=y_true, y_pred=y_pred, sensitive_features=sex)
    case["overall"] = {name: number(single.overall[name]) for name in RATES}
    case["by_group"] = {
        name: {level: number(value) for level, value in single.by_group[name].items()} for name in RATES
    }
    case["difference"] = {
        method: {name: number(value) for name, value in single.difference(method=method).items()}
        for method in ["between_groups", "to_overall"]
    }
    case["ratio"] = {
        method: {name: number(value) for name, value in single.ratio(method=method).items()}
        for method in ["between_groups", "to_overall"]
    }
    crossed = fl.MetricFrame(
        metrics=RATES, y_true=y_true, y_pred=y_pred, sensitive_features=pd.DataFrame({"sex": sex, "age": age})
    )
    case["crossed"] = {
        name: {"+".join(levels): number(value) for levels, value in crossed.by_group[name].items()}
        for name in ["selection_rate", "accuracy"]
    }
    controlled = fl.MetricFrame(
        metrics=RATES, y_true=y_true, y_pred=y_pred, sensitive_features=sex, control_features=age
    )
    case["controlled"] = {
        name: {level: number(value) for level, value in controlled.difference()[name].items()}
        for name in ["selection_rate", "accuracy"]
    }
    case["parity"] = {}
    for method in ["between_groups", "to_overall"]:
        for function in [fl.demographic_parity_difference, fl.demographic_parity_ratio]:
            key = f"{function.__name__}/{method}"
            case["parity"][key] = number(function(y_true, y_pred, sensitive_features=sex, method=method))
        for function in [fl.equal_opportunity_difference, fl.equal_opportunity_ratio]:
            key = f"{function.__name__}/{method}"
            case["parity"][key] = number(function(y_true, y_pred, sensitive_features=sex, method=method))
        for function in [fl.equalized_odds_difference, fl.equalized_odds_ratio]:
            for agg in ["worst_case", "mean"]:
                key = f"{function.__name__}/{method}/{agg}"
                case["parity"][key] = number(
                    function(y_true, y_pred, sensitive_features=sex, method=method, agg=agg)
                )
    return case


def frames():
    rng = np.random.default_rng(20230901)
    cases = [user_guide()]
    cases += [random_case(f"random {i}", rng, 60 + 20 * i, 2 + i % 3) for i in range(6)]
    cases.append(random_case("a group without positives", rng, 80, 3, missing_positives=True))
    return [evaluate(case) for case in cases]


def scores():
    rng = np.random.default_rng(20230902)
    cases = []
    for i in range(12):
        n = int(rng.integers(5, 60))
        y = rng.integers(0, 2, n)
        y[0], y[1] = 0, 1
        p = np.clip(rng.normal(0.3 + 0.4 * y, 0.25), 0, 1)
        if i % 2:
            p = np.round(p, 1)
        cases.append({
            "y_true": y.tolist(),
            "score": p.tolist(),
            "roc_auc": number(sk.roc_auc_score(y, p)),
            "log_loss": number(sk.log_loss(y, p, labels=[0, 1])),
        })
    return cases


def enumerate_signs(d, alternative):
    """The exact p-value over all sign patterns, zeros dropped: an oracle for ties, independent of scipy's shortcuts."""
    d = d[d != 0]
    ranks = scipy.stats.rankdata(np.abs(d))
    observed = ranks[d > 0].sum()
    patterns = (np.arange(2 ** len(d))[:, None] >> np.arange(len(d))) & 1
    sums = patterns @ ranks
    greater, less = np.mean(sums >= observed - 1e-9), np.mean(sums <= observed + 1e-9)
    return {"greater": greater, "less": less, "two-sided": min(1.0, 2 * min(greater, less))}[alternative]


def wilcoxons():
    rng = np.random.default_rng(20230903)
    cases = []
    for i in range(50):
        n = int(rng.integers(4, 40)) if i < 40 else int(rng.integers(5, 13))
        x = rng.normal(0.2 * (i % 5), 1, n)
        y = rng.normal(0, 1, n)
        kind = "continuous"
        if i >= 40:
            x, y = np.round(2 * x), np.round(2 * y)
            kind = "ties and zeros"
            if np.all(x == y):
                x[0] += 1
        case = {"kind": kind, "x": x.tolist(), "y": y.tolist()}
        for alternative in ["less", "greater", "two-sided"]:
            if kind == "continuous":
                case[alternative] = wilcoxon(x, y, alternative=alternative, method="exact").pvalue
            else:
                case[alternative] = enumerate_signs(x - y, alternative)
                permuted = wilcoxon(
                    x, y, alternative=alternative, zero_method="wilcox",
                    method=scipy.stats.PermutationMethod(n_resamples=10**6),
                ).pvalue
                assert abs(permuted - case[alternative]) < 1e-9, (permuted, case[alternative])
        cases.append(case)
    return cases


def write(name, cases):
    lines = ",\n".join(json.dumps(case) for case in cases)
    (HERE / name).write_text(f'{{"generator": "generate.py, {VERSIONS}", "cases": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    write("frames.json", frames())
    write("scores.json", scores())
    write("wilcoxon.json", wilcoxons())
