"""Compiled models: `compile` makes them, calls run them."""
from __future__ import annotations

import dataclasses
import difflib
import os
import warnings
from typing import Any, Iterable, Iterator, Mapping, MutableMapping, Optional, Sequence, Union

import numpy as np

from . import _arrays, _core
from ._errors import Fault, ModelWarning, UnsupportedError, UsageError

Map = Union["dict[int, Any]", "dict[str, Any]"]
Value = Union[np.ndarray, "list[np.ndarray]", Map, "list[Map]", None]
Dim = Union[int, str, None]


@dataclasses.dataclass(frozen=True)
class TensorSpec:
    """An input or output as the model declares it.

    `shape` has a number, the name of a symbolic dimension, or None for each axis; it is None where the rank is open.
    `dtype` is None where the model does not name it. Of a sequence both are the items', of a map (a dict) the values'.
    An input with a default need not be given.
    """
    name: str
    dtype: Optional[np.dtype]
    shape: Optional[tuple[Dim, ...]]
    type: str
    is_sequence: bool = False
    is_optional: bool = False
    has_default: bool = False
    is_map: bool = False
    _kind: str = dataclasses.field(default="", repr=False)
    _keys: str = dataclasses.field(default="", repr=False)


def _usage(code: str, message: str, hint: str = "", where: str = "") -> UsageError:
    return UsageError([Fault(code, 1, message, where, hint)])


def _dtype(kind: str) -> Optional[np.dtype]:
    return None if kind in ("", "any") else _arrays.dtype_of(kind)


def _specs(rows: Iterable[tuple]) -> tuple[TensorSpec, ...]:
    return tuple(TensorSpec(name, _dtype(kind), shape, text, sequence, optional, preset, bool(keys), kind, keys)
                 for name, kind, text, shape, sequence, optional, preset, keys in rows)


def _warn(core: _core.Model, stacklevel: int) -> None:
    for text in core.take_warnings():
        warnings.warn(text, ModelWarning, stacklevel)


