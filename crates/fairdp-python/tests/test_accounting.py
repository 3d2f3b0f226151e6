"""Answers are the Rust library's; inputs on which other accountants fail or hang have one."""

from __future__ import annotations

import copy
import csv
import json
import math
import pickle
import signal
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairdp import AccountingError, accounting
from fairdp.accounting import (
    Accountant,
    Calibration,
    DpEvent,
    GroupAccounting,
    Ledger,
    Statement,
    TrialCount,
)

GOLDEN = Path(__file__).parents[2] / "dp-accounting" / "tests" / "golden"


def golden(name):
    """Rows of one of the golden tables of dp-accounting."""
    lines = [line for line in (GOLDEN / name).read_text().splitlines() if line and not line.startswith("#")]
    return list(csv.DictReader(lines, delimiter="\t"))


def dpsgd(row):
    return {
        "sampling_rate": float(row["sampling_rate"]),
        "noise_multiplier": float(row["noise_multiplier"]),
        "steps": int(row["steps"]),
        "delta": float(row["delta"]),
    }


@pytest.mark.parametrize("row", golden("dpsgd.tsv")[::6], ids=lambda row: row["id"])
def test_dpsgd_agrees_with_opacus_by_rdp(row):
    # Opacus returns numbers below the truth's own lower bound where its orders end; ours search on.
    ours = accounting.epsilon(**dpsgd(row), accountant="rdp", orders="opacus", conversion="improved")
    if row["rdp_opacus"]:
        assert ours.upper == pytest.approx(float(row["rdp_opacus"]), rel=1e-6)
    assert ours.lower is None and ours.order > 1


@pytest.mark.parametrize("row", golden("analytic_gaussian.tsv")[::5], ids=lambda row: row["epsilon"])
def test_the_analytic_gaussian_agrees_with_dp_accounting(row):
    sigma = accounting.analytic_gaussian_noise_multiplier(float(row["epsilon"]), float(row["delta"]))
    assert sigma == pytest.approx(float(row["sigma"]), rel=1e-6)


@pytest.mark.parametrize("row", golden("laplace.tsv")[::7], ids=lambda row: row["scale"])
def test_laplace_agrees_with_dp_accounting(row):
    ledger = Ledger()
    event = DpEvent.laplace(float(row["scale"])).poisson_sampled(float(row["sampling_rate"]))
    ledger.record(event, int(row["steps"]))
    bound = ledger.epsilon(float(row["delta"]))
    assert bound.certainty == "bound"
    # The peer's estimate adds up to its interval at each composition.
    peer = float(row["pld_1e5"] or row["pld_1e4"])
    assert bound.lower <= peer * (1 + 1e-6) and bound.upper > peer * 0.998 - 1e-6


# Kinds of inputs on which other accountants fail, hang or answer below the truth.
HARD = [
    {"noise_multiplier": 1.0, "sampling_rate": 1e-8, "steps": 1, "delta": 1e-5},
    {"noise_multiplier": 1.0, "sampling_rate": 1e-8, "steps": 1_000_000, "delta": 1e-18},
    {"noise_multiplier": 0.05, "sampling_rate": 0.01, "steps": 100, "delta": 1e-5},
    {"noise_multiplier": 0.3, "sampling_rate": 1.0, "steps": 10, "delta": 1e-5},
    {"noise_multiplier": 1.0, "sampling_rate": 1.0, "steps": 1, "delta": 1e-12},
    {"noise_multiplier": 100.0, "sampling_rate": 0.5, "steps": 1_000_000, "delta": 1e-10},
    {"noise_multiplier": 0.7, "sampling_rate": 0.02, "steps": 1_000_000, "delta": 1e-6},
    {"noise_multiplier": 50.0, "sampling_rate": 0.001, "steps": 1_000, "delta": 1e-18},
    {"noise_multiplier": 500.0, "sampling_rate": 0.01, "steps": 10_000, "delta": 1e-5},
    {"noise_multiplier": 1.0, "sampling_rate": 0.1, "steps": 10_000, "delta": 1e-18},
    # prv_accountant's issues 17 and 42.
    {"noise_multiplier": 4.0, "sampling_rate": 0.00033, "steps": 10_000, "delta": 1.1e-18},
    {"noise_multiplier": 4.0, "sampling_rate": 0.00038, "steps": 10_000, "delta": 1.13e-18},
    {"noise_multiplier": 1.0, "sampling_rate": 0.2, "steps": 500, "delta": 1e-5},
]


