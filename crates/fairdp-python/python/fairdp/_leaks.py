"""What no ε covers."""

from __future__ import annotations


class PrivacyLeakWarning(UserWarning):
    """Constants of a model were taken from the records: its statement is conditional on them.

    Bounds of numbers, values of categories, classes and groups shape every record's features. Where
    they are read from the records, they reveal something of them that ε does not cover. Declare
    them, or pay for bounds by ``bounds="private"``.
    """
