"""What several files of tests use."""

import signal

import pytest


@pytest.fixture
def interruptible():
    """Ctrl-C raises `KeyboardInterrupt`, also in a job that the shell started with it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
