"""What every mode of fairness does on Adult, by ε: what the price list of one fit says, and what a fit with the mode does.

    python fairness-modes.py FAIRDP ADULT_FOLDER [SEED]

The configuration is that of `fairdp init` with groups by sex, its proposals taken as public. Prints a table in Markdown.
Needs Python alone.
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

NAMES = (
    "age workclass fnlwgt education education-num marital-status occupation relationship race sex capital-gain "
    "capital-loss hours-per-week native-country income"
)
MODES = {
    "worst-group": "least_balanced_accuracy",
    "equalized-odds": "equalized_odds_difference",
    "equal-opportunity": "equal_opportunity_difference",
    "demographic-parity": "demographic_parity_difference",
}


def main():
    program, folder = Path(sys.argv[1]).resolve(), sys.argv[2]
    seed = sys.argv[3] if len(sys.argv) > 3 else "1"
    with tempfile.TemporaryDirectory() as place:
        place = Path(place)
        lines = [line.strip() for name in ("adult.data", "adult.test") for line in open(Path(folder) / name)]
        rows = [line.rstrip(".").replace(", ", ",") for line in lines if line.count(",") == 14]
        (place / "adult.csv").write_text("\n".join([NAMES.replace(" ", ","), *rows]) + "\n")
        proposed = subprocess.run(
            [program, "init", "adult.csv", "--label", "income", "--positive", ">50K", "--group", "sex"],
            cwd=place, check=True, capture_output=True, text=True,
        ).stdout
        proposed = re.sub(r'from = "data".*', "public = true", proposed)
        print("| ε | mode | moved | gap, or least balanced accuracy | accuracy |")
        print("|---|---|---|---|---|")
        for epsilon in (0.5, 1, 3):
            for mode, figure in MODES.items():
                text = re.sub(r'(?m)^fairness = "none".*', f'fairness = "{mode}"', proposed)
                text = re.sub(r"(?m)^epsilon = .*", f"epsilon = {epsilon}", text)
                name = f"{mode}-{epsilon}"
                (place / f"{name}.toml").write_text(text)
                subprocess.run(
                    [program, "fit", f"{name}.toml", "--out", name, "--seed", seed, "--quiet"],
                    cwd=place, check=True, capture_output=True,
                )
                report = json.load(open(place / name / "release" / "fairness.json"))
                prices = {entry["mode"]: entry for entry in report["price_list"]}
                kept = prices[mode]["thresholds"].get("kept")
                moved = "yes" if kept is None else "no: " + (kept if isinstance(kept, str) else next(iter(kept)))

                def said(of, what):
                    value = prices[of]["figures"][what]
                    # The group of other values is empty.
                    value = value.get("without_unknown", value)
                    return f"{value['value']:.3f} [{value['low']:.3f}, {value['high']:.3f}]"

                print(
                    f"| {epsilon} | `{mode}` | {moved} | {said('none', figure)} → {said(mode, figure)} "
                    f"| {said('none', 'accuracy')} → {said(mode, 'accuracy')} |",
                    flush=True,
                )


main()
