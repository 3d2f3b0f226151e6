"""What a training gains that starts from a release: three disjoint thirds of a table, with and without `--from`.

    python starting-from.py FAIRDP DATA_DIR TABLE SEEDS EPSILON ...

FAIRDP is the program. TABLE is adult, dutch or generated. The first third is fitted at ε = 1, the second at each
EPSILON anew and from the first, the third at each EPSILON anew and from the second's. Of each: AUC and accuracy on its
own test records, from the exact figures in `private/`, means with standard errors over seeds.
"""

import csv
import io
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import mean, stdev

ADULT = (
    "age workclass fnlwgt education education-num marital-status occupation relationship race sex capital-gain "
    "capital-loss hours-per-week native-country income"
).split()
UNUSED = {"fnlwgt", "education"}


def adult(folder):
    kept = [place for place, name in enumerate(ADULT) if name not in UNUSED]
    rows = []
    for name, skip in [("adult.data", 0), ("adult.test", 1)]:
        lines = (folder / "adult" / name).read_text().splitlines()[skip:]
        fields = ([field.strip() for field in line.rstrip(".").split(",")] for line in lines if line.strip())
        rows += [[row[place] for place in kept] for row in fields if "?" not in row]
    return [ADULT[place] for place in kept], rows, "income", "sex"


def dutch(folder):
    lines = (folder / "dutch" / "dutch_census_2001.arff").read_text().splitlines()
    names = [line.split()[1] for line in lines if line.lower().startswith("@attribute")]
    start = next(place for place, line in enumerate(lines) if line.lower().startswith("@data"))
    rows = [["v" + field.strip().strip("'") for field in line.split(",")] for line in lines[start + 1 :] if line.strip()]
    return names, rows, "occupation", "sex"


def generated(_):
    text = subprocess.run([PROGRAM, "example", "--rows", "30000", "--seed", "9"], capture_output=True, text=True, check=True)
    names, *rows = csv.reader(io.StringIO(text.stdout))
    return names, rows, names[-1], "group"


def run(here, *arguments):
    return subprocess.run([PROGRAM, *arguments], cwd=here, stdout=subprocess.PIPE, text=True, check=True).stdout


def write(path, names, rows):
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([names, *rows])


def figures(here, third, epsilon, seed, start):
    out = f"{third}-{epsilon}-{start or 'anew'}"
    config = (here / "fairdp.toml").read_text().replace("all.csv", f"{third}.csv")
    (here / "this.toml").write_text(config)
    options = ["--from", start] if start else []
    run(here, "fit", "this.toml", "--out", out, "--epsilon", str(epsilon), "--seed", str(seed), "-q", *options)
    told = json.loads((here / out / "private" / "diagnostics.json").read_text())
    return out, told["auc"], told["accuracy"]


def of_seed(table, seed, epsilons):
    names, rows, label, group = table
    rows = random.Random(seed).sample(rows, len(rows))
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        write(here / "all.csv", names, rows)
        for third in range(3):
            write(here / f"{third}.csv", names, rows[third::3])
        text = run(here, "init", "all.csv", "--label", label, "--group", group, "--delta", "1e-5", "-q")
        (here / "fairdp.toml").write_text(text.replace('from = "data"', "public = true"))
        first, *of_first = figures(here, 0, 1.0, seed, None)
        found["first", 1.0, "anew"] = of_first
        for epsilon in epsilons:
            second = first
            for third, name in [(1, "second"), (2, "third")]:
                _, *anew = figures(here, third, epsilon, seed, None)
                second, *later = figures(here, third, epsilon, seed, second)
                found[name, epsilon, "anew"], found[name, epsilon, "from"] = anew, later
    return found


def main(data, name, seeds, *epsilons):
    table = {"adult": adult, "dutch": dutch, "generated": generated}[name](Path(data))
    runs = [of_seed(table, seed, [float(epsilon) for epsilon in epsilons]) for seed in range(1, int(seeds) + 1)]
    for key in runs[0]:
        for place, figure in enumerate(["AUC", "accuracy"]):
            values = [run[key][place] for run in runs]
            error = stdev(values) / len(values) ** 0.5 if len(values) > 1 else float("nan")
            print(name, *key, figure, f"{mean(values):.4f} ± {error:.4f}", flush=True)


PROGRAM = str(Path(sys.argv[1]).resolve())
main(*sys.argv[2:])
