"""Checks a release of fairdp, without any code of fairdp: docs/release-format.md is all it was written from.

    python verify_release.py RELEASE [PUBLIC_KEY]      # needs NumPy where batches are sampled

Ends with 0 if everything holds, with 4 if something is wrong, with 3 if an event is of a kind that it does not know.
"""

import base64
import hashlib
import json
import math
import pathlib
import struct
import sys

PARTS = ["training", "test", "validation"]


class Unknown(Exception):
    """An event of a kind that is not handled here."""


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def unsealed(text):
    """The document, after its seal was compared."""
    body, mark, end = text.rpartition(',\n  "seal": "')
    if not mark or end != sha256(body.encode()) + '"\n}\n':
        raise ValueError("statement.json does not have the digest of its seal")
    return json.loads(body + "\n}")


P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
CURVE = -121665 * pow(121666, -1, P) % P


def added(a, b):
    """The sum of two points of Ed25519, x and y."""
    product = CURVE * a[0] * b[0] * a[1] * b[1]
    x = (a[0] * b[1] + b[0] * a[1]) * pow(1 + product, -1, P)
    y = (a[1] * b[1] + a[0] * b[0]) * pow(1 - product, -1, P)
    return x % P, y % P


def times(factor, point):
    result = (0, 1)
    while factor:
        if factor & 1:
            result = added(result, point)
        point, factor = added(point, point), factor >> 1
    return result


