"""Functions of compiled models: what they take and give, and calls."""
from __future__ import annotations

import dataclasses
import difflib
import warnings
from typing import Any, Callable, Iterable, Iterator, Mapping, MutableMapping, Optional, Sequence, Union

import numpy as np

from . import _arrays, _core
from ._errors import Fault, ModelWarning, UnsupportedError, usage

Array = _arrays.Array
Map = Union["dict[int, Any]", "dict[str, Any]"]
Value = Union[Array, "list[Array]", Map, "list[Map]", None]
Dim = Union[int, str, None]


@dataclasses.dataclass(frozen=True)
class TensorSpec:
    """An input or output as the model declares it.

    `shape` has a number, the name of a symbolic dimension, or None for each axis; it is None where the rank is open.
    `dtype` is None where the model does not name it. Of a sequence both are the items', of a map (a dict) the values'.
    An input with a default need not be given.
    """
    name: str
    dtype: Optional[np.dtype[Any]]
    shape: Optional[tuple[Dim, ...]]
    type: str
    is_sequence: bool = False
    is_optional: bool = False
    has_default: bool = False
    is_map: bool = False
    _kind: str = dataclasses.field(default="", repr=False)
    _keys: str = dataclasses.field(default="", repr=False)


def _dtype(kind: str) -> Optional[np.dtype[Any]]:
    return None if kind in ("", "any") else _arrays.dtype_of(kind)


def specs_of(rows: Iterable[tuple[Any, ...]]) -> tuple[TensorSpec, ...]:
    """What the compiler tells of inputs, outputs or state."""
    return tuple(TensorSpec(name, _dtype(kind), shape, text, sequence, optional, preset, bool(keys), kind, keys)
                 for name, kind, text, shape, sequence, optional, preset, keys in rows)


