"""Errors that a person is meant to read: what happened, and what to do."""


class AppError(Exception):
    """An expected failure; `str(error)` is the sentence, `hint` says what to do about it."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(AppError):
    """Bad usage or input; the command line leaves with status 2."""


class ScriptError(UsageError):
    """A model script that cannot be used as it is."""
