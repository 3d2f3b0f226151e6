"""Privacy accounting: events, ledgers, accountants, calibration, statements.

The shortest use is one question by its fields; every number it gives is a bound, or says that it is
not:

>>> from fairdp import accounting
>>> bound = accounting.epsilon(noise_multiplier=1, sampling_rate=256/36178, steps=2826, delta=1e-6)
>>> round(bound.lower, 6), round(bound.upper, 6), bound.how, bound.mark
(2.413271, 2.413271, 'contour integral', 'certified')

What else was done is an event, and a ledger keeps events:

>>> step = accounting.DpEvent.joint_gaussian([1.0, 10.0]).poisson_sampled(0.01)
>>> ledger = accounting.Ledger()
>>> ledger.record(step, 1000)
>>> print(ledger.epsilon(1e-5))
epsilon at most 1.8475 (certified), at least 1.8474, at delta 1e-5, by contour integral

Do not add up epsilons by hand: record the events, and ask once. Long calls release the
interpreter's lock, can be interrupted by Ctrl-C, and tell `progress`, if it is given, the seconds
so far about ten times a second. What is wrong with an argument raises `fairdp.AccountingError`, a
`ValueError`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable, Literal, Sequence, TypedDict

from fairdp._fairdp import AccountingError
from fairdp._fairdp import accounting as _rust

if TYPE_CHECKING:
    from typing_extensions import Unpack

Accountant = _rust.Accountant
Answered = _rust.Answered
AttackBound = _rust.AttackBound
Calibration = _rust.Calibration
DeltaBound = _rust.DeltaBound
DpEvent = _rust.DpEvent
EpsilonBound = _rust.EpsilonBound
GroupAccounting = _rust.GroupAccounting
Ledger = _rust.Ledger
Statement = _rust.Statement
TradeOff = _rust.TradeOff
TrialCount = _rust.TrialCount
analytic_gaussian_noise_multiplier = _rust.analytic_gaussian_noise_multiplier
answer = _rust.answer
answer_lines = _rust.answer_lines

__all__ = [
    "Accountant",
    "AccountingError",
    "Answered",
    "AttackBound",
    "Calibration",
    "DeltaBound",
    "DpEvent",
    "EpsilonBound",
    "GroupAccounting",
    "Ledger",
    "Statement",
    "TradeOff",
    "TrialCount",
    "analytic_gaussian_noise_multiplier",
    "answer",
    "answer_lines",
    "batch_size",
    "delta",
    "epsilon",
    "noise_multiplier",
    "sampling_rate",
    "steps",
]

Relation = Literal["add-remove", "remove", "add", "replace-one", "zero-out"]


class _Question(TypedDict, total=False):
    sampler: Literal["poisson", "fixed-size"]
    sampling_rate: float
    records: int
    batch_size: int
    steps: int
    epochs: float
    noise_multiplier: float
    count_noise_multipliers: Sequence[float]
    event: DpEvent
    user_records: int
    relation: Relation
    accountant: Literal["pld", "rdp", "gdp"]
    orders: Sequence[float] | str
    conversion: Literal["improved", "classic"]
    relative_width: float
    progress: Callable[[float], object]


def _one(question: _Question) -> _Question:
    """The question to one accountant, PLD unless it says otherwise."""
    accountant = question.get("accountant", "pld")
    if accountant not in ("pld", "rdp", "gdp"):
        raise AccountingError(f"accountant is `{accountant}`, expected pld, rdp or gdp: `answer` asks all of them")
    return {**question, "accountant": accountant}


def epsilon(*, delta: float, **question: Unpack[_Question]) -> EpsilonBound:
    """Epsilon at `delta` of what was done, by one accountant.

    What was done is `event`, `steps` times; or Gaussian queries on batches: `noise_multiplier` and
    `count_noise_multipliers`; `sampling_rate`, or `records` with `batch_size`; `steps`, or
    `epochs`.

    `sampler` is "poisson" (every record on its own) or "fixed-size"; `relation` says which data
    sets are neighbours; `user_records` how many records come and go together. `accountant` is
    "pld", a certified bracket of `relative_width`; "rdp", with `orders` and `conversion`; or "gdp",
    an estimate.

    >>> epsilon(noise_multiplier=0.8, sampling_rate=0.01, steps=1000, delta=1e-5).mark
    'certified'
    >>> epsilon(
    ...     noise_multiplier=0.8, sampling_rate=0.01, steps=1000, delta=1e-5, accountant="gdp").mark
    'nominal'
    >>> epsilon(noise_multiplier=0, sampling_rate=0.01, steps=1, delta=1e-5).upper
    inf
    >>> epsilon(noise_multiplier=1, sampling_rate=1.5, steps=1, delta=1e-5)
    Traceback (most recent call last):
    fairdp.AccountingError: sampling_rate = 1.5: expected a number in [0, 1]
    """
    found: EpsilonBound = answer(delta=delta, **_one(question)).answers[0]
    return found


def delta(*, epsilon: float, **question: Unpack[_Question]) -> DeltaBound:
    """Delta at `epsilon`, which may be negative; the other arguments are as in `epsilon`.

    >>> bound = delta(noise_multiplier=1, sampling_rate=0.01, steps=1000, epsilon=2)
    >>> 0 < bound.lower <= bound.upper < 1e-5
    True
    """
    found: DeltaBound = answer(epsilon=epsilon, **_one(question)).answers[0]
    return found


def _found(target_epsilon: float, delta: float, question: _Question, name: str) -> float | int:
    if question.get(name) is not None:
        raise AccountingError(f"`{name}` is what is sought: leave it out")
    found = answer(target_epsilon=target_epsilon, delta=delta, **_one(question)).found
    if found is None or found[0] != name:
        what = "nothing" if found is None else f"`{found[0]}`"
        raise AccountingError(f"the question leaves {what} open, expected `{name}`")
    return found[1]


def noise_multiplier(*, target_epsilon: float, delta: float, **question: Unpack[_Question]) -> float:
    """The smallest noise multiplier that keeps `target_epsilon` at `delta`, rounded up.

    >>> sigma = noise_multiplier(
    ...     target_epsilon=3, delta=1e-6, sampling_rate=256/36178, steps=2826, accountant="rdp")
    >>> round(sigma, 4)
    0.947
    """
    return _found(target_epsilon, delta, question, "noise_multiplier")


def sampling_rate(*, target_epsilon: float, delta: float, **question: Unpack[_Question]) -> float:
    """The largest sampling rate that keeps `target_epsilon` at `delta`, rounded down.

    >>> rate = sampling_rate(target_epsilon=3, delta=1e-6, noise_multiplier=1, steps=2826)
    >>> epsilon(sampling_rate=rate, noise_multiplier=1, steps=2826, delta=1e-6).upper <= 3
    True
    """
    return _found(target_epsilon, delta, question, "sampling_rate")


def batch_size(*, target_epsilon: float, delta: float, **question: Unpack[_Question]) -> int:
    """The largest expected batch size out of `records` that keeps `target_epsilon` at `delta`.

    >>> batch_size(target_epsilon=3, delta=1e-6, noise_multiplier=1, steps=2826, records=36178)
    312
    """
    return int(_found(target_epsilon, delta, question, "batch_size"))


def steps(*, target_epsilon: float, delta: float, **question: Unpack[_Question]) -> int:
    """The largest number of steps that keeps `target_epsilon` at `delta`; 0 if not even one does.

    >>> steps(target_epsilon=3, delta=1e-6, noise_multiplier=1, sampling_rate=256/36178) > 2826
    True
    """
    return int(_found(target_epsilon, delta, question, "steps"))
