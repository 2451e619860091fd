"""Profiles: what samples tell of a model's values, for precision "int8"."""
from __future__ import annotations

import functools
import json
import os
import tempfile
from typing import Any, Callable, Iterable, Mapping, Optional, Sequence, Union

from . import _core
from ._compile import checked_threads, default_threads, profile_text, read
from ._errors import Fault, FileError, usage
from ._function import Function, value_of
from ._model import Model, shape_lists


class Profile:
    """What samples told of a model's values; profiles of one model add up.

        both = aglow.profile(model, these) + aglow.profile(model, those)
        both.save("both.json")
    """

    def __init__(self, text: str):
        self.text = text

    @classmethod
    def load(cls, path: Union[str, "os.PathLike[str]"]) -> Profile:
        """A file that `save` or `aglow profile` wrote."""
        try:
            with open(path, encoding="utf-8") as file:
                text = file.read()
        except (OSError, ValueError) as fault:
            raise FileError([Fault("E801", 8, f"the profile cannot be read: {fault}", os.fspath(path))]) from None
        return cls(_core.join_profiles([text]))

    def save(self, path: Union[str, "os.PathLike[str]"]) -> None:
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

    @property
    def keep_float(self) -> list[str]:
        """Layers that stay in floats, since samples showed too much noise with them in integers."""
        return list(json.loads(self.text).get("keep_float", []))

    def __add__(self, other: Profile) -> Profile:
        return Profile(_core.join_profiles([self.text, other.text]))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Profile) and self.text == other.text


def profile(model: Any, samples: Iterable[Any], *, init: Any = None, backend: Optional[str] = None,
            shapes: Optional[Mapping[str, Sequence[int]]] = None, dims: Optional[Mapping[str, int]] = None,
            threads: Optional[int] = None, cache: Union[str, "os.PathLike[str]", bool, None] = None,
            disable: Iterable[str] = (), strict: bool = False, reach: Optional[float] = 25) -> Profile:
    """Runs a model on samples and gives the ranges of its values, for aglow.compile(..., precision="int8").

    samples  each a dict of inputs by name, a tuple of inputs in order, or the only input itself; values are finite
    reach    decibels that all outputs are to have in integers on the first eight samples, and the same first places:
             the profile keeps layers in floats until they do (`keep_float` lists them); None: all become integers

    The other arguments are those of compile; `disable` and `strict` have to be the same there.
    """
    core, name, _ = read(model, init)
    function = Model(core, name, {})._function()
    if reach is not None and not reach > 0:
        raise usage("E101", f"reach={reach!r}: expected decibels from above 0 on, or None")
    how = _how(backend, shapes, dims, threads, cache, disable, strict)
    profiler = core.profiler(**how)
    first: list[dict[str, Any]] = []
    for sample in samples:
        inputs = _inputs(function, sample)
        profiler.add(inputs)
        if len(first) < _core.CHECKED_SAMPLES:
            first.append(inputs)
    if not first:
        raise usage("E102", "there are no samples")
    if reach is None:
        return Profile(profiler.text)
    return Profile(core.check_profile(**how, profile=profiler.text, samples=first, reach=float(reach)))


def _how(backend: Optional[str], shapes: Any, dims: Any, threads: Optional[int], cache: Any, disable: Iterable[str],
         strict: bool) -> dict[str, Any]:
    """How samples are run, as the compiler takes it."""
    return {"backend": backend or os.environ.get("AGLOW_BACKEND", ""),
            "threads": checked_threads(threads, "threads") if threads else default_threads(),
            "cache": "off" if cache is False else "" if cache is None or cache is True else os.fspath(cache),
            "shapes": shape_lists(shapes), "dims": dict(dims or {}), "disable": list(disable), "strict": strict}


def _inputs(function: Function, sample: Any) -> dict[str, Any]:
    if not isinstance(sample, Mapping):
        sample = function._by_position(sample if isinstance(sample, tuple) else (sample,))
    return {key: function._bits(key, value) for key, value in sample.items()}


def _measured(metric: Callable[[list[list[Any]]], float], samples: list[list[Any]]) -> float:
    return metric([[value_of(output) for output in outputs] for outputs in samples])


class QuantReport:
    """What integers do to a model. `data` is what `aglow quant-report --json` prints, `keep_float` what is to stay in
    floats to reach what was asked for; printed, it is the text of the command."""

    def __init__(self, data: str, text: str, html: str):
        self.data: dict[str, Any] = json.loads(data)
        self.html = html
        self._text = text

    @property
    def keep_float(self) -> list[str]:
        """Layers that stay in floats to reach what was asked for."""
        return list(self.data.get("reach", {}).get("keep_float", []))

    def __str__(self) -> str:
        return self._text

    def _repr_html_(self) -> str:
        return self.html


def quant_report(model: Any, profile: Any, samples: Iterable[Any], *,
                 metric: Optional[Callable[[list[list[Any]]], float]] = None, reach: Optional[float] = None,
                 drop: Optional[float] = None, layers: bool = True, calibration: str = "", schema: str = "",
                 keep_float: Iterable[str] = (), init: Any = None, backend: Optional[str] = None,
                 shapes: Optional[Mapping[str, Sequence[int]]] = None, dims: Optional[Mapping[str, int]] = None,
                 threads: Optional[int] = None, cache: Union[str, "os.PathLike[str]", bool, None] = None,
                 disable: Iterable[str] = (), strict: bool = False) -> QuantReport:
    """Compares a model in integers with the same in floats, value by value and layer by layer.

    metric   a function of a list with the outputs of each sample; the larger its number, the better
    reach    decibels that all outputs are to have: layers are kept in floats until they do
    drop     how much the metric may fall: the same
    layers   whether each layer is looked at alone

    The other arguments are those of profile and compile.
    """
    core, name, _ = read(model, init)
    function = Model(core, name, {})._function()
    values = [_inputs(function, sample) for sample in samples]
    if not values:
        raise usage("E102", "there are no samples")
    if profile is None:
        raise usage("E101", "a report needs a profile", "aglow.profile makes one")
    measured = None if metric is None else functools.partial(_measured, metric)
    return QuantReport(*core.quant_report(
        **_how(backend, shapes, dims, threads, cache, disable, strict), profile=profile_text(profile),
        calibration=calibration, schema=schema, keep_float=list(keep_float), samples=values, metric=measured,
        reach=None if reach is None else float(reach), drop=None if drop is None else float(drop), layers=layers,
        title=name, metric_name=getattr(metric, "__name__", "metric")))
