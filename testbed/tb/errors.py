"""The one error that reaches the user as a message instead of a traceback."""


class TestbedError(Exception):
    """Something the user can act on: says what happened, why, and what to do."""

    __test__ = False
