"""Accountants on one grid of settings of DP-SGD: seconds, widths, failures, and answers below the
truth.

    pip install opacus==1.6.0 dp-accounting==0.6.0 prv-accountant==0.2.0 autodp==0.2.3.1 \
        opake==0.16.1 crates/fairdp-python
    python docs/benchmarks/accountants.py answers.jsonl

Asks each accountant for ε in a process of its own, one setting after the other; prints Markdown,
and writes every answer to the file. Times are the process's CPU seconds, of which a setting has 60,
and 12 GiB of address space. Names after the file choose accountants; a file that is there is
continued.

Tolerances are the defaults: 0.01 in ε and δ/1000 in δ of Opacus's PRV, 0.1 in ε of prv_accountant,
which has none in δ and gets Opacus's.
"""

from __future__ import annotations

import collections
import json
import logging
import math
import multiprocessing
import resource
import signal
import statistics
import sys
import time
import warnings
from itertools import product
from pathlib import Path

LIMIT_SECONDS = 60
LIMIT_BYTES = 12 << 30
# Of so small an ε no share is taken.
SMALLEST = 0.01


def settings():
    """Kind, sampling rate, noise multiplier, steps, δ."""
    grids = {
        "as in papers": ((1 / 236, 256 / 36_178, 0.01, 512 / 50_000), (0.8, 1, 1.5, 4), (1000, 2826), (1e-5, 1e-6)),
        "rare records": ((1e-4, 1e-6, 1e-8), (0.6, 1, 2), (1000, 10**5, 10**6), (1e-6,)),
        "many steps": ((0.001, 0.01), (1, 4, 20), (10**5, 10**6), (1e-5, 1e-10)),
        "small δ": ((0.01,), (0.8, 1.5), (100, 1000, 10**4), (1e-10, 1e-12, 1e-15, 1e-18)),
        "little noise": ((0.01, 0.1), (0.3, 0.5), (10, 100, 1000), (1e-5,)),
        "large batches": ((0.5, 0.9, 1), (1, 3, 10), (1, 100), (1e-5,)),
    }
    for kind, grid in grids.items():
        for setting in product(*grid):
            yield kind, *setting
    # prv_accountant's issues 17 and 42.
    for setting in [
        (0.00033, 4, 10**4, 1.1e-18),
        (0.00033, 4, 10**4, 1.13e-18),
        (0.00038, 4, 10**4, 1.13e-18),
        (0.2, 1, 500, 1e-5),
    ]:
        yield "reported", *setting


def fairdp():
    from fairdp import accounting

    def ask(rate, sigma, steps, delta):
        bound = accounting.epsilon(noise_multiplier=sigma, sampling_rate=rate, steps=steps, delta=delta)
        return bound.lower, bound.upper

    return ask


def opacus(name):
    from opacus.accountants import create_accountant

    def ask(rate, sigma, steps, delta):
        accountant = create_accountant(name)
        accountant.history = [(sigma, rate, steps)]
        return None, accountant.get_epsilon(delta)

    return ask


def dp_accounting(name):
    import dp_accounting as events
    from dp_accounting import pld, rdp

    def ask(rate, sigma, steps, delta):
        accountant = pld.PLDAccountant() if name == "pld" else rdp.RdpAccountant()
        event = events.GaussianDpEvent(sigma)
        if rate < 1:
            event = events.PoissonSampledDpEvent(rate, event)
        accountant.compose(events.SelfComposedDpEvent(event, steps))
        return None, accountant.get_epsilon(delta)

    return ask


def prv_accountant():
    import prv_accountant as prv

    def ask(rate, sigma, steps, delta):
        if rate < 1:
            step = prv.PoissonSubsampledGaussianMechanism(noise_multiplier=sigma, sampling_probability=rate)
        else:
            step = prv.GaussianMechanism(noise_multiplier=sigma)
        accountant = prv.PRVAccountant(
            prvs=step, max_self_compositions=steps, eps_error=0.1, delta_error=delta / 1000
        )
        lower, _, upper = accountant.compute_epsilon(delta, steps)
        return lower, upper

    return ask


def autodp():
    from autodp.mechanism_zoo import GaussianMechanism
    from autodp.transformer_zoo import AmplificationBySampling, Composition

    def ask(rate, sigma, steps, delta):
        step = GaussianMechanism(sigma=sigma)
        if rate < 1:
            step = AmplificationBySampling(PoissonSampling=True)(step, rate, improved_bound_flag=True)
        return None, Composition()([step], [steps]).get_approxDP(delta)

    return ask


