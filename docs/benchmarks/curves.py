"""Noise and agreement of curves, over fits of one table that differ in their noise alone.

    python docs/benchmarks/curves.py target/release/fairdp DATA [FITS]

DATA has `adult/adult.data` and `dutch/dutch_census_2001.arff`; a third table is generated. Every table is fitted
at ε = 1 with the settings of `fairdp init`, without a test part. Printed for each table and method:

- *within*: points of curves, in %, whose effect is within 1.96 of their standard deviations of noise of the mean of
  the other fits. That mean has noise too, so the band is wider by √(1 + 1/(fits − 1)). Points that are too rare to
  be learnt in any fit are left out.
- *needed*: the factor by which stated noise has to be larger for 95 % within.
- *noise*: standard deviation over fits over the one that is stated, root mean square over points.
- *agreement*: correlation of a curve between two fits, weighted by records, mean over pairs of fits; columns are
  weighted by the variance of their curve. *All* counts flat columns, too; *drawn* those that are drawn.

Needs NumPy.
"""

import csv
import itertools
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

ADULT = (
    "age workclass fnlwgt education education_num marital_status occupation relationship race sex capital_gain "
    "capital_loss hours_per_week native_country income"
).split()
METHODS = ("auto", "conditioned")


def adult(folder):
    with open(folder / "adult/adult.data") as file:
        rows = [[field.strip() for field in row] for row in csv.reader(file)]
    keep = [place for place, name in enumerate(ADULT) if name not in ("fnlwgt", "education")]
    return [ADULT[k] for k in keep], [[row[k] for k in keep] for row in rows if len(row) == len(ADULT)], "income"


def dutch(folder):
    lines = (folder / "dutch/dutch_census_2001.arff").read_text().splitlines()
    names = [line.split()[1] for line in lines if line.lower().startswith("@attribute")]
    start = next(k for k, line in enumerate(lines) if line.lower().startswith("@data"))
    return names, [[field.strip() for field in line.split(",")] for line in lines[start + 1 :] if line.strip()], "occupation"


def generated(n=20_000):
    """Numbers with a curve, a slope and nothing; a category with many rare values."""
    rng = np.random.default_rng(7)
    size, age, other = rng.gamma(3, 10, n).round(1), rng.integers(18, 90, n), rng.normal(0, 1, n).round(3)
    town = rng.choice(40, n, p=(share := 1 / np.arange(1, 41)) / share.sum())
    score = np.sin(age / 12) + np.log1p(size) - 3 + rng.normal(0, 0.7, 40)[town]
    answer = np.where(rng.random(n) < 1 / (1 + np.exp(-score)), "yes", "no")
    names = ["size", "age", "other", "town", "answer"]
    return names, list(zip(size, age, other, [f"t{t}" for t in town], answer)), "answer"


def fits(program, folder, names, rows, label, method, n):
    """Curves of every fit: by column and class the points' places, effects, noise, and whether they count."""
    with open(folder / "t.csv", "w", newline="") as file:
        csv.writer(file).writerows([names, *rows])
    run = lambda *arguments: subprocess.run([program, *map(str, arguments)], cwd=folder, check=True, capture_output=True, text=True)
    options = [] if method == "auto" else ["--method", method]
    text = run("init", "t.csv", "--label", label, "--epsilon", 1, "--test-fraction", 0, *options).stdout
    (folder / "c.toml").write_text(text.replace('from = "data"', "public = true"))
    found = []
    for seed in range(1, n + 1):
        out = folder / f"run-{method}-{seed}"
        run("fit", "c.toml", "--out", out, "--seed", seed, "-q")
        curves = json.loads((out / "release/curves.json").read_text())["curves"]
        found.append({(curve["column"], curve.get("class")): curve for curve in curves})
    return found


def weights(points, values):
    """Records at each point of a curve: at the nearest number, or with the value."""
    places = [point["at"] for point in points]
    numbers = [k for k, place in enumerate(places) if "number" in place]
    out = np.zeros(len(points))
    at = np.array([places[k]["number"] for k in numbers])
    named = {place["value"]: k for k, place in enumerate(places) if "value" in place}
    for value in values:
        if str(value) in named:
            out[named[str(value)]] += 1
        elif len(numbers):
            try:
                out[numbers[int(np.argmin(np.abs(at - float(value))))]] += 1
            except ValueError:
                out[named.get("(other)", named.get("(missing)", 0))] += 1
        elif "(other)" in named:
            out[named["(other)"]] += 1
    return out


def correlation(a, b, w):
    a, b = a - np.average(a, weights=w), b - np.average(b, weights=w)
    variances = np.average(a * a, weights=w), np.average(b * b, weights=w)
    both = np.sqrt(variances[0] * variances[1])
    return (np.average(a * b, weights=w) / both if both > 0 else 0.0), both


def main():
    program, data, n = Path(sys.argv[1]).resolve(), Path(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 8
    print("| table | method | fits | within, % | needed | noise | agreement, all | agreement, drawn |\n|---|---|---|---|---|---|---|---|")
    for name, (names, rows, label) in {"Adult": adult(data), "Dutch": dutch(data), "generated": generated()}.items():
        for method in METHODS:
            with tempfile.TemporaryDirectory() as folder:
                found = fits(program, Path(folder), names, rows, label, method, n)
            within, ratios, pairs = [], [], {"all": [], "drawn": []}
            for key, curve in found[0].items():
                if key[0] not in names:
                    continue
                w = weights(curve["points"], [row[names.index(key[0])] for row in rows])
                if len(w) < 2 or not w.any():
                    continue
                effects = np.array([[point["effect"] for point in fit[key]["points"]] for fit in found])
                noise = np.array([[point["noise"] for point in fit[key]["points"]] for fit in found])
                rare = np.array([[point.get("is_too_rare", False) for point in fit[key]["points"]] for fit in found]).any(0)
                others = (effects.sum(0) - effects) / (n - 1)
                away = np.abs(effects - others) / (1.96 * noise * np.sqrt(1 + 1 / (n - 1)))
                within.append(away[:, ~rare].ravel())
                ratios.append(((effects.std(0, ddof=1) / noise.mean(0))[~rare]) ** 2)
                flat = [fit[key]["is_within_noise"] for fit in found]
                for a, b in itertools.combinations(range(n), 2):
                    r = correlation(effects[a], effects[b], w)
                    pairs["all"].append(r)
                    if not (flat[a] or flat[b]):
                        pairs["drawn"].append(r)
            mean = lambda found: f"{np.average(*np.array(found).T[:1], weights=np.array(found)[:, 1]):.3f}" if found else "–"
            within = np.concatenate(within)
            cells = [name, method, n, f"{100 * (within <= 1).mean():.1f}", f"{np.quantile(within, 0.95):.2f}", f"{np.sqrt(np.concatenate(ratios).mean()):.2f}"]
            print(f"| {' | '.join(map(str, [*cells, mean(pairs['all']), mean(pairs['drawn'])]))} |", flush=True)


if __name__ == "__main__":
    main()