def point_of(data):
    """RFC 8032, 5.1.3."""
    number = int.from_bytes(data, "little")
    y, sign = number & (2**255 - 1), number >> 255
    square = (y * y - 1) * pow(CURVE * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    if x * x % P != square:
        x = x * pow(2, (P - 1) // 4, P) % P
    if y >= P or x * x % P != square or (x == 0 and sign):
        raise ValueError("not a point of the curve")
    return (P - x if x & 1 != sign else x), y


def is_signed(key, data, signature):
    """RFC 8032, 5.1.7, for Ed25519."""
    scalar = int.from_bytes(signature[32:], "little")
    hashed = int.from_bytes(hashlib.sha512(signature[:32] + key + data).digest(), "little") % ORDER
    base = point_of((4 * pow(5, -1, P) % P).to_bytes(32, "little"))
    return scalar < ORDER and times(scalar, base) == added(point_of(signature[:32]), times(hashed, point_of(key)))


def signature_problem(folder, public_key):
    """What is wrong with the signature of a statement, or nothing."""
    key = base64.b64decode(public_key.read_text("utf-8").splitlines()[1])
    place = folder / "statement.json.minisig"
    if not place.exists():
        return "nobody has signed the release"
    _, first, comment, last = place.read_text("utf-8").splitlines()
    signature, comment = base64.b64decode(first), comment.removeprefix("trusted comment: ").encode()
    if key[:2] != b"Ed" or signature[:2] != b"ED" or signature[2:10] != key[2:10]:
        return "the release is signed by another key"
    digest = hashlib.blake2b((folder / "statement.json").read_bytes()).digest()
    if not is_signed(key[10:], digest, signature[10:]):
        return "the signature is not that of this statement"
    if not is_signed(key[10:], signature[10:] + comment, base64.b64decode(last)):
        return "the comment of the signature was changed"
    return None


def canonical(event):
    """The bytes of an event that a ledger hashes."""
    (kind, fields), = event.items()
    if kind == "gaussian":
        return struct.pack("<Bd", 1, fields["noise_multiplier"])
    if kind == "joint-gaussian":
        multipliers = fields["noise_multipliers"]
        return struct.pack(f"<BQ{len(multipliers)}d", 3, len(multipliers), *multipliers)
    if kind == "poisson-sampled":
        return struct.pack("<Bd", 6, fields["sampling_rate"]) + canonical(fields["event"])
    raise Unknown(kind)


def chain(releases):
    """The last digest of the ledger of one part."""
    merged = []
    for release in releases:
        if merged and merged[-1][0] == release["event"]:
            merged[-1][1] += release["count"]
        else:
            merged.append([release["event"], release["count"]])
    digest = sha256(b"dp-accounting ledger, version 2, zero-out neighbours")
    for event, count in merged:
        data = canonical(event)
        digest = sha256(digest.encode() + struct.pack("<Q", len(data)) + data + struct.pack("<Q", count))
    return digest


def gaussian_precision(event):
    """1/sigma^2 of a Gaussian mechanism, or None if its batches are sampled."""
    (kind, fields), = event.items()
    if kind == "gaussian":
        return fields["noise_multiplier"] ** -2
    if kind == "joint-gaussian":
        return sum(sigma**-2 for sigma in fields["noise_multipliers"])
    if kind == "poisson-sampled":
        return None
    raise Unknown(kind)


def delta_of_gaussian(mu, epsilon):
    """Balle and Wang 2018, Theorem 8, with mu = sensitivity / standard deviation."""
    below = lambda x: math.erfc(-x / math.sqrt(2)) / 2
    return below(mu / 2 - epsilon / mu) - math.exp(epsilon) * below(-mu / 2 - epsilon / mu)


def losses_of_sampled(sigma, rate, step, direction):
    """Probabilities of privacy losses, rounded to multiples of a step: N(0, sigma) with or without the record."""
    import numpy as np

    x = np.linspace(-12 * sigma, 1 + 12 * sigma, 400_001)
    density = lambda mean: np.exp(-(((x - mean) / sigma) ** 2) / 2) / (sigma * math.sqrt(2 * math.pi))
    without = density(0)
    with_it = (1 - rate) * without + rate * density(1)
    first, second = (with_it, without) if direction == "remove" else (without, with_it)
    loss = np.log(first) - np.log(second)
    return np.rint(loss / step).astype(int), first * (x[1] - x[0])


def delta_of_mixed(mu, sampled, epsilon, step=1e-3, size=1 << 17):
    """Delta of one Gaussian with mu and of sampled ones, by a Fourier transform of the losses; an estimate."""
    import numpy as np

    worst = 0.0
    for direction in ["remove", "add"]:
        total = np.ones(size // 2 + 1, complex)
        parts = [(losses_of_sampled(sigma, rate, step, direction), count) for sigma, rate, count in sampled]
        if mu > 0:
            parts.append((losses_of_sampled(1 / mu, 1.0, step, direction), 1))
        for (places, masses), count in parts:
            row = np.zeros(size)
            np.add.at(row, places % size, masses)
            total *= np.fft.rfft(row) ** count
        row = np.fft.irfft(total, size)
        loss = np.fft.fftfreq(size, 1 / size) * step
        above = loss > epsilon
        worst = max(worst, float(np.sum(row[above] * (1 - np.exp(epsilon - loss[above])))))
    return worst


def epsilon_of(releases, delta):
    """The least epsilon of one part, by bisection."""
    mu, sampled = 0.0, []
    for release in releases:
        precision = gaussian_precision(release["event"])
        if precision is None:
            fields = release["event"]["poisson-sampled"]
            inner = gaussian_precision(fields["event"])
            sampled.append((inner**-0.5, fields["sampling_rate"], release["count"]))
        else:
            mu = math.hypot(mu, math.sqrt(precision * release["count"]))
    if mu == 0 and not sampled:
        return 0.0
    delta_at = (lambda e: delta_of_mixed(mu, sampled, e)) if sampled else (lambda e: delta_of_gaussian(mu, e))
    low, high = 0.0, 50.0
    for _ in range(30 if sampled else 60):
        middle = (low + high) / 2
        low, high = (middle, high) if delta_at(middle) > delta else (low, middle)
    return high


def problems(folder, public_key):
    if public_key and (problem := signature_problem(folder, public_key)):
        yield problem
    statement = unsealed((folder / "statement.json").read_text("utf-8"))
    files = {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()}
    for name in sorted(set(files) - {"statement.json.minisig"} ^ {*statement["files"], "statement.json"}):
        yield f"{name} is missing or has no entry in the statement"
    for name, digest in statement["files"].items():
        if name in files and sha256(files[name].read_bytes()) != digest:
            yield f"{name} was changed"
    by_part = {part: [release for release in statement["events"] if release["part"] == part] for part in PARTS}
    if [chain(releases) for releases in by_part.values()] != statement["chain"]:
        yield "the events do not have the digests of the chain"
    found = max(epsilon_of(releases, statement["delta"]) for releases in by_part.values())
    if found > statement["epsilon"] * 1.002:
        yield f"the statement says epsilon = {statement['epsilon']}, and its events cost {found:.4f}"
    if not statement["private"]:
        print("NOT PRIVATE: a run with a seed; who knows it can take the noise off")
    print(f"epsilon {statement['epsilon']:.4f} at delta {statement['delta']}; here {found:.4f}")


def main():
    public_key = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else None
    try:
        found = list(problems(pathlib.Path(sys.argv[1]), public_key))
    except Unknown as unknown:
        print(f"an event of the kind {unknown}, which is not handled here")
        return 3
    except (OSError, ValueError, KeyError) as error:
        found = [str(error)]
    author = "" if public_key else "; without a public key: digests detect changes, not authors"
    print("\n".join(found) or "everything holds" + author)
    return 4 if found else 0


sys.exit(main())
