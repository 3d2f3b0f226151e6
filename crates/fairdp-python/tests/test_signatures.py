"""Who made a release, and a release in the forms that others ask for."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pandas
import pytest

import fairdp
from fairdp import FairDPError

N = 2000
RNG = np.random.default_rng(3)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    here = tmp_path_factory.mktemp("signed")
    people = pandas.DataFrame({"age": RNG.integers(18, 81, N), "sex": RNG.choice(["f", "m"], N)})
    people["y"] = np.where((people["age"] > 50) ^ (RNG.random(N) < 0.1), "yes", "no")
    people.to_csv(here / "table.csv", index=False)
    text = fairdp.init(here / "table.csv", "y", groups=["sex"], epsilon=2.0).replace('from = "data"', "public = true")
    (here / "c.toml").write_text(text + '\n[card]\nowner = "the credit desk"\n')
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fairdp.fit(here / "c.toml", out=here / "run", seed=1)
    return here / "run"


def test_a_signature_says_who_made_a_release(run, tmp_path):
    secret, public = fairdp.keygen(tmp_path / "office")
    assert (secret.name, public.name) == ("office.key", "office.pub")
    with pytest.raises(FairDPError, match="keys are not replaced"):
        fairdp.keygen(tmp_path / "office")
    with pytest.raises(FairDPError, match="nobody has signed the release"):
        fairdp.verify(run, public_key=public)
    assert fairdp.sign(run, key=secret) == run / "release" / "statement.json.minisig"
    assert fairdp.verify(run, public_key=public) == fairdp.verify(run)
    _, other = fairdp.keygen(tmp_path / "other")
    with pytest.raises(FairDPError, match="is by the key"):
        fairdp.verify(run, public_key=other)
    with pytest.raises(FairDPError, match="is no public key of minisign"):
        fairdp.verify(run, public_key=secret)
    # A release keeps its signature.
    fairdp.load(run).save(tmp_path / "copy")
    assert fairdp.verify(tmp_path / "copy", public_key=public)["seed"] == 1
    statement = tmp_path / "copy" / "statement.json"
    statement.write_text(statement.read_text().replace('"seed":1', '"seed":2').replace('"seed": 1', '"seed": 2'))
    with pytest.raises(FairDPError, match="is not the signature"):
        fairdp.verify(tmp_path / "copy", public_key=public)
    with pytest.raises(FairDPError):
        fairdp.sign(tmp_path / "copy", key=secret)


def test_exports_name_what_is_missing(run):
    yaml = pytest.importorskip("yaml")
    registry = fairdp.export("registry", run)
    entry = yaml.safe_load(registry.text)
    assert "the credit desk" in json.dumps(entry) and registry.missing
    assert registry.text.count("# missing: ") <= len(registry.missing)
    card = fairdp.export("model-card", run / "release")
    header = yaml.safe_load(card.text.split("---\n")[1])
    assert "differential-privacy" in json.dumps(header) and "NOT PRIVATE" in card.text
    with pytest.raises(ValueError, match="form = 'registery': expected one of registry, model-card"):
        fairdp.export("registery", run)
    with pytest.raises(FairDPError):
        fairdp.export("registry", run / "nothing")