def opake():
    from opake.dpsgd import accounting

    def ask(rate, sigma, steps, delta):
        step = accounting.gaussian(sigma)
        if rate < 1:
            step = accounting.poisson(step, sample_rate=rate)
        return None, (step * steps).epsilon_at(delta)

    return ask


ACCOUNTANTS = {
    "fairdp": fairdp,
    "opacus rdp": lambda: opacus("rdp"),
    "opacus prv": lambda: opacus("prv"),
    "dp_accounting rdp": lambda: dp_accounting("rdp"),
    "dp_accounting pld": lambda: dp_accounting("pld"),
    "prv_accountant": prv_accountant,
    "autodp rdp": autodp,
    "opake": opake,
}


def out_of_time(_signal, _frame):
    raise TimeoutError


def work(name, pipe):
    """Answers settings from the pipe, after one that is not measured."""
    warnings.simplefilter("ignore")
    logging.disable()
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT_BYTES, LIMIT_BYTES))
    signal.signal(signal.SIGPROF, out_of_time)
    try:
        ask = ACCOUNTANTS[name]()
        ask(0.02, 1.3, 50, 1e-5)
    except Exception as error:
        pipe.send(f"{type(error).__name__}: {error}")
        return
    pipe.send(None)
    while True:
        setting = pipe.recv()
        start = time.process_time()
        try:
            signal.setitimer(signal.ITIMER_PROF, LIMIT_SECONDS)
            lower, upper = (None if end is None else float(end) for end in ask(*setting))
            signal.setitimer(signal.ITIMER_PROF, 0)
            answer = {"lower": lower, "upper": upper}
            if not math.isfinite(upper):
                answer = {"failure": "ε is infinite" if upper == math.inf else "ε is not a number"}
        except TimeoutError:
            answer = {"failure": "too long"}
        except Exception as error:
            signal.setitimer(signal.ITIMER_PROF, 0)
            answer = {"failure": f"{type(error).__name__}: {error}"[:200]}
        pipe.send({**answer, "seconds": time.process_time() - start})


class Worker:
    """An accountant in a process that is killed when it takes too long."""

    def __init__(self, name):
        self.name, self.process = name, None

    def start(self):
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=work, args=(self.name, theirs), daemon=True)
        self.process.start()
        theirs.close()
        refusal = self.pipe.recv()
        if refusal is not None:
            raise SystemExit(f"{self.name}: {refusal}")

    def ask(self, setting):
        if self.process is None:
            self.start()
        self.pipe.send(setting)
        try:
            # Compiled code that hangs sees no signal.
            if self.pipe.poll(20 * LIMIT_SECONDS):
                return self.pipe.recv()
            answer = {"failure": "too long", "seconds": LIMIT_SECONDS}
        except EOFError:
            answer = {"failure": "the process ended", "seconds": 0.0}
        self.stop()
        return answer

    def stop(self):
        if self.process is not None:
            self.process.kill()
            self.process.join()
            self.process = None


def summary(rows):
    """Tables of accountants: what they answer and how fast, and where their answers lie."""
    named = complete(rows)
    pairs = {name: [(row["fairdp"], row[name]) for row in rows.values()] for name in named}
    print("| accountant | answers | none | too long | ms, median | s, slowest | s, all |\n|---|---|---|---|---|---|---|")
    for name in named:
        failures = [answer["failure"] for _, answer in pairs[name] if "failure" in answer]
        too_long = failures.count("too long")
        seconds = [answer["seconds"] for _, answer in pairs[name]]
        print(
            f"| {name} | {len(seconds) - len(failures)} | {len(failures) - too_long} | {too_long} "
            f"| {1e3 * statistics.median(seconds):.1f} | {max(seconds):.1f} | {sum(seconds):.0f} |"
        )
    print(
        "\n| accountant | below our lower end | by at most | in our bracket "
        "| above our upper end | by, median | by at most |\n|---|---|---|---|---|---|---|"
    )
    for name in named[1:]:
        answers = [(ours, answer["upper"]) for ours, answer in pairs[name] if "upper" in answer]
        below = [share(ours, ours["lower"] - upper) for ours, upper in answers if upper < ours["lower"]]
        above = [share(ours, upper - ours["upper"]) for ours, upper in answers if upper > ours["upper"]]
        print(
            f"| {name} | {len(below)} | {percent(max(below, default=0))} "
            f"| {len(answers) - len(below) - len(above)} | {len(above)} "
            f"| {percent(statistics.median(above))} | {percent(max(above))} |"
        )
    widths = [share(row["fairdp"], row["fairdp"]["upper"] - row["fairdp"]["lower"]) for row in rows.values()]
    print(
        f"\nOur brackets: {statistics.median(widths):.1e} of ε wide in the median; "
        f"{sum(width > 1e-3 for width in widths)} wider than 1e-3."
    )
    too_high = sum(
        answer.get("lower") is not None and answer["lower"] > ours["upper"]
        for name in named
        for ours, answer in pairs[name]
    )
    print(f"Lower ends of peers above our upper end: {too_high}.")


