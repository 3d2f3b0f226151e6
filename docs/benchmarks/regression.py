"""R² of numbers by `fairdp fit` beside ridge regression without privacy, and beside private peers.

    pip install interpret-core==0.7.8 scikit-learn==1.9.*     # DP-EBM
    pip install diffprivlib==0.6.6 scikit-learn==1.5.2        # elsewhere: does not import under 1.9
    python docs/benchmarks/regression.py fairdp ADULT_FOLDER

Peers have the same declared range of the label, and ranges of the inputs from the training rows; a peer that is
not installed is left out. Needs NumPy and scikit-learn. Adult is trained on adult.data and tested on adult.test; generated tables
follow the laws below, with new records for the test. Settings are those of `fairdp init`.
"""

import csv
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

REPEATS = 8
ADULT = (
    "age workclass fnlwgt education education_num marital_status occupation relationship race sex capital_gain "
    "capital_loss hours_per_week native_country income"
).split()


def adult(folder):
    """Age from the other columns but the weight of the survey."""

    def rows(name):
        with open(folder / name) as file:
            found = [[field.strip().rstrip(".") for field in row] for row in csv.reader(file)]
        keep = [place for place, name in enumerate(ADULT) if name not in ("fnlwgt", "education")]
        return [[row[place] for place in keep] for row in found if len(row) == len(ADULT)]

    names = [name for name in ADULT if name not in ("fnlwgt", "education")]
    return names, rows("adult.data"), rows("adult.test"), "age", (17, 90)


def rents(n, rng):
    """A law with a curve, two categories and noise whose spread is a fifth of the rent's."""
    size, year = rng.gamma(6, 13, n).clip(15, 250), rng.integers(1900, 2024, n)
    kind, part = rng.choice(["flat", "house", "room"], n, p=[0.7, 0.2, 0.1]), rng.choice(list("abcdef"), n)
    rent = 150 + 9 * size - 0.01 * size**2 + np.where(kind == "house", 180, np.where(kind == "room", -90, 0))
    rent += np.array([60.0 * (ord(one) - ord("c")) for one in part]) + np.maximum(0, year - 1990) * 6
    rent = (rent * np.exp(rng.normal(0, 0.2, n))).clip(0, 4000)
    rows = zip(size.round(1), year, kind, part, rng.integers(0, 2, n), rent.round())
    return ["size", "year", "kind", "part", "pets", "rent"], [list(map(str, row)) for row in rows]


def shells(n, rng):
    """Eight columns of which seven measure one size, and a skewed count of rings."""
    size = rng.beta(5, 3, n)
    length = 0.1 + 0.6 * size
    weight = 4 * length**3 * np.exp(rng.normal(0, 0.15, n))
    parts = [weight * share * np.exp(rng.normal(0, by, n)) for share, by in ((0.45, 0.12), (0.22, 0.15), (0.28, 0.15))]
    others = [length * 0.8 + rng.normal(0, 0.02, n), length * 0.28 + rng.normal(0, 0.015, n)]
    sex = rng.choice(["f", "i", "m"], n)
    rings = 4 + 14 * size**2 + 48 * (parts[2] / weight - 0.28) - 15 * (parts[0] / weight - 0.45) - (sex == "i")
    rings = (rings + rng.gamma(2, 1.4, n) - 2.8).clip(1, 29).round()
    names = ["sex", "length", "width", "height", "whole", "shucked", "viscera", "shell", "rings"]
    rows = zip(sex, *(column.round(4) for column in (length, *others, weight, *parts)), rings)
    return names, [list(map(str, row)) for row in rows]


def write(path, names, rows):
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows([names, *rows])


def r2(label, found):
    return 1 - np.mean((label - found) ** 2) / np.var(label)


def ridge(names, train, test, label):
    place = names.index(label)
    inputs = [column for column in range(len(names)) if column != place]
    numeric = [k for k, column in enumerate(inputs) if all(_is_number(row[column]) for row in train)]
    texts = [k for k in range(len(inputs)) if k not in numeric]
    scaled = ColumnTransformer([("n", StandardScaler(), numeric), ("t", OneHotEncoder(handle_unknown="ignore"), texts)])
    model = make_pipeline(scaled, RidgeCV(np.logspace(-3, 3, 13)))

    def table(rows):
        array = np.array([[row[column] for column in inputs] for row in rows], dtype=object)
        array[:, numeric] = array[:, numeric].astype(float)
        return array

    y = [np.array([float(row[place]) for row in rows]) for rows in (train, test)]
    return r2(y[1], model.fit(table(train), y[0]).predict(table(test)))


def _is_number(text):
    try:
        float(text)
    except ValueError:
        return False
    return True


def dp_ebm(names, train, test, label, bounds, epsilon, seed):
    from interpret.privacy import DPExplainableBoostingRegressor

    place = names.index(label)
    inputs = [column for column in range(len(names)) if column != place]
    numeric = {column for column in inputs if all(_is_number(row[column]) for row in train)}

    def table(rows):
        return np.array([[float(row[c]) if c in numeric else row[c] for c in inputs] for row in rows], dtype=object)

    y = [np.array([float(row[place]) for row in rows]) for rows in (train, test)]
    ranges = {k: (min(column), max(column)) for k, c in enumerate(inputs) if c in numeric for column in [[float(row[c]) for row in train]]}
    model = DPExplainableBoostingRegressor(
        epsilon=epsilon, delta=1e-6, random_state=seed, privacy_bounds=ranges, privacy_target_min=bounds[0],
        privacy_target_max=bounds[1], feature_types=["continuous" if c in numeric else "nominal" for c in inputs],
    )
    return r2(y[1], model.fit(table(train), y[0].clip(*bounds)).predict(table(test)).clip(*bounds))


