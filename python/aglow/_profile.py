"""Profiles: what samples tell of a model's values, for precision "int8"."""
from __future__ import annotations

import os
import tempfile
from typing import Any, Iterable, Mapping, Optional, Sequence, Union

from . import _core
from ._errors import Fault, FileError
from ._model import Model, _checked, _read, _shapes, _threads, _usage


class Profile:
    """What samples told of a model's values; profiles of one model add up.

        both = aglow.profile(model, these) + aglow.profile(model, those)
        both.save("both.json")
    """

    def __init__(self, text: str):
        self.text = text

    @classmethod
    def load(cls, path: Union[str, os.PathLike]) -> Profile:
        """A file that `save` or `aglow profile` wrote."""
        try:
            with open(path, encoding="utf-8") as file:
                text = file.read()
        except (OSError, ValueError) as fault:
            raise FileError([Fault("E801", 8, f"the profile cannot be read: {fault}", os.fspath(path))]) from None
        return cls(_core.join_profiles([text]))

    def save(self, path: Union[str, os.PathLike]) -> None:
        """What was at the path stays there until all is written."""
        path = os.fspath(path)
        handle, beside = tempfile.mkstemp(dir=os.path.dirname(path) or ".")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(self.text)
            os.replace(beside, path)
        except BaseException:
            os.unlink(beside)
            raise

    def __add__(self, other: Profile) -> Profile:
        return Profile(_core.join_profiles([self.text, other.text]))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Profile) and self.text == other.text


def profile(model: Any, samples: Iterable[Any], *, init: Any = None, backend: Optional[str] = None,
            shapes: Optional[Mapping[str, Sequence[int]]] = None, dims: Optional[Mapping[str, int]] = None,
            threads: Optional[int] = None, cache: Union[str, os.PathLike, bool, None] = None,
            disable: Iterable[str] = (), strict: bool = False) -> Profile:
    """Runs a model on samples and gives the ranges of its values, for aglow.compile(..., precision="int8").

    samples  each a dict of inputs by name, a tuple of inputs in order, or the only input itself; values are finite

    The other arguments are those of compile; `disable` and `strict` have to be the same there.
    """
    core, name = _read(model, init)
    function = Model(core, name, {})._function()
    profiler = core.profiler(backend=backend or os.environ.get("AGLOW_BACKEND", ""),
                             threads=_checked(threads, "threads") if threads else _threads(),
                             cache="off" if cache is False else "" if cache is None or cache is True else
                             os.fspath(cache), shapes=_shapes(shapes), dims=dict(dims or {}), disable=list(disable),
                             strict=strict)
    empty = True
    for sample in samples:
        empty = False
        if not isinstance(sample, Mapping):
            sample = function._by_position(sample if isinstance(sample, tuple) else (sample,))
        profiler.add({key: function._bits(key, value) for key, value in sample.items()})
    if empty:
        raise _usage("E102", "there are no samples")
    return Profile(profiler.text)