@pytest.mark.parametrize("setting", HARD, ids=str)
def test_hard_settings_have_a_bracket_in_seconds(setting):
    start = time.monotonic()
    bound = accounting.epsilon(**setting)
    assert time.monotonic() - start < 20
    assert 0 <= bound.lower <= bound.upper < math.inf and bound.mark == "certified"
    assert bound.upper <= accounting.epsilon(**setting, accountant="rdp").upper * (1 + 1e-9)


@pytest.mark.parametrize("target", [0.01, 0.1, 1, 10, 100, 1000])
def test_every_target_has_a_noise_multiplier_that_keeps_it(target):
    question = {"sampling_rate": 0.01, "steps": 1000, "accountant": "rdp"}
    sigma = accounting.noise_multiplier(target_epsilon=target, delta=1e-6, **question)
    assert accounting.epsilon(delta=1e-6, noise_multiplier=sigma, **question).upper <= target
    assert accounting.epsilon(delta=1e-6, noise_multiplier=sigma * 0.999, **question).upper > target


@given(
    sigma=st.floats(0.3, 100),
    rate=st.floats(1e-8, 1),
    steps=st.integers(1, 1_000_000),
    log_delta=st.floats(-18, -1),
)
@settings(max_examples=40, deadline=None)
def test_answers_are_brackets_and_grow_with_steps(sigma, rate, steps, log_delta):
    question = {"noise_multiplier": sigma, "sampling_rate": rate, "delta": 10**log_delta}
    bound = accounting.epsilon(**question, steps=steps)
    assert 0 <= bound.lower <= bound.upper
    assert accounting.epsilon(**question, steps=2 * steps).upper >= bound.lower


@given(
    sigma=st.one_of(st.floats(), st.just(-1.0)),
    rate=st.floats(),
    steps=st.integers(-5, 2**70),
    delta=st.floats(),
)
@settings(max_examples=200, deadline=None)
def test_nonsense_is_an_error_that_names_it(sigma, rate, steps, delta):
    # Whatever comes in, what comes out is an answer or a ValueError; extreme sizes are for the Rust
    # suite.
    if not (0.3 <= sigma <= 100 and 1e-4 <= rate <= 1 and 0 <= steps <= 10_000 and 1e-12 <= delta <= 1):
        if not 0 <= steps < 2**64 or math.isnan(sigma) or math.isnan(rate) or math.isnan(delta) or rate > 1:
            with pytest.raises(ValueError):
                accounting.epsilon(
                    noise_multiplier=sigma, sampling_rate=rate, steps=steps, delta=delta, accountant="rdp"
                )


def test_errors_are_rusts():
    with pytest.raises(AccountingError, match=r"sampling_rate = 1.5: expected a number in \[0, 1\]"):
        DpEvent.gaussian(1.0).poisson_sampled(1.5)
    with pytest.raises(AccountingError, match="`steps` and `epochs` cannot be given together"):
        accounting.epsilon(noise_multiplier=1, sampling_rate=0.1, steps=1, epochs=2, delta=1e-5)
    with pytest.raises(AccountingError, match="-1 is not a count"):
        accounting.epsilon(noise_multiplier=1, sampling_rate=0.1, steps=-1, delta=1e-5)
    with pytest.raises(AccountingError, match="relation: unknown variant `swap`, expected one of `add-remove`"):
        Ledger("swap")
    with pytest.raises(AccountingError, match="accountant is `prv`, expected pld, rdp or gdp"):
        accounting.epsilon(noise_multiplier=1, sampling_rate=0.1, steps=1, delta=1e-5, accountant="prv")
    with pytest.raises(TypeError):
        accounting.epsilon(noise_multiplier="much", sampling_rate=0.1, steps=1, delta=1e-5)
    assert issubclass(AccountingError, ValueError)


