"""Faults as exceptions: one class for each exit code of the program, so that `except` can tell whose fault it is."""
from __future__ import annotations

import operator
from typing import Any, NamedTuple, Sequence


class Fault(NamedTuple):
    """One thing that is wrong: a stable code ("E201"), its exit code, the words, the place, and a hint."""
    code: str
    exit: int
    message: str
    where: str = ""
    hint: str = ""

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        hint = f"\n  hint: {self.hint}" if self.hint else ""
        return f"[{self.code}] {place}{self.message}{hint}"


class Error(Exception):
    """Whatever went wrong. `errors` has all the faults that were found; the other attributes are the gravest one's."""
    exit = 7

    def __init__(self, errors: Sequence[Fault]):
        super().__init__(errors)
        self.errors: tuple[Fault, ...] = tuple(errors)
        fault = next((fault for fault in self.errors if fault.exit == self.exit), self.errors[0])
        self.code: str = fault.code
        self.message: str = fault.message
        self.where: str = fault.where
        self.hint: str = fault.hint

    def __str__(self) -> str:
        lines = [str(fault) for fault in self.errors[:100]]
        if len(self.errors) > 1:
            lines.append(f"{len(self.errors)} errors")
        return "\n".join(lines)


class ModelWarning(UserWarning):
    """A model departs from the standard, and is taken as other engines take it; `compile(…, strict=True)` refuses it."""


class UsageError(Error, ValueError):
    """Wrong arguments, or arrays that do not fit the model."""
    exit = 1


class BadModelError(Error, ValueError):
    """The model is malformed."""
    exit = 2


class UnsupportedError(Error, NotImplementedError):
    """The model is valid, but needs something that is not supported."""
    exit = 3


class ResourceError(Error, MemoryError):
    """More memory than there is or is allowed, or a limit of the compiler."""
    exit = 4


class MismatchError(Error, AssertionError):
    """Outputs differ from what is expected."""
    exit = 5


class DeviceError(Error, RuntimeError):
    """The device is missing, lost or reported a fault."""
    exit = 6


class InternalError(Error, RuntimeError):
    """A fault in Aglow itself."""
    exit = 7


class FileError(Error, OSError):
    """A file cannot be read or written."""
    exit = 8


_CLASSES = {kind.exit: kind for kind in (UsageError, BadModelError, UnsupportedError, ResourceError, MismatchError,
                                         DeviceError, InternalError, FileError)}


def usage(code: str, message: str, hint: str = "", where: str = "") -> UsageError:
    """A fault of the caller."""
    return UsageError([Fault(code, 1, message, where, hint)])


def whole(number: Any, name: str) -> int:
    """The number, where it is a whole one."""
    try:
        return operator.index(number)
    except TypeError:
        raise usage("E101", f"{name} is {number!r}; expected a whole number") from None


def exception_of(faults: Sequence[tuple[str, int, str, str, str]], exit_code: int) -> Error:
    """The exception for faults of the compiler; `exit_code` is that of all of them together."""
    return _CLASSES.get(exit_code, InternalError)([Fault(*fault) for fault in faults])