class Function:
    """One function of a model: called as a model is.

        add = model["add"]
        total = add(x)
    """

    def __init__(self, core: _core.Model, name: str, inputs: Iterable[tuple], outputs: Iterable[tuple],
                 values: Mapping[str, Any]):
        self._core = core
        self.name = name
        self.inputs: tuple[TensorSpec, ...] = _specs(inputs)
        self.outputs: tuple[TensorSpec, ...] = _specs(outputs)
        self._input = {spec.name: spec for spec in self.inputs}
        self._preset = {name: self._bits(name, value) for name, value in values.items()}
        self._free = [spec for spec in self.inputs if not spec.has_default and spec.name not in values]
        plain = [(spec.name, spec._kind, spec.dtype) for spec in self._free
                 if not (spec.is_sequence or spec.is_map or spec.is_optional) and spec._kind in _arrays.NATIVE]
        self._plain = plain if len(plain) == len(self._free) else None

    def __call__(self, *args: Any, out: Any = None, **kwargs: Any) -> Any:
        return self._called(args, out, kwargs)

    def _called(self, args: tuple[Any, ...], out: Any, kwargs: dict[str, Any]) -> Any:
        # Small models take no longer than a few lines of Python: what most calls are is asked first.
        given = self._as_they_are(args) if out is None and not kwargs else None
        if given is not None:
            results = self._results(given, stacklevel=4)
        elif len(args) == 1 and isinstance(args[0], Mapping) and not self._is_map(args[0]):
            results = self._run({**args[0], **kwargs}, out, stacklevel=5)
        else:
            results = self._run({**self._by_position(args), **kwargs}, out, stacklevel=5)
        return results[0] if len(results) == 1 else tuple(results)

    def run(self, inputs: Mapping[str, Any], out: Any = None) -> dict[str, Value]:
        """The outputs by name, for inputs by name."""
        return dict(zip((spec.name for spec in self.outputs), self._run(inputs, out, stacklevel=4)))

    def __repr__(self) -> str:
        return f"<aglow.Function {self.name}{self._signature()}>"

    def _signature(self) -> str:
        inputs = ", ".join(f"{spec.name}: {spec.type}" for spec in self.inputs)
        outputs = ", ".join(f"{spec.name}: {spec.type}" for spec in self.outputs)
        return f"({inputs}) -> ({outputs})"

    def _as_they_are(self, args: Sequence[Any]) -> Optional[dict[str, Any]]:
        """The inputs as the compiler takes them, if they are plain arrays that nothing has to be done to."""
        if self._plain is None or len(args) != len(self._plain):
            return None
        given = {}
        for (name, kind, dtype), value in zip(self._plain, args):
            if type(value) is not np.ndarray or value.dtype != dtype or not value.flags.carray:
                return None
            given[name] = (kind, value)
        return given

    def _is_map(self, value: Mapping) -> bool:
        """Whether a dict is the one input of the model rather than inputs by name."""
        return len(self._free) == 1 and self._free[0].is_map and self._free[0].name not in value

    def _by_position(self, args: Sequence[Any]) -> dict[str, Any]:
        specs = self._free if len(args) <= len(self._free) else self.inputs
        if len(args) > len(specs):
            raise _usage("E102", f"{len(args)} inputs were given, the model takes {len(specs)}", self._takes())
        return {spec.name: value for spec, value in zip(specs, args)}

    def _takes(self) -> str:
        return "the model takes " + (", ".join(f"'{spec.name}' {spec.type}" for spec in self.inputs) or "no inputs")

    def _bits(self, name: str, value: Any) -> Any:
        """What was given for an input, as the compiler takes it."""
        spec = self._input.get(name)
        if spec is None:
            near = difflib.get_close_matches(str(name), self._input, 1)
            raise _usage("E102", f"the model has no input '{name}'",
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
            raise _usage("E102", f"{fault}; the model takes {spec.type}", where=f"input '{name}'") from None

    def _run(self, named: Mapping[str, Any], out: Any, stacklevel: int) -> list[Value]:
        given = {name: self._bits(name, value) for name, value in named.items()}
        for spec in self._free:
            if spec.name not in given:
                if not spec.is_optional:
                    raise _usage("E103", f"input '{spec.name}' ({spec.type}) was not given", self._takes())
                given[spec.name] = None
        results = self._results(given, stacklevel)
        return results if out is None else self._written(results, out)

    def _results(self, given: Mapping[str, Any], stacklevel: int) -> list[Value]:
        core = self._core
        results = [result[1] if type(result) is tuple and result[0] in _arrays.NATIVE else _value(result)
                   for result in core.run(self.name, given)]
        for text in core.take_warnings():
            warnings.warn(text, ModelWarning, stacklevel)
        return results

    def _written(self, results: list[Value], out: Any) -> list[Value]:
        if isinstance(out, Mapping):
            names = [spec.name for spec in self.outputs]
            if unknown := [name for name in out if name not in names]:
                near = difflib.get_close_matches(str(unknown[0]), names, 1)
                raise _usage("E102", f"the model has no output '{unknown[0]}'",
                             f"did you mean '{near[0]}'?" if near else f"its outputs are {', '.join(names)}")
            places = [out.get(name) for name in names]
        else:
            places = list(out) if isinstance(out, (list, tuple)) else [out]
        if len(places) != len(results):
            raise _usage("E102", f"out has {len(places)} arrays, the model gives {len(results)}")
        for i, (place, result) in enumerate(zip(places, results)):
            if place is None:
                continue
            if not isinstance(place, np.ndarray) or not isinstance(result, np.ndarray) or \
                    (place.dtype, place.shape) != (result.dtype, result.shape):
                raise _usage("E102", f"expected {_told(result)}, got {_told(place)}",
                             where=f"out '{self.outputs[i].name}'")
            np.copyto(place, result)
            results[i] = place
        return results


class State(MutableMapping[str, np.ndarray]):
    """What the functions of a model leave for the next run: arrays by name. Reading one gives a copy."""

    def __init__(self, core: _core.Model):
        self._core = core
        self._specs = {spec.name: spec for spec in _specs(core.states)}

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self._specs:
            raise KeyError(name)
        return _arrays.from_pair(*self._core.state(name))

    def __setitem__(self, name: str, value: Any) -> None:
        if name not in self._specs:
            raise KeyError(name)
        try:
            pair = _arrays.to_pair(value, self._specs[name]._kind)
        except (TypeError, ValueError) as fault:
            raise _usage("E102", f"{fault}; it is {self._specs[name].type}", where=f"state '{name}'") from None
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


class Model:
    """A model ready to run, for whatever sizes its inputs come in. Any number of threads may call it at once.

        y = model(x)                 inputs by position,
        y = model(image=x)           by name,
        y = model({"image": x})      or as a dict
        y = model(x, out=y)          outputs into memory that is there already
        y = model["predict"](x)      one function of several; model.functions has their names

    One output comes back as it is, several as a tuple. Sequences are lists, maps dicts, empty optionals None. Where no function is
    named, the only one is meant, or the one named main. `state` holds what functions leave for the next run.
    """

    def __init__(self, core: _core.Model, name: str, values: Mapping[str, Any]):
        self._core = core
        self._name = name
        self._functions = {function: Function(core, function, inputs, outputs, values)
                           for function, inputs, outputs in core.functions}
        self._state: Optional[State] = None
        # What a call without a name means, where that is plain.
        self._only = next(iter(self._functions.values())) if len(self._functions) == 1 else None

    @property
    def functions(self) -> tuple[str, ...]:
        """The names of the model's functions."""
        return tuple(self._functions)

    def __getitem__(self, function: str) -> Function:
        return self._function(function)

    def _function(self, name: Optional[str] = None) -> Function:
        if name is None:
            name = self.functions[0] if len(self._functions) == 1 else "main"
            if name not in self._functions:
                raise _usage("E101", f"the model has {len(self._functions)} functions, and none is named main",
                             f"choose one of {', '.join(self._functions)}")
        if name not in self._functions:
            near = difflib.get_close_matches(str(name), self._functions, 1)
            raise _usage("E101", f"the model has no function '{name}'",
                         f"did you mean '{near[0]}'?" if near else f"choose one of {', '.join(self._functions)}")
        return self._functions[name]

    @property
    def inputs(self) -> tuple[TensorSpec, ...]:
        return self._function().inputs

    @property
    def outputs(self) -> tuple[TensorSpec, ...]:
        return self._function().outputs

    @property
    def state(self) -> State:
        """What the functions leave for the next run, to be read and set by name."""
        if self._state is None:
            self._state = State(self._core)
        return self._state

    def _preset(self) -> dict[str, Any]:
        return next(iter(self._functions.values()))._preset

    def __call__(self, *args: Any, out: Any = None, **kwargs: Any) -> Any:
        return (self._only or self._function())._called(args, out, kwargs)

    def run(self, inputs: Mapping[str, Any], out: Any = None, function: Optional[str] = None) -> dict[str, Value]:
        """The outputs by name, for inputs by name."""
        return self._function(function).run(inputs, out)

    def graph(self, after: str = "import", *, shapes: Optional[Mapping[str, Sequence[int]]] = None,
              dims: Optional[Mapping[str, int]] = None) -> str:
        """The graph after a phase or pass of the compiler (import, optimize, lower, …) as text.

        Sizes that the model leaves open and `compile` did not get are needed here.
        """
        return self._core.text(after, _shapes(shapes), dict(dims or {}), on_program=False)

    def program(self, after: str = "memory", *, shapes: Optional[Mapping[str, Sequence[int]]] = None,
                dims: Optional[Mapping[str, int]] = None) -> str:
        """The instructions after a phase or pass (irgen, fuse, memory) as text."""
        return self._core.text(after, _shapes(shapes), dict(dims or {}), on_program=True)

    def export(self, path: Union[str, os.PathLike], after: str = "optimize", *,
               shapes: Optional[Mapping[str, Sequence[int]]] = None, dims: Optional[Mapping[str, int]] = None,
               external_data: bool = False) -> None:
        """Writes the graph after a phase or pass as an ONNX file; `external_data` puts tensors into one beside it."""
        self._core.export(after, _shapes(shapes), dict(dims or {}), os.fspath(path), external_data)

    def __repr__(self) -> str:
        if len(self._functions) == 1:
            return f"<aglow.Model {self._name}{self._function()._signature()}>"
        return f"<aglow.Model {self._name} with {', '.join(self._functions)}>"


def _told(value: Any) -> str:
    return f"{value.dtype.name}{list(value.shape)}" if isinstance(value, np.ndarray) else type(value).__name__


def _pair(value: Any, spec: TensorSpec) -> tuple[str, Any]:
    return _arrays.to_map(value, spec._keys, spec._kind) if spec.is_map else _arrays.to_pair(value, spec._kind)


def _value(result: Any) -> Value:
    if isinstance(result, tuple):
        return _arrays.from_pair(*result)
    if result is None or isinstance(result, dict):
        return result
    return [item if isinstance(item, dict) else _arrays.from_pair(*item) for item in result]


def _shapes(shapes: Optional[Mapping[str, Sequence[int]]]) -> dict[str, list[int]]:
    return {name: [int(size) for size in shape] for name, shape in (shapes or {}).items()}


_PRECISIONS = ("float", "int8", "bf16", "int8-weights", "int4-weights")


def compile(model: Any, *, init: Any = None, backend: Optional[str] = None,
            shapes: Optional[Mapping[str, Sequence[int]]] = None,
            dims: Optional[Mapping[str, Union[int, Sequence[int]]]] = None, pad: bool = False,
            values: Optional[Mapping[str, Any]] = None, threads: Optional[int] = None, contexts: int = 0,
            queue: Optional[int] = None, cache: Union[str, os.PathLike, bool, None] = None,
            memory_limit: Optional[int] = None, opt_level: int = 3, disable: Iterable[str] = (),
            strict: bool = False, precision: str = "float", profile: Any = None, calibration: str = "",
            schema: str = "", keep_float: Iterable[str] = ()) -> Model:
    """Reads a model and compiles it.

    model         path of an ONNX file, a Caffe2 net, a text form (.graph, .ir) or a package (.aglow); the bytes of an
                  ONNX file or Caffe2 net; or a ModelProto
    init          the net that gives a Caffe2 net its weights, as a path or bytes like the model
    backend       "cpu", "interpreter", "opencl" or "opencl:PLATFORM/DEVICE"; by default AGLOW_BACKEND, or "cpu"
                  wherever it is built
    shapes, dims  sizes that the model leaves open: {"image": (1, 3, 224, 224)}, {"batch": 4}. Other sizes are compiled
                  for when arrays come with them. Several sizes, {"batch": (1, 4, 16)}, are all compiled at once
    pad           fills inputs up to the next of several sizes, and cuts the outputs back
    values        inputs that are always the same, and then need not be given
    threads       at most this many in one run, by default AGLOW_THREADS, or one per processor; outputs stay the same
    contexts      runs of several threads that go side by side, by default two per processor; others wait
    queue         callers that may wait for one of them to end, by default 1024; one more is a ResourceError
    cache         folder where compiled models are kept; by default the user's own, False: none
    memory_limit  bytes; models that need more are refused (by default the machine's memory)
    opt_level     how hard to optimize generated code: 0 to 3
    disable       names of passes and rules of the compiler to leave out
    strict        refuses models that depart from the standard; without it they are accepted where the meaning is plain,
                  with an aglow.ModelWarning
    precision     "float", as the model has it; "int8" where the profile has ranges; or without a profile "bf16", or
                  "int8-weights" and "int4-weights", which leave all but the weights of matrix products as it is
    profile       what aglow.profile gave, or the path of a file that it or `aglow profile` wrote
    calibration   how ranges are chosen: "min-max", "percentile=99.99", "mse" or "kl"
    schema        how integers stand for values: "asymmetric", "symmetric", "symmetric-uint8", "power-of-two" or
                  "symmetric-int16"
    keep_float    names of nodes and operators that stay in floats

    Raises an aglow.Error with all that is wrong with the model.
    """
    if precision not in _PRECISIONS:
        raise _usage("E101", f"precision is '{precision}'; expected one of {', '.join(_PRECISIONS)}")
    if precision == "int8" and profile is None:
        raise _usage("E101", "precision 'int8' needs a profile", "aglow.profile makes one")
    if precision != "int8" and (profile is not None or calibration or schema):
        raise _usage("E101", "profile, calibration and schema are for precision 'int8'")
    if precision == "float" and tuple(keep_float):
        raise _usage("E101", "keep_float is for other precisions than 'float'")
    core, name = _read(model, init)
    made = Model(core, name, values or {})
    several, single = {}, {}
    for dim, size in (dims or {}).items():
        if isinstance(size, Sequence):
            several[dim] = [int(one) for one in size]
        else:
            single[dim] = int(size)
    if pad and not several:
        raise _usage("E101", "pad needs sizes to fill up to", "name them with dims={'batch': (1, 4, 16)}")
    notes = core.open(backend=backend or os.environ.get("AGLOW_BACKEND", ""),
                      threads=_checked(threads, "threads") if threads else _threads(),
                      contexts=_within(contexts, "contexts", _core.max_contexts),
                      queue=_core.default_queue if queue is None else _within(queue, "queue", 2**31 - 1),
                      cache="off" if cache is False else "" if cache is None or cache is True else os.fspath(cache),
                      memory_limit=memory_limit or 0, shapes=_shapes(shapes), dims=single, prepared=several, pad=pad,
                      values=made._preset(), opt_level=opt_level, disable=list(disable), strict=strict,
                      precision=precision, profile=_profile_text(profile), calibration=calibration, schema=schema,
                      keep_float=list(keep_float))
    for note in notes:
        warnings.warn(note, RuntimeWarning, stacklevel=2)
    _warn(core, stacklevel=3)
    return made


def _read(model: Any, init: Any = None) -> tuple[_core.Model, str]:
    """A model, and what it is called."""
    if not isinstance(model, (str, os.PathLike)):
        return _core.parse(_bytes(model), None if init is None else _bytes(init)), "model"
    if not isinstance(init, (str, os.PathLike, type(None))):
        raise _usage("E101", "a model that is a path has an init net that is a path")
    path = os.fspath(model)
    return _core.read(path, os.fspath(init) if init is not None else ""), os.path.basename(path)


def _profile_text(profile: Any) -> str:
    if profile is None:
        return ""
    from ._profile import Profile
    return (profile if isinstance(profile, Profile) else Profile.load(profile)).text


def load(path: Union[str, os.PathLike], *, threads: Optional[int] = None, contexts: int = 0,
         queue: Optional[int] = None, memory_limit: Optional[int] = None) -> Model:
    """Opens a package (.aglow), which `aglow compile --emit package` wrote: nothing is compiled, and the weights stay in
    the file, which all processes that open it share. The arguments are those of compile.

    Raises an aglow.Error where the file is damaged, or is not for this version or processor.
    """
    if not os.fspath(path).endswith(".aglow"):
        raise _usage("E101", f"'{os.fspath(path)}' is not a package, which ends with .aglow", "aglow.compile takes models")
    return compile(path, backend="cpu", threads=threads, contexts=contexts, queue=queue, memory_limit=memory_limit)


def _bytes(model: Any) -> bytes:
    if isinstance(model, (bytes, bytearray, memoryview)):
        return bytes(model)
    if hasattr(model, "SerializeToString"):
        return model.SerializeToString()
    raise _usage("E101", f"a model is a path, bytes or a ModelProto, not {type(model).__name__}")


def _threads() -> int:
    word = os.environ.get("AGLOW_THREADS", "0")
    if not word.isdecimal():
        raise _usage("E101", f"AGLOW_THREADS is '{word}', not a number")
    return _checked(int(word), "AGLOW_THREADS")


def _within(number: int, name: str, most: int) -> int:
    if not 0 <= number <= most:
        raise _usage("E101", f"{name} is {number}; expected 0 to {most}")
    return number


def _checked(threads: int, name: str) -> int:
    if not 0 <= threads <= _core.max_threads:
        raise _usage("E101", f"{name} is {threads}; expected 1 to {_core.max_threads}, or 0 for one per processor")
    return threads


def backends() -> list[str]:
    """The names of the backends in this build, the fastest last."""
    return _core.backends()


def ops() -> list[str]:
    """The ONNX operators that can be compiled; those of other domains as domain::name."""
    return _core.operators()


def explain(code: str) -> str:
    """What a code such as "E301" means."""
    for name, exit_code, title, explanation in _core.codes():
        if name == code.upper():
            return f"{name}: {title} (exit code {exit_code})\n\n{explanation}"
    raise _usage("E101", f"there is no code '{code}'", "aglow.explain('E301')")