EVENTS = [
    DpEvent.non_private(),
    DpEvent.nothing(),
    DpEvent.gaussian(2.0),
    DpEvent.laplace(2.0),
    DpEvent.joint_gaussian([1.0, 10.0]).poisson_sampled(0.01).repeated(100),
    DpEvent.gaussian(2.0).fixed_size_sampled(1000, 10),
    DpEvent.randomised_response(1.0, 4),
    DpEvent.zero_concentrated(0.1),
    DpEvent.renyi_at_order(8.0, 0.1),
    DpEvent.epsilon_delta(0.5, 1e-7),
    DpEvent.banded_matrix_factorisation(2.0, 0.1, 8, 1001),
    DpEvent.tree_aggregation(3.0, 8, participations=2, separation=4),
    DpEvent.mixture_of_gaussians(2.0, [0.0, 1.0, 2.0], [0.81, 0.18, 0.01]),
    DpEvent.mixture_of_user(2.0, 0.1, 2),
    DpEvent.discrete_laplace(2.0, 1),
    DpEvent.discrete_gaussian(2.0, 1),
    DpEvent.truncated_poisson_gaussian(2.0, 0.1, 1000, 120),
    DpEvent.random_allocation(2.0, 100),
    DpEvent.composed([DpEvent.gaussian(2.0), DpEvent.laplace(3.0)]),
    DpEvent.one_of([DpEvent.gaussian(2.0), DpEvent.gaussian(3.0)]),
    DpEvent.gaussian(4.0).best_of(TrialCount.negative_binomial(1.0, 0.2)),
    DpEvent.gaussian(4.0).for_user(3),
]


@pytest.mark.parametrize("event", EVENTS, ids=str)
def test_every_event_is_accounted_for_and_survives_json_and_pickle(event):
    again = DpEvent.from_json(event.to_json())
    assert again == event == pickle.loads(pickle.dumps(event)) and hash(again) == hash(event)
    relation = "replace-one" if "fixed-size" in str(event) else "add-remove"
    if "randomised response" in str(event):
        relation = "replace-one"
    ledger = Ledger(relation)
    ledger.record(event)
    bound = ledger.epsilon(1e-5)
    assert (bound.upper == math.inf) == (event == DpEvent.non_private())
    assert bound.upper <= ledger.epsilon(1e-5, accountant="rdp").upper * (1 + 1e-9)


def test_a_mixed_composition_agrees_with_dp_accounting():
    for row in golden("heterogeneous.tsv")[:2]:
        ledger = Ledger()
        step = DpEvent.gaussian(float(row["noise_multiplier"])).poisson_sampled(float(row["sampling_rate"]))
        ledger.record(step, int(row["steps"]))
        ledger.record(DpEvent.gaussian(float(row["gaussian"])), int(row["gaussian_count"]))
        ledger.record(DpEvent.laplace(float(row["laplace"])), int(row["laplace_count"]))
        bound = ledger.epsilon(float(row["delta"]))
        assert bound.lower * (1 - 2e-3) <= float(row["pld"]) <= bound.upper * (1 + 2e-3)


def test_a_ledger_is_the_same_by_steps_and_in_blocks_and_survives_json():
    step = DpEvent.gaussian(1.0).poisson_sampled(0.01)
    blocks, steps = Ledger(), Ledger()
    blocks.record(step, 50)
    for _ in range(50):
        steps.record(step)
    assert blocks == steps and blocks.digest == steps.digest and blocks.entries == [(step, 50)]
    again = Ledger.from_json(blocks.to_json())
    assert again == blocks == pickle.loads(pickle.dumps(blocks)) == copy.deepcopy(blocks)
    again.merge(steps)
    assert again.entries == [(step, 100)]
    tampered = json.loads(blocks.to_json())
    tampered["entries"][0]["count"] = 5
    with pytest.raises(AccountingError, match="ledger entry 0 does not match its digest"):
        Ledger.from_json(json.dumps(tampered))
    with pytest.raises(AccountingError, match="cannot combine"):
        blocks.merge(Ledger("replace-one"))