def diffprivlib(names, train, test, label, bounds, epsilon, seed):
    from diffprivlib.models import LinearRegression

    place = names.index(label)
    inputs = [column for column in range(len(names)) if column != place]
    numeric = [k for k, column in enumerate(inputs) if all(_is_number(row[column]) for row in train)]
    texts = [k for k in range(len(inputs)) if k not in numeric]
    coded = ColumnTransformer(
        [("n", "passthrough", numeric), ("t", OneHotEncoder(handle_unknown="ignore", sparse_output=False), texts)]
    )

    def table(rows):
        array = np.array([[row[column] for column in inputs] for row in rows], dtype=object)
        array[:, numeric] = array[:, numeric].astype(float)
        return array

    x = coded.fit_transform(table(train)).astype(float)
    low, high = x.min(axis=0), x.max(axis=0)
    y = [np.array([float(row[place]) for row in rows]) for rows in (train, test)]
    # Inputs and label from -1 to 1, by their ranges: its noise grows with the squares of the bounds.
    scaled = lambda values, low, high: 2 * (values.clip(low, high) - low) / np.where(high > low, high - low, 1) - 1
    model = LinearRegression(epsilon=epsilon, bounds_X=(-1, 1), bounds_y=(-1, 1), random_state=seed)
    model.fit(scaled(x, low, high), scaled(y[0], *np.array(bounds)))
    found = model.predict(scaled(coded.transform(table(test)).astype(float), low, high)).clip(-1, 1)
    return r2(y[1], bounds[0] + (found + 1) / 2 * (bounds[1] - bounds[0]))


def peer(of, *arguments):
    """Mean and deviation over the seeds, in words."""
    try:
        found = [of(*arguments, seed) for seed in range(1, REPEATS + 1)]
    except ImportError:
        return "–"
    return f"{np.mean(found):.3f} ({np.std(found, ddof=1):.3f})"


def private(program, folder, label, bounds, epsilon, seed, truth):
    run = lambda *arguments: subprocess.run([program, *map(str, arguments)], cwd=folder, check=True, capture_output=True, text=True)
    text = run("init", "train.csv", "--label", label, "--epsilon", epsilon, "--test-fraction", 0).stdout
    # The label's range is declared. Ranges of the inputs are read from the records, as `init` does.
    lines = text.replace("from = \"data\"", "public = true").splitlines()
    start = lines.index("[label]")
    for place in range(start, start + 8):
        for key, bound in zip(("low", "high"), bounds):
            if lines[place].startswith(f"{key} = "):
                lines[place] = f"{key} = {bound}"
    (folder / "c.toml").write_text("\n".join(lines) + "\n")
    out = folder / f"run-{epsilon}-{seed}"
    run("fit", "c.toml", "--out", out, "--seed", seed, "-q", *(["--reference"] if seed == 1 else []))
    run("predict", out, "test.csv", "--out", "p.csv")
    with open(folder / "p.csv") as file:
        found = np.array([float(row["prediction"]) for row in csv.DictReader(file)])
    return r2(truth, found)


def main():
    program, adult_folder = sys.argv[1], Path(sys.argv[2])
    print("| table | rows to train on | ε | fairdp, mean of 8 (deviation) | ridge | ratio | DP-EBM | diffprivlib |\n|---|---|---|---|---|---|---|---|")
    tables = []
    names, train, test, label, bounds = adult(adult_folder)
    tables.append(("Adult, age", names, train, test, label, bounds, [1.0]))
    for name, law, n, label, bounds, epsilons in (
        ("rents", rents, 20_000, "rent", (0, 4000), [1.0]),
        ("shells", shells, 4_177, "rings", (1, 29), [0.15, 0.54, 1.0]),
    ):
        rng = np.random.default_rng(2026)
        names, train = law(n, rng)
        _, test = law(20_000, rng)
        tables.append((name, names, train, test, label, bounds, epsilons))
    for name, names, train, test, label, bounds, epsilons in tables:
        with tempfile.TemporaryDirectory() as folder:
            folder = Path(folder)
            write(folder / "train.csv", names, train)
            write(folder / "test.csv", names, test)
            truth = np.array([float(row[names.index(label)]) for row in test])
            plain = ridge(names, train, test, label)
            for epsilon in epsilons:
                found = [private(program, folder, label, bounds, epsilon, seed, truth) for seed in range(1, REPEATS + 1)]
                peers = [peer(of, names, train, test, label, bounds, epsilon) for of in (dp_ebm, diffprivlib)]
                own = f"{np.mean(found):.3f} ({np.std(found, ddof=1):.3f})"
                cells = [name, f"{len(train):,}", epsilon, own, f"{plain:.3f}", f"{np.mean(found) / plain:.3f}", *peers]
                print(f"| {' | '.join(map(str, cells))} |", flush=True)


if __name__ == "__main__":
    main()
