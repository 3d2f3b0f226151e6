"""Opacus with this package's accountant and its clipping methods.

Once `register()` was called, Opacus takes the accountant by name:

>>> import fairdp.opacus
>>> fairdp.opacus.register()
>>> from opacus.accountants import create_accountant
>>> from opacus.accountants.utils import get_noise_multiplier
>>> accountant = create_accountant("fairdp")  # PrivacyEngine(accountant="fairdp") does the same
>>> for _ in range(1000):
...     accountant.step(noise_multiplier=1.0, sample_rate=0.01)
>>> len(accountant), round(accountant.get_epsilon(delta=1e-5), 4)
(1000, 1.8282)
>>> round(get_noise_multiplier(
...     target_epsilon=3.0, target_delta=1e-5, sample_rate=0.01, steps=1000,
...     accountant="fairdp"), 2)
0.81

`make_private` is Opacus's with a clipping method of `fairdp.clipping`; `FairDPOptimizer` is what it
makes, and `RecordLoss` wraps a criterion so that its terms are by record. FairLens is refused: its
regularisers need second derivatives of the batch's losses, and an optimizer sees gradients only.
The analyses of one error of clipping (`magnitude-only`, `direction-only`) work in hooks mode alone,
since they need every record's gradient.

What is released is made of the gradients of the layers that Opacus hooks, and of nothing else. A
parameter that is used beside its layer, a parameter that was added or unfrozen later, a term added
to the loss, and a batch that is used twice are refused. `Accountant.given` names what cannot be
checked: epsilon is conditional on it.
"""

from fairdp.opacus.accountant import Accountant, ConditionalBound, register
from fairdp.opacus.audit import Attack, audit
from fairdp.opacus.batches import BatchMemoryManager
from fairdp.opacus.loss import RecordLoss
from fairdp.opacus.optimizer import FairDPOptimizer
from fairdp.opacus.private import make_private

__all__ = [
    "Accountant",
    "Attack",
    "BatchMemoryManager",
    "ConditionalBound",
    "FairDPOptimizer",
    "RecordLoss",
    "audit",
    "make_private",
    "register",
]