def test_accountants_compose_what_ledgers_hold():
    step = DpEvent.gaussian(1.0).poisson_sampled(256 / 36178)
    ledger = Ledger()
    ledger.record(step, 2826)
    pld, rdp, gdp = Accountant.pld(relative_width=1e-6), Accountant.rdp(), Accountant.gdp()
    for accountant in (pld, rdp, gdp):
        ledger.compose_into(accountant)
    bound = pld.epsilon(1e-6)
    assert 2.413270 < bound.lower <= bound.upper < 2.413272
    assert ledger.epsilon(1e-6, accountant=Accountant.pld(relative_width=1e-6)) == bound
    assert rdp.epsilon(1e-6).upper > bound.upper and rdp.rdp_at(8.0) > 0
    # The central-limit estimate is below the truth, and says that it is none.
    assert gdp.epsilon(1e-6).upper < bound.lower and gdp.epsilon(1e-6).mark == "nominal"
    assert pld.delta(bound.upper).lower <= 1e-6 * (1 + 1e-6)
    moments = Accountant.rdp(orders=range(2, 65), conversion="classic")
    moments.compose(step, 2826)
    assert moments.epsilon(1e-6).upper == pytest.approx(3.100, abs=5e-4)


def test_attacks_are_bounded():
    accountant = Accountant.pld()
    accountant.compose(DpEvent.gaussian(1.0))
    curve = accountant.trade_off()
    # mu = 1: Φ(1.64485 - 1).
    missed = curve.false_negative_rate(0.05)
    assert 0.74048 < missed.guaranteed <= 0.740489 and missed.possible >= missed.guaranteed
    assert curve.gaussian_mu(1e-6).guaranteed == pytest.approx(1, abs=1e-3)
    assert curve.advantage().guaranteed == pytest.approx(0.3829249, abs=1e-6)
    assert curve.bayes_risk(0.5).guaranteed == pytest.approx(0.5 - 0.3829249 / 2, abs=1e-6)


def test_calibration_by_a_function_keeps_the_target_and_passes_on_what_it_raises():
    calibration = Calibration(target_epsilon=3, delta=1e-6, spent=Accountant.rdp())
    event = lambda sigma: DpEvent.gaussian(sigma).poisson_sampled(256 / 36178).repeated(2826)
    sigma = calibration.noise_multiplier(event)
    assert sigma == pytest.approx(0.94708, abs=1e-4)
    rate = calibration.sampling_rate(lambda rate: DpEvent.gaussian(1.0).poisson_sampled(rate).repeated(2826))
    assert 256 / 36178 < rate < 0.01
    assert calibration.steps(DpEvent.gaussian(1.0).poisson_sampled(0.01)) > 1000
    assert calibration.batch_size(36178, lambda rate: event(1.0)) == 36178

    def broken(sigma):
        raise ZeroDivisionError(f"at {sigma}")

    with pytest.raises(ZeroDivisionError):
        calibration.noise_multiplier(broken)
    with pytest.raises(TypeError):
        calibration.noise_multiplier(lambda sigma: sigma)
    spent = Accountant.rdp()
    spent.compose(DpEvent.gaussian(0.5))
    with pytest.raises(AccountingError, match="reaches an epsilon of 0.1"):
        Calibration(target_epsilon=0.1, delta=1e-6, spent=spent).noise_multiplier(event)


def test_the_other_parameters_are_found_too():
    question = {"noise_multiplier": 1.0, "delta": 1e-6, "accountant": "rdp"}
    steps = accounting.steps(target_epsilon=3, sampling_rate=0.01, **question)
    assert accounting.epsilon(sampling_rate=0.01, steps=steps, **question).upper <= 3
    assert accounting.epsilon(sampling_rate=0.01, steps=steps + 1, **question).upper > 3
    with pytest.raises(AccountingError, match="`steps` is what is sought"):
        accounting.steps(target_epsilon=3, sampling_rate=0.01, steps=3, **question)
    with pytest.raises(AccountingError, match="leaves `steps` open, expected `batch_size`"):
        accounting.batch_size(target_epsilon=3, sampling_rate=0.01, **question)


