"""What can go wrong, said so that a person can mend it: the field, the value and the remedy in one sentence.

Every error that a user may see is a `PenstockError`; interfaces print its text and exit with its code.
"""

from __future__ import annotations


class PenstockError(Exception):
    """An error with a sentence for the user; `exit_code` is what a command ends with."""

    exit_code = 1


class SpecError(PenstockError):
    """A value in a spec, setting or command that cannot be used."""

    exit_code = 2

    def __init__(self, field: str, value: object, problem: str, remedy: str, place: str = "") -> None:
        self.field, self.value, self.problem, self.remedy, self.place = field, value, problem, remedy, place
        where = f"{place}: " if place else ""
        super().__init__(f"{where}{field} = {value!r} {problem}; {remedy}.")

    def at(self, place: str) -> SpecError:
        """The same error, located (`file:line`)."""
        return SpecError(self.field, self.value, self.problem, self.remedy, place)


class MissingError(PenstockError):
    """Something the user named that is not there."""

    exit_code = 3


class ConflictError(PenstockError):
    """A write that contradicts what is already committed."""

    exit_code = 4


class FencedError(ConflictError):
    """A write by an older generation or epoch than the one the log has seen: a zombie."""


class CorruptionError(PenstockError):
    """Stored bytes that are torn, changed or missing; names the file and what it held."""

    exit_code = 5


class EnvironmentProblem(PenstockError):
    """The machine lacks something: Java, memory, a jar, a port."""

    exit_code = 6