class Function:
    """One function of a model: called as a model is.

        add = model["add"]
        total = add(x)
    """

    def __init__(self, core: _core.Model, name: str, inputs: Iterable[tuple[Any, ...]], outputs: Iterable[tuple[Any, ...]],
                 values: Mapping[str, Any]):
        self._core = core
        self.name = name
        self.inputs: tuple[TensorSpec, ...] = specs_of(inputs)
        self.outputs: tuple[TensorSpec, ...] = specs_of(outputs)
        self._input = {spec.name: spec for spec in self.inputs}
        self._free = [spec for spec in self.inputs if not spec.has_default and spec.name not in values]
        self._preset = {name: self._bits(name, value) for name, value in values.items()}
        # Small models take no longer than a few lines of Python: what most calls are is asked first.
        self._short = self._short_way()

    def __call__(self, *args: Any, out: Any = None, **kwargs: Any) -> Any:
        """The outputs: one as it is, several as a tuple."""
        if out is None:
            results = self._short(*(self._by_name(args, kwargs) if kwargs else args))
            if results is not NotImplemented:
                return results
        return self._called(args, out, kwargs)

    def _by_name(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """All inputs by name as they are by position; for anything else nothing, which the short way refuses."""
        if args or len(kwargs) != len(self._free) or any(spec.name not in kwargs for spec in self._free):
            return (None,)
        return tuple([kwargs[spec.name] for spec in self._free])

    async def arun(self, *args: Any, out: Any = None, **kwargs: Any) -> Any:
        """A call that other tasks of the event loop go on beside: it runs on a thread of the loop's executor."""
        import asyncio
        return await asyncio.to_thread(self, *args, out=out, **kwargs)

    def _called(self, args: tuple[Any, ...], out: Any, kwargs: dict[str, Any]) -> Any:
        results = self._run(self._named(args, kwargs), out, stacklevel=5)
        return results[0] if len(results) == 1 else tuple(results)

    def _named(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """What was given, by name."""
        by_name = len(args) == 1 and isinstance(args[0], Mapping) and not self._is_map(args[0])
        named = args[0] if by_name else self._by_position(args)
        if twice := [name for name in kwargs if name in named]:
            raise usage("E102", f"input '{twice[0]}' was given twice", self._takes())
        return {**named, **kwargs}

    def _given(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """What was given, as the compiler takes it."""
        return self._all_bits(self._named(args, kwargs))

    def _short_way(self) -> Callable[..., Any]:
        """Runs arrays that nothing has to be done to; NotImplemented for all others."""
        names = [spec.name for spec in (*self._free, *self.outputs)]
        plain = all(spec._kind in kinds and not (spec.is_sequence or spec.is_map or spec.is_optional)
                    for specs, kinds in ((self._free, _arrays.NATIVE), (self.outputs, _arrays.NATIVE | {"any"}))
                    for spec in specs)
        if not plain or any(name != name.encode("utf-8", "replace").decode() for name in names):
            return _long_way
        inputs = len(self._free)
        return _core.Calls(self._core, self.name, names[:inputs], names[inputs:], np.empty, np.ndarray,
                           _arrays.NATIVE_DTYPES)

    def _close(self) -> None:
        self._core, self._short = closed(), _long_way

    def run(self, inputs: Mapping[str, Any], out: Any = None) -> dict[str, Value]:
        """The outputs by name, for inputs by name."""
        return dict(zip((spec.name for spec in self.outputs), self._run(inputs, out, stacklevel=4)))

    def __repr__(self) -> str:
        return f"<aglow.Function {self.name}{self._signature()}>"

    def _signature(self) -> str:
        preset = len(self.inputs) - len(self._free)
        inputs = ", ".join([f"{spec.name}: {spec.type}" for spec in self._free] + [f"{preset} with defaults"] * (preset > 0))
        outputs = ", ".join(f"{spec.name}: {spec.type}" for spec in self.outputs)
        return f"({inputs}) -> ({outputs})"

    def _is_map(self, value: Mapping[Any, Any]) -> bool:
        """Whether a dict is the one input of the model rather than inputs by name."""
        return len(self._free) == 1 and self._free[0].is_map and self._free[0].name not in value

    def _by_position(self, args: Sequence[Any]) -> dict[str, Any]:
        specs = self._free if len(args) <= len(self._free) else self.inputs
        if len(args) > len(specs):
            raise usage("E102", f"{len(args)} inputs were given, the model takes {len(specs)}", self._takes())
        return {spec.name: value for spec, value in zip(specs, args)}

    def _takes(self) -> str:
        preset = len(self.inputs) - len(self._free)
        told = [f"'{spec.name}' {spec.type}" for spec in self._free] + [f"{preset} with defaults"] * (preset > 0)
        return "the model takes " + (", ".join(told) or "no inputs")

    def _bits(self, name: str, value: Any) -> Any:
        """What was given for an input, as the compiler takes it."""
        spec = self._input.get(name)
        if spec is None:
            near = difflib.get_close_matches(str(name), self._input, 1)
            raise usage("E102", f"the model has no input '{name}'",
                         f"did you mean '{near[0]}'?" if near else self._takes())
        if not spec._kind:
            raise UnsupportedError([Fault("E302", 3, f"input '{name}' is of type {spec.type}, which is not supported")])
        try:
            if value is None and spec.is_optional:
                return None
            if spec.is_sequence:
                if not isinstance(value, (list, tuple)):
                    expected = "dicts" if spec.is_map else "arrays"
                    raise TypeError(f"expected a list of {expected}, got {type(value).__name__}")
                return [_pair(item, spec) for item in value]
            return _pair(value, spec)
        except (TypeError, ValueError) as fault:
            raise usage("E102", f"{fault}; the model takes {spec.type}", where=f"input '{name}'") from None

    def _all_bits(self, named: Mapping[str, Any]) -> dict[str, Any]:
        given = {name: self._bits(name, value) for name, value in named.items()}
        for spec in self._free:
            if spec.name not in given:
                if not spec.is_optional:
                    raise usage("E103", f"input '{spec.name}' ({spec.type}) was not given", self._takes())
                given[spec.name] = None
        return given

    def _run(self, named: Mapping[str, Any], out: Any, stacklevel: int) -> list[Value]:
        results = self._results(self._all_bits(named), stacklevel)
        return results if out is None else self._written(results, out)

    def _results(self, given: dict[str, Any], stacklevel: int) -> list[Value]:
        core = self._core
        results = [result[1] if type(result) is tuple and result[0] in _arrays.NATIVE else value_of(result)
                   for result in core.run(self.name, given)]
        for text in core.take_warnings():
            warnings.warn(text, ModelWarning, stacklevel)
        return results

    def _written(self, results: list[Value], out: Any) -> list[Value]:
        if isinstance(out, Mapping):
            names = [spec.name for spec in self.outputs]
            if unknown := [name for name in out if name not in names]:
                near = difflib.get_close_matches(str(unknown[0]), names, 1)
                raise usage("E102", f"the model has no output '{unknown[0]}'",
                             f"did you mean '{near[0]}'?" if near else f"its outputs are {', '.join(names)}")
            places = [out.get(name) for name in names]
        else:
            places = list(out) if isinstance(out, (list, tuple)) else [out]
        if len(places) != len(results):
            raise usage("E102", f"out has {len(places)} arrays, the model gives {len(results)}")
        for i, (place, result) in enumerate(zip(places, results)):
            if place is None:
                continue
            if not isinstance(place, np.ndarray) or not isinstance(result, np.ndarray) or \
                    (place.dtype, place.shape) != (result.dtype, result.shape):
                raise usage("E102", f"expected {_told(result)}, got {_told(place)}",
                             where=f"out '{self.outputs[i].name}'")
            np.copyto(place, result)
            results[i] = place
        return results


def _long_way(*args: Any) -> Any:
    return NotImplemented


class _Closed:
    """Stands for the compiled part of a model that was closed."""

    def __getattr__(self, name: str) -> Any:
        raise usage("E101", "the model was closed")


def closed() -> Any:
    """What takes the place of the compiled part of a model that is closed."""
    return _Closed()


class State(MutableMapping[str, Array]):
    """What the functions of a model leave for the next run: arrays by name. Reading one gives a copy."""

    def __init__(self, core: Union[_core.Model, _core.Trainer]):
        self._core = core
        self._specs = {spec.name: spec for spec in specs_of(core.states)}

    def __getitem__(self, name: str) -> Array:
        if name not in self._specs:
            raise KeyError(name)
        return _arrays.from_pair(*self._core.state(name))

    def __setitem__(self, name: str, value: Any) -> None:
        if name not in self._specs:
            raise KeyError(name)
        try:
            pair = _arrays.to_pair(value, self._specs[name]._kind)
        except (TypeError, ValueError) as fault:
            raise usage("E102", f"{fault}; it is {self._specs[name].type}", where=f"state '{name}'") from None
        self._core.set_state(name, pair)

    def __delitem__(self, name: str) -> None:
        raise TypeError("the state of a model keeps its parts")

    def __iter__(self) -> Iterator[str]:
        return iter(self._specs)

    def __len__(self) -> int:
        return len(self._specs)

    def reset(self) -> None:
        """All of it begins again."""
        self._core.reset_state()


def _told(value: Any) -> str:
    return f"{value.dtype.name}{list(value.shape)}" if isinstance(value, np.ndarray) else type(value).__name__


def _pair(value: Any, spec: TensorSpec) -> tuple[str, Any]:
    return _arrays.to_map(value, spec._keys, spec._kind) if spec.is_map else _arrays.to_pair(value, spec._kind)


def value_of(result: Any) -> Value:
    """A result of the compiler as callers see it."""
    if isinstance(result, tuple):
        return _arrays.from_pair(*result)
    if result is None or isinstance(result, dict):
        return result
    items: Any = [item if isinstance(item, dict) else _arrays.from_pair(*item) for item in result]
    made: Value = items
    return made
