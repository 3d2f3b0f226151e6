"""Rows of Esipova et al. 2023, Table 4 (Adult, balanced), trained under Opacus by `fairdp.opacus`.

Run by hand where torch, Opacus and Adult are (0.8 s an epoch on a free core, 300 epochs in all):

    DP_DATA_DIR=datasets/cache pytest -s crates/fairdp-python/tests/test_esipova.py

Settings and the rule of agreement are those of `cargo xtask reproduce adult`.
"""

from __future__ import annotations

import csv
import math
import os
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

pandas = pytest.importorskip("pandas")
torch = pytest.importorskip("torch")
opacus = pytest.importorskip("opacus")

from fairdp import metrics
from fairdp.opacus import make_private, register
from scipy import stats

FOLDER = Path(os.environ.get("DP_DATA_DIR", "")) / "adult"
PUBLISHED = Path(__file__).parents[3] / "xtask/src/studies/published/esipova2023-table4-adult.tsv"
GROUPS = ["male", "female"]
SEEDS = 5
THEIR_SEEDS = 5
EPOCHS = 20

COLUMNS = (
    "age workclass fnlwgt education education-num marital-status occupation relationship race sex "
    "capital-gain capital-loss hours-per-week native-country income"
).split()
NUMBERS = ["age", "education-num", "capital-gain", "capital-loss", "hours-per-week"]
CATEGORIES = ["workclass", "education", "marital-status", "occupation", "relationship", "native-country"]

# Learning rate, and settings beside a clipping norm of 0.5.
METHODS = {
    "dpsgd": (0.01, {}),
    "dpsgd-f": (0.01, {}),
    "dpsgd-global-adapt": (0.2, {"upper_bound": 50.0, "tolerance": 1.0, "target": 0.1}),
}

pytestmark = pytest.mark.skipif(not (FOLDER / "adult.data").exists(), reason="Adult is not under DP_DATA_DIR")


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """Where other programs run too, a second thread makes steps this short several times slower."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def table():
    """The 45,222 complete records."""
    parts = [
        pandas.read_csv(FOLDER / name, names=COLUMNS, skipinitialspace=True, comment="|", na_values="?")
        for name in ("adult.data", "adult.test")
    ]
    table = pandas.concat(parts).dropna().reset_index(drop=True)
    assert len(table) == 45_222
    return table


def split(table, seed):
    """14,000 men and as many women, four fifths to train on: inputs, labels, groups of both parts.
    """
    rng = np.random.default_rng(seed)
    groups = (table["sex"] == "Female").to_numpy(np.int64)
    chosen = np.concatenate([rng.permutation(np.flatnonzero(groups == group))[:14_000] for group in (0, 1)])
    rng.shuffle(chosen)
    train, test = np.split(chosen, [len(chosen) * 4 // 5])
    numbers = table[NUMBERS].to_numpy(np.float64)
    scaled = (numbers - numbers[train].mean(axis=0)) / numbers[train].std(axis=0)
    inputs = np.column_stack(
        [scaled, table["race"] != "White", groups, pandas.get_dummies(table[CATEGORIES], dtype=float)]
    ).astype(np.float32)
    assert inputs.shape[1] == 98
    labels = table["income"].str.startswith(">50K").to_numpy(np.int64)
    return [tuple(torch.from_numpy(values[part]) for values in (inputs, labels, groups)) for part in (train, test)]


def trained(method, train, seed):
    """The network after training under Opacus, in ghost mode, and its ε at δ = 1e-6."""
    torch.manual_seed(seed)
    module = torch.nn.Sequential(
        torch.nn.Linear(98, 256), torch.nn.Tanh(), torch.nn.Linear(256, 256), torch.nn.Tanh(), torch.nn.Linear(256, 2)
    )
    rate, settings = METHODS[method]
    engine = opacus.PrivacyEngine(accountant="fairdp")
    private, optimizer, loss, loader = make_private(
        engine,
        module=module,
        optimizer=torch.optim.SGD(module.parameters(), lr=rate),
        data_loader=torch.utils.data.DataLoader(torch.utils.data.TensorDataset(*train), batch_size=256),
        method=method,
        noise_multiplier=1.0,
        groups=2,
        settings={"clip_norm": 0.5, **settings},
        grad_sample_mode="ghost",
        seed=seed,
    )
    for _ in range(EPOCHS):
        for x, y, group in loader:
            optimizer.zero_grad()
            optimizer.set_groups(group)
            loss(private(x), y).backward()
            optimizer.step()
    return module, engine.get_epsilon(1e-6)


def evaluated(module, test):
    """Accuracy in % and mean loss by group."""
    x, y, groups = test
    with torch.no_grad():
        outputs = module(x)
    losses = torch.nn.functional.cross_entropy(outputs, y, reduction="none")
    frame = metrics.frame(y.numpy(), outputs.argmax(1).numpy(), sensitive_features=groups.numpy(), metrics=["accuracy"])
    accuracies = np.asarray(frame.by_group["accuracy"])
    return {
        (metric, name): values
        for group, name in enumerate(GROUPS)
        for metric, values in (
            ("accuracy_pct", 100 * float(accuracies[group])),
            ("loss", float(losses[groups == group].mean())),
        )
    }


def row_of(method):
    """The paper's figures of a method, with their errors, and the number of all figures of the row.
    """
    lines = [line for line in PUBLISHED.read_text().splitlines() if not line.startswith("#")]
    row = [line for line in csv.DictReader(lines, delimiter="\t") if line["method"] == method]
    figures = {(line["metric"], line["group"]): (line["value"], line["standard_error"]) for line in row}
    return {key: figures[key] for metric in ("accuracy_pct", "loss") for key in ((metric, name) for name in GROUPS)}, len(row)


def disagreement(ours, printed, printed_error, n_figures):
    """How far the difference lies outside the interval and the tolerance of `xtask reproduce`; None
    if inside.
    """
    half_unit = 0.5 * 10.0 ** -len(printed.partition(".")[2])
    theirs, theirs_error = float(printed), float(printed_error) or 0.5 * 10.0 ** -len(printed_error.partition(".")[2])
    error = np.std(ours, ddof=1) / math.sqrt(len(ours))
    difference, total = float(np.mean(ours)) - theirs, error**2 + theirs_error**2
    degrees = total**2 / (error**4 / (len(ours) - 1) + theirs_error**4 / (THEIR_SEEDS - 1))
    interval = stats.t.ppf(1 - 0.05 / n_figures / 2, degrees) * math.sqrt(total) + half_unit
    tolerance = min(0.5 if theirs > 1 else 0.02, 0.1 * theirs)
    return None if abs(difference) <= max(interval, tolerance) else difference


@pytest.mark.parametrize("method", METHODS)
def test_a_row_of_table_4(method, table):
    register()
    start, runs = time.perf_counter(), []
    for seed in range(1, SEEDS + 1):
        train, test = split(table, seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module, epsilon = trained(method, train, seed)
        runs.append(evaluated(module, test))
    seconds = (time.perf_counter() - start) / SEEDS
    figures, n_figures = row_of(method)
    wrong = {}
    print(f"\n{method}: ε at most {epsilon:.4f}, {seconds:.0f} s a run")
    for key, (printed, printed_error) in figures.items():
        ours = [run[key] for run in runs]
        found = disagreement(ours, printed, printed_error, n_figures)
        error = np.std(ours, ddof=1) / math.sqrt(len(ours))
        print(f"  {' '.join(key)}: {np.mean(ours):.3f} ± {error:.3f}, paper {printed} ± {printed_error}")
        if found is not None:
            wrong[key] = found
    assert not wrong
