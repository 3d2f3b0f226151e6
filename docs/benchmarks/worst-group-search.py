"""What the search for the group that is served worst finds on Adult at ε = 1, beside the default and beside each of its
candidates alone.

    python worst-group-search.py FAIRDP ADULT_FOLDER SEEDS [MEAN_TRIALS]

Groups by sex; records with unknown values are left out. `min_accuracy = .83`. Of each fit: the balanced accuracy of the
group where it is least, and the accuracy, both of test records, from the exact figures in `private/`; means with
standard errors over seeds. One seed divides the records alike for every row. Needs Python alone.
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import mean, stdev

NAMES = (
    "age workclass fnlwgt education education-num marital-status occupation relationship race sex capital-gain "
    "capital-loss hours-per-week native-country income"
)
# Settings of a candidate, and the same in the place of the whole configuration's.
CANDIDATES = {
    "default": ("", []),
    "objective equal-classes": ('objective = "equal-classes"', [('kind = "auto"', 'kind = "auto"\nobjective = "equal-classes"')]),
    "conditioned-adjusted": (
        'method = { name = "conditioned-adjusted" }',
        [('name = "auto"', 'name = "conditioned-adjusted"'), ('decision = "compromise"', 'decision = "balanced"')],
    ),
    "conditioned": ('method = { name = "conditioned" }', [('name = "auto"', 'name = "conditioned"')]),
}
MODES = ("worst-group", "equalized-odds")


def configurations(proposed, mean_trials):
    """Names and texts."""
    for name, (_, changes) in CANDIDATES.items():
        text = proposed
        for old, new in changes:
            text = text.replace(old, new, 1)
        yield name, text
    for mode in MODES:
        yield f"default, fairness {mode}", proposed.replace('fairness = "none"', f'fairness = "{mode}"', 1)
    head = f'\n[tuning]\nmean_trials = {mean_trials}\ngoal = "worst-group"\nmin_accuracy = 0.83\n'
    methods = [f"\n[[tuning.candidate]]\n{settings}\n" for settings, _ in CANDIDATES.values()]
    yield "search: methods and objectives", proposed + head + "".join(methods)
    modes = [f'\n[[tuning.candidate]]\nfairness = "{mode}"\n' for mode in MODES]
    yield "search: fairness modes too", proposed + head + "".join(methods + modes)


def figures(place, run):
    told = json.loads((place / run / "private" / "diagnostics.json").read_text())
    groups = [group["balanced_accuracy"] for group in told["by_group"].values()]
    worst = min(accuracy for accuracy in groups if accuracy is not None)
    return worst, told["accuracy"]


def main(program, folder, seeds, mean_trials="3"):
    program = Path(program).resolve()
    found = {}
    with tempfile.TemporaryDirectory() as place:
        place = Path(place)
        lines = [line.strip() for name in ("adult.data", "adult.test") for line in open(Path(folder) / name)]
        rows = [line.rstrip(".").replace(", ", ",") for line in lines if line.count(",") == 14 and "?" not in line]
        (place / "adult.csv").write_text("\n".join([NAMES.replace(" ", ","), *rows]) + "\n")
        init = [program, "init", "adult.csv", "--label", "income", "--positive", ">50K", "--group", "sex", "--delta", "1e-5"]
        proposed = subprocess.run(init, cwd=place, check=True, capture_output=True, text=True).stdout
        proposed = re.sub(r'from = "data".*', "public = true", proposed)
        for seed in range(1, int(seeds) + 1):
            for number, (name, text) in enumerate(configurations(proposed, mean_trials)):
                run = f"{seed}-{number}"
                (place / "this.toml").write_text(text)
                fit = [program, "fit", "this.toml", "--out", run, "--seed", str(seed), "--quiet"]
                subprocess.run(fit, cwd=place, check=True, stdout=subprocess.DEVNULL)
                statement = json.loads((place / run / "release" / "statement.json").read_text())
                found.setdefault(name, []).append(figures(place, run))
                print(seed, name, *found[name][-1], statement["method"][:60], file=sys.stderr, flush=True)
    print("| fit | least balanced accuracy of a group | accuracy |\n|---|---|---|")
    for name, runs in found.items():
        columns = []
        for values in zip(*runs):
            error = f" ± {stdev(values) / len(values) ** 0.5:.4f}" if len(values) > 1 else ""
            columns.append(f"{mean(values):.4f}{error}")
        print(f"| {name} | {' | '.join(columns)} |")


main(*sys.argv[1:])
