"""Independent values for the tests, to 50 digits: `python3 oracle.py` writes oracle_rdp.tsv and oracle_delta.tsv beside itself.

Needs mpmath only. Nothing here shares a formula with the crate beyond the definition of the mechanism:
P = (1-q) N(0, s^2) + q N(1, s^2), Q = N(0, s^2), w = dP/dQ.

Renyi divergence of order a: ln(E_Q[w^a])/(a-1), by a trapezoidal sum to the working precision.
Privacy profile of T compositions, remove direction: the inversion integral
    delta(eps) = 1/(2 pi i) int M(z)^T e^(-z eps) / (z (z+1)) dz on Re z = c, M(z) = E_P[e^(z ln w)] = E_Q[w^(z+1)],
and, for the add direction, M(z) = E_Q[w^(-z)]; c is the real saddle point, where the integrand falls off like a bell.
M(z) is a trapezoidal sum, exact to the working precision for this step (the integrand is entire up to the zeros of w).
"""

import sys

from mpmath import exp, log, mp, mpf, nstr, pi, sqrt

mp.dps = 50


def w(q, s, x):
    return 1 - q + q * exp((2 * x - 1) / (2 * s * s))


def renyi(q, s, a):
    # Subtracting the tangent keeps the digits for small q: E[w - 1] = 0. The trapezoidal rule is exact to the working precision for
    # this step: its error is exp(-2 pi d / step) with d = pi s^2, the distance of the zeros of w from the real line.
    step = min(s / 8, s * s / 12)
    reach = 16 * s
    first, last = int(-reach / step) - 1, int((max(a, 2) + reach) / step) + 1
    total = mpf(0)
    for k in range(first, last):
        x = k * step
        v = w(q, s, x)
        total += exp(-x * x / (2 * s * s)) * (v**a - 1 - a * (v - 1))
    return log(1 + total * step / (s * sqrt(2 * pi))) / (a - 1)


class Moment:
    """M(z) with the nodes and ln w computed once."""

    def __init__(self, q, s, add, order):
        reach = 20 * s
        self.step = min(s / 8, s * s / 12)
        count = int((2 * reach + max(order, 0) + 2) / self.step) + 2
        xs = [-reach + self.step * k for k in range(count)]
        self.weights = [self.step * exp(-x * x / (2 * s * s)) / (s * sqrt(2 * pi)) for x in xs]
        self.logs = [log(w(q, s, x)) for x in xs]
        self.add = add

    def __call__(self, z):
        power = -z if self.add else z + 1
        return mp.fsum(p * exp(power * l) for p, l in zip(self.weights, self.logs))


def log_integrand(moment, T, eps, z):
    return T * log(moment(z)) - z * eps - log(z) - log(z + 1)


def delta(q, s, T, eps, add=False):
    mp.dps = 30
    moment = Moment(q, s, add, 60)
    # The real saddle point by golden section; the integrand is largest on the real axis of the contour there.
    lo, hi = mpf("1e-3"), mpf(60)
    ratio = (sqrt(5) - 1) / 2
    for _ in range(30):
        a, b = hi - ratio * (hi - lo), lo + ratio * (hi - lo)
        if log_integrand(moment, T, eps, a) < log_integrand(moment, T, eps, b):
            hi = b
        else:
            lo = a
    c = (lo + hi) / 2
    peak = log_integrand(moment, T, eps, c)
    width = mpf(1) / sqrt(abs(mp.diff(lambda z: log_integrand(moment, T, eps, z), c, 2)))
    value = lambda t: mp.re(exp(T * log_continuous(moment, c, t, T) - (c + 1j * t) * eps - peak) / ((c + 1j * t) * (c + 1 + 1j * t)))
    # Trapezoidal rule; halved until two sums agree.
    previous = None
    step = width / 2
    while True:
        total, k = value(mpf(0)) / 2, 1
        small = 0
        while small < 5:
            v = value(k * step)
            total += v
            small = small + 1 if abs(v) < mpf(10) ** -18 * abs(total) else 0
            k += 1
            if k > 20000:
                return None
        total = total * step / pi * exp(peak)
        if previous is not None and abs(total / previous - 1) < mpf(10) ** -13:
            return total
        previous, step = total, step / 2


def log_continuous(moment, c, t, T):
    # M(c + it)^T needs no branch: exp(T ln M) is the same on every branch for integer T.
    return log(moment(c + 1j * t))


RDP = [(q, s, a) for q in ("1e-12", "1e-6", "0.001", "0.02", "0.3", "0.9") for s in ("0.3", "0.8", "1", "3", "30") for a in ("1.001", "1.5", "2.7", "6", "33.3")]
# Little noise: two humps with a deep valley between them.
RDP += [(q, "0.05", a) for q in ("1e-12", "4.6e-5", "0.02", "0.3") for a in ("1.001", "1.05", "1.5", "1.9", "2.7")]
DELTA = [
    ("0.007076201848657733", "1", 2826, ("0.5", "2.413", "6"), (False, True)),
    ("0.00468444070339805", "0.8", 12808, ("1", "4.8", "9"), (False, True)),
    ("0.21958315797178357", "13.5", 227, ("0.1", "0.914", "2"), (False, True)),
    ("0.001", "1", 20000, ("0.2", "0.687", "1.5"), (False, True)),
    ("0.5", "1", 100, ("10", "30", "80"), (False, True)),
]


def main():
    head = "# Generator: mpmath %s, oracle.py, %%s.\n" % __import__("mpmath").__version__
    with open("oracle_rdp.tsv", "w") as f:
        f.write("# Renyi divergence of one Poisson-sampled Gaussian.\n" + head % "50 digits" + "sampling_rate\tnoise_multiplier\torder\trdp\n")
        for q, s, a in RDP:
            mp.dps = 50
            f.write("\t".join((q, s, a, nstr(renyi(mpf(q), mpf(s), mpf(a)), 17))) + "\n")
    with open("oracle_delta.tsv", "w") as f:
        f.write("# delta(epsilon) of T Poisson-sampled Gaussians, one direction of add-remove neighbours.\n" + head % "30 digits, inversion integral" + "sampling_rate\tnoise_multiplier\tsteps\tdirection\tepsilon\tdelta\n")
        for q, s, T, epsilons, directions in DELTA:
            for eps in epsilons:
                for add in directions:
                    d = delta(mpf(q), mpf(s), T, mpf(eps), add)
                    print(q, s, T, eps, add, d and nstr(d, 15), file=sys.stderr, flush=True)
                    if d is not None:
                        f.write("\t".join((q, s, str(T), "add" if add else "remove", eps, nstr(d, 15))) + "\n")


if __name__ == "__main__":
    main()