def test_groups_with_smaller_thresholds_are_safer():
    groups = GroupAccounting(2, sampling_rate=0.007, noise_multiplier=1.0, count_noise_multipliers=[10.0])
    for _ in range(500):
        groups.record_step([1.0, 0.5])
    epsilons = []
    for group in range(2):
        accountant = Accountant.rdp(orders=[12.0])
        groups.compose_into(group, accountant)
        epsilons.append(accountant.epsilon(1e-6).upper)
    assert epsilons[1] < 0.7 * epsilons[0]
    assert groups.n_groups == 2 and groups.events(0)[0][1] == 500


def test_a_statement_says_what_it_covers():
    ledger = Ledger()
    ledger.record(DpEvent.joint_gaussian([1.0, 10.0]).poisson_sampled(0.01), 1000)
    statement = Statement(
        ledger,
        1e-5,
        unit_of_privacy="one person's record",
        covered=["the model", "the thresholds"],
        given=["the scaling, which was fitted on the private records"],
    )
    assert statement.mark == "conditional" and statement.ledger_digest == ledger.digest
    assert "epsilon at most 1.8475 (conditional) at delta 1e-5" in str(statement)
    assert Statement.from_json(statement.to_json()) == statement == pickle.loads(pickle.dumps(statement))


def test_lines_are_answered_as_by_the_command():
    lines = ['{"id":"a","sampling_rate":0.01,"noise_multiplier":1,"steps":1000,"delta":1e-5}', '{"sampling_rat":1}']
    good, bad = (json.loads(line) for line in accounting.answer_lines(lines))
    assert good["id"] == "a" and good["epsilon_pld_lower"] <= good["epsilon_pld_upper"] < good["epsilon_rdp"]
    assert "unknown field `sampling_rat`" in bad["note"]


def test_answer_asks_all_accountants():
    answered = accounting.answer(noise_multiplier=1, sampling_rate=0.01, delta=1e-5, target_epsilon=2)
    assert answered.found[0] == "steps" and answered.found[1] > 1000
    assert [answer.accountant for answer in answered.answers][-2:] == ["PLD", "GDP"]
    assert all(answer.upper <= 2 for answer in answered.answers if answer.accountant == "PLD")


def slow_ledger():
    """A question that takes long: many different losses that have no formula, and a bracket that
    cannot be had.
    """
    ledger = Ledger()
    for i in range(40):
        ledger.record(DpEvent.laplace(1.0 + i / 100).poisson_sampled(0.1 + i / 1000), 1000)
    return ledger, Accountant.pld(relative_width=1e-9, max_points=2**26)


def test_progress_is_told_and_can_stop_the_call():
    ledger, accountant = slow_ledger()
    told = []

    def progress(seconds):
        told.append(seconds)
        if len(told) == 3:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        ledger.epsilon(1e-9, accountant=accountant, progress=progress)
    assert told == sorted(told) and len(told) == 3


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_ends_a_long_call():
    ledger, accountant = slow_ledger()
    timer = threading.Timer(0.3, signal.raise_signal, [signal.SIGINT])
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        ledger.epsilon(1e-9, accountant=accountant)
    timer.join()


def test_threads_share_a_ledger():
    step = DpEvent.gaussian(5.0).poisson_sampled(0.01)
    ledger = Ledger()

    def work():
        for _ in range(200):
            ledger.record(step)
        ledger.epsilon(1e-5)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ledger.entries == [(step, 800)]


def test_a_delta_has_a_mark():
    question = {"noise_multiplier": 1, "sampling_rate": 0.01, "steps": 1000}
    assert accounting.delta(epsilon=2, **question).mark == "certified"
    assert accounting.delta(epsilon=2, **question, accountant="gdp").mark == "nominal"
    assert "mark='certified'" in repr(accounting.delta(epsilon=2, **question))
    # Without noise everything may happen, and a delta of 1 promises nothing.
    assert accounting.delta(epsilon=2, noise_multiplier=0, sampling_rate=1, steps=1).mark == "nominal"
