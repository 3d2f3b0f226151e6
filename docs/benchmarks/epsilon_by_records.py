"""What a smaller ε costs on tables of several sizes: the table of docs/choose-epsilon.md.

    pip install scikit-learn pandas
    python epsilon_by_records.py target/release/fairdp

Each table is of `fairdp example`, with another seed for each run. A model is fitted with the proposals
of `init`, its ranges taken from the table, and judged on 20,000 rows of yet another seed: the area under
the ROC curve, of all and of the smallest group, group c (9 % of the rows). Mean over the runs, with its
standard error.
"""

import argparse
import pathlib
import subprocess
import tempfile

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score

SIZES = [1_000, 3_000, 10_000, 30_000, 100_000]
EPSILONS = [0.1, 0.3, 1, 3, 10, 1_000]


def table(options, rows, seed):
    told = subprocess.run([options.fairdp, "example", "--rows", str(rows), "--seed", str(seed)], check=True, capture_output=True)
    return told.stdout


def areas(options, folder, epsilon):
    at = lambda name: str(pathlib.Path(folder) / name)
    init = [options.fairdp, "init", at("train.csv"), "--label", "outcome", "--group", "group", "--accept-uncovered"]
    config = subprocess.run([*init, "--epsilon", str(epsilon)], check=True, capture_output=True).stdout
    pathlib.Path(at("fairdp.toml")).write_bytes(config)
    run, answers = at(f"run-{epsilon}"), at("answers.csv")
    fit = subprocess.run([options.fairdp, "fit", at("fairdp.toml"), "--out", run, "-q"], capture_output=True)
    if fit.returncode == 3 and b"too few" in fit.stderr:
        return None
    fit.check_returncode()
    subprocess.run([options.fairdp, "predict", run, at("test.csv"), "--out", answers], check=True, capture_output=True)
    test, scores = pd.read_csv(at("test.csv")), pd.read_csv(answers)["p_yes"]
    smallest = (test["group"] == "c").values
    truth = (test["outcome"] == "yes").values
    return roc_auc_score(truth, scores), roc_auc_score(truth[smallest], scores[smallest])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("fairdp")
    parser.add_argument("--runs", type=int, default=10)
    options = parser.parse_args()
    for rows in SIZES:
        found = {epsilon: [] for epsilon in EPSILONS}
        for run in range(options.runs):
            with tempfile.TemporaryDirectory() as folder:
                pathlib.Path(folder, "train.csv").write_bytes(table(options, rows, 100 + run))
                pathlib.Path(folder, "test.csv").write_bytes(table(options, 20_000, 1))
                for epsilon in EPSILONS:
                    found[epsilon].append(areas(options, folder, epsilon))
        for index, who in enumerate(["all", "smallest"]):
            cells = []
            for epsilon in EPSILONS:
                if None in found[epsilon]:
                    cells.append("refused")
                    continue
                values = np.array(found[epsilon])[:, index]
                cells.append(f"{values.mean():.3f} ± {values.std(ddof=1) / np.sqrt(len(values)):.3f}")
            print(f"| {rows:,} | {who} | " + " | ".join(cells) + " |", flush=True)


main()
