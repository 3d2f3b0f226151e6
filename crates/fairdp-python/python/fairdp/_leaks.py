"""Categories of warnings about facts that no ε covers."""

from __future__ import annotations


class PrivacyLeakWarning(UserWarning):
    """Constants of a model were taken from the records: its statement is conditional on them.

    Bounds of numbers, values of categories, classes and groups shape every record's features. Where
    they are read from the records, they reveal something of them that ε does not cover. Declare
    them, or pay for bounds by ``bounds="private"``.
    """


class NotPrivateWarning(UserWarning):
    """The noise follows from a seed: whoever knows it can take the noise off.

    ``random_state=None`` draws the noise from the operating system. Meta-estimators such as
    ``BaggingClassifier`` set ``random_state`` on their parts, which then are not private.
    """


class CompositionWarning(UserWarning):
    """Several fits of one process spend ε each, and no ledger file adds them up.

    A refit, a clone, a fold and a candidate of a search are fits. Give all of them one
    ``ledger=``, or read ``total_epsilon_``.
    """


class UnmatchedValuesWarning(UserWarning):
    """Values of a table are none of those declared, and some declared ones do not occur.

    The message is about private records: it is for whoever has them.
    """