def percent(part):
    """With two digits."""
    return f"{100 * part:,.0f} %" if part > 0.1 else f"{100 * part:.2g} %"


def complete(rows):
    """The accountants that were asked everything."""
    return [name for name in ACCOUNTANTS if all(name in row for row in rows.values())]


def share(ours, difference):
    """Of ε, or of 0.01 where it is smaller."""
    return difference / max(ours["upper"], SMALLEST)


def by_kind(rows):
    """Table of kinds: milliseconds in the median, settings without an answer, answers below."""
    names = complete(rows)
    print("\n| settings | number | " + " | ".join(names) + " |\n" + "|---" * (len(names) + 2) + "|")
    for kind in dict.fromkeys(kind for kind, *_ in rows):
        of_kind = [row for (other, *_), row in rows.items() if other == kind]
        cells = []
        for name in names:
            answers = [(row["fairdp"], row[name]) for row in of_kind]
            seconds = statistics.median(answer["seconds"] for _, answer in answers)
            failed = sum("failure" in answer for _, answer in answers)
            below = sum(answer.get("upper", math.inf) < ours["lower"] for ours, answer in answers)
            cells.append(f"{1e3 * seconds:.1f}, {failed}, {below}")
        print(f"| {kind} | {len(of_kind)} | " + " | ".join(cells) + " |")


def details(rows):
    """Our wide brackets, failures by message, and for each accountant the answers furthest below.
    """
    print("\nOur brackets wider than 1e-3:\n")
    for setting, row in rows.items():
        ours = row["fairdp"]
        if share(ours, ours["upper"] - ours["lower"]) > 1e-3:
            others = {name: answer["upper"] for name, answer in row.items() if "upper" in answer}
            least = min(others, key=others.get)
            print(f"- {setting}: [{ours['lower']:.4g}, {ours['upper']:.4g}]; {least} {others[least]:.4g}")
    failures = collections.Counter(
        (name, answer["failure"].split("(")[0][:90])
        for row in rows.values()
        for name, answer in row.items()
        if "failure" in answer
    )
    print("\nFailures:\n")
    for (name, message), count in sorted(failures.items()):
        print(f"- {name}: {count} × {message}")
    print("\nFurthest below:\n")
    for name in ACCOUNTANTS:
        below = []
        for setting, row in rows.items():
            ours, upper = row["fairdp"], row.get(name, {}).get("upper", math.inf)
            if upper < ours["lower"]:
                below.append((share(ours, ours["lower"] - upper), setting, upper, ours["lower"]))
        for difference, setting, upper, lower in sorted(below)[-3:]:
            print(f"- {name}: {setting}: {upper:.9g} for at least {lower:.9g} ({percent(difference)})")


def main(path, names):
    """Asks what the file does not have yet, and prints the tables."""
    rows = {setting: {} for setting in settings()}
    if path.exists():
        for line in path.read_text().splitlines():
            answer = json.loads(line)
            rows[tuple(answer.pop("setting"))][answer.pop("accountant")] = answer
    workers = [Worker(name) for name in names or ACCOUNTANTS]
    with path.open("a") as file:
        for worker in workers:
            for setting, row in rows.items():
                if worker.name not in row:
                    row[worker.name] = worker.ask(setting[1:])
                    line = {"setting": setting, "accountant": worker.name, **row[worker.name]}
                    file.write(json.dumps(line) + "\n")
                    file.flush()
            worker.stop()
    if all("upper" in row.get("fairdp", {}) for row in rows.values()):
        summary(rows)
        by_kind(rows)
        details(rows)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
