"""Compiled models: calls run them, and they tell what the compiler made of them."""
from __future__ import annotations

import difflib
import os
from typing import Any, Mapping, Optional, Sequence, Union

from . import _core
from ._arrays import as_numpy, to_pair
from ._draw import Svg, escaped, table
from ._errors import usage, whole
from ._function import Function, State, TensorSpec, Value, closed
from ._graph import Graph
from ._reports import Difference, Inspection, Memory, RunProfile, Verification, memories, run_profile

Path = Union[str, "os.PathLike[str]"]
Shapes = Optional[Mapping[str, Sequence[int]]]
Sizes = Optional[Mapping[str, int]]
# What a model was compiled from (None: a graph, which the compiled part still has), and how.
Recipe = tuple[Any, "dict[str, Any]"]


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

    def __init__(self, core: _core.Model, name: str, values: Mapping[str, Any], recipe: Optional[Recipe] = None):
        self._core = core
        self._name = name
        self._recipe = recipe
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
                raise usage("E101", f"the model has {len(self._functions)} functions, and none is named main",
                             f"choose one of {', '.join(self._functions)}")
        if name not in self._functions:
            near = difflib.get_close_matches(str(name), self._functions, 1)
            raise usage("E101", f"the model has no function '{name}'",
                         f"did you mean '{near[0]}'?" if near else f"choose one of {', '.join(self._functions)}")
        return self._functions[name]

    @property
    def name(self) -> str:
        """What it is called: the name of its file."""
        return self._name

    @property
    def inputs(self) -> tuple[TensorSpec, ...]:
        """What the model takes."""
        return self._function().inputs

    @property
    def outputs(self) -> tuple[TensorSpec, ...]:
        """What the model gives."""
        return self._function().outputs

    @property
    def state(self) -> State:
        """What the functions leave for the next run, to be read and set by name."""
        if self._state is None:
            self._state = State(self._core)
        return self._state

    def _sizes(self, dims: Sizes) -> dict[str, int]:
        return {name: whole(size, f"dims['{name}']") for name, size in self._named_sizes(dims).items()}

    def _named_sizes(self, dims: Optional[Mapping[str, Any]]) -> Mapping[str, Any]:
        """The same sizes, if the model leaves sizes of these names open."""
        if not dims:
            return {}
        names = list(dict.fromkeys(dim for function in self._functions.values() for spec in function.inputs
                                   for dim in spec.shape or () if isinstance(dim, str)))
        for name in dims:
            if name not in names:
                near = difflib.get_close_matches(str(name), names, 1)
                raise usage("E102", f"the model has no dimension '{name}'", f"did you mean '{near[0]}'?" if near else
                            f"its inputs leave open: {', '.join(names)}" if names else
                            "its inputs have no sizes with names; shapes gives whole shapes")
        return dims

    def _preset(self) -> dict[str, Any]:
        return next(iter(self._functions.values()))._preset

    def __call__(self, *args: Any, out: Any = None, **kwargs: Any) -> Any:
        function = self._only or self._function()
        if out is None:
            results = function._short(*(function._by_name(args, kwargs) if kwargs else args))
            if results is not NotImplemented:
                return results
        return function._called(args, out, kwargs)

    async def arun(self, *args: Any, out: Any = None, **kwargs: Any) -> Any:
        """A call that other tasks of the event loop go on beside: it runs on a thread of the loop's executor.

            y = await model.arun(x)
        """
        return await self._function().arun(*args, out=out, **kwargs)

    def close(self) -> None:
        """Lets go of code, weights and memory, once runs under way have ended. Calls are faults from then on."""
        for function in self._functions.values():
            function._close()
        self._core, self._state = closed(), None

    def __enter__(self) -> "Model":
        return self

    def __exit__(self, *fault: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        if self._recipe is None:
            raise TypeError("this model does not know where it came from")
        source, options = self._recipe
        if source is None:
            source = Graph(self._core.graph("import", {}, {}))
        return _remade, (source, options, self._name, {name: self.state[name] for name in self.state})

    def run(self, inputs: Mapping[str, Any], out: Any = None, function: Optional[str] = None) -> dict[str, Value]:
        """The outputs by name, for inputs by name."""
        return self._function(function).run(inputs, out)

    def graph(self, after: str = "import", *, shapes: Shapes = None, dims: Sizes = None) -> str:
        """The graph after a phase or pass of the compiler (import, optimize, lower, …) as text.

        Sizes that the model leaves open and `compile` did not get are needed here.
        """
        return self._core.text(after, shape_lists(shapes), self._sizes(dims), on_program=False)

    def program(self, after: str = "memory", *, shapes: Shapes = None, dims: Sizes = None) -> str:
        """The instructions after a phase or pass (irgen, fuse, memory) as text."""
        return self._core.text(after, shape_lists(shapes), self._sizes(dims), on_program=True)

    def draw(self, after: str = "optimize", *, shapes: Shapes = None, dims: Sizes = None, limit: int = 300) -> Svg:
        """The graph after a phase or pass as a picture; of large ones the first nodes."""
        return Graph(self._core.graph(after, shape_lists(shapes), self._sizes(dims))).draw(limit=limit)

    def inspect(self) -> Inspection:
        """What the model is made of."""
        found = self._core.survey()
        known = set(_core.operators())
        unsupported = tuple(name for name in found["operators"] if name not in known) if found["format"] == "ONNX" else ()
        only = self._only or self._functions.get("main")
        return Inspection(self._name, found["format"], only.inputs if only else (), only.outputs if only else (),
                          found["nodes"], found["parameters"], found["operators"], unsupported)

    def memory(self, function: Optional[str] = None, *, shapes: Shapes = None, dims: Sizes = None) -> Memory:
        """What one run of a function needs of memory, and where its buffers lie in the arena."""
        name = self._function(function).name
        return next(row for row in memories(self._core.memory(shape_lists(shapes), self._sizes(dims)))
                    if row.function == name)

    def profile(self, *args: Any, function: Optional[str] = None, runs: int = 10, **kwargs: Any) -> RunProfile:
        """Where the time goes, instruction by instruction, when the model runs on these inputs; medians over the runs.

        State begins as it does in a new model. (Ranges of values, for integers of 8 bits, are aglow.profile's.)
        """
        if whole(runs, "runs") < 1:
            raise usage("E101", f"runs is {runs}; expected 1 or more")
        chosen = self._function(function)
        return run_profile(self._core.profile(chosen.name, chosen._given(args, kwargs), runs))

    def verify(self, *args: Any, against: Any = "interpreter", function: Optional[str] = None, rtol: float = -1.0,
               atol: float = -1.0, **kwargs: Any) -> Verification:
        """Compares the outputs for these inputs with others.

        against     a backend, which computes the same model ("interpreter" is the reference); "onnxruntime", where it is
                    installed; a model or any function that takes the inputs by position; or the arrays expected
        rtol, atol  elements agree where |got - expected| <= atol + rtol * |expected|; by default what rounding in another
                    order may cost in this kind
        """
        chosen = self._function(function)
        given = chosen._named(args, kwargs)
        got = chosen.run(given)
        expected, name = _expected(self, chosen, given, against)
        if len(expected) != len(got):
            raise usage("E102", f"{len(expected)} arrays are expected, the model gives {len(got)}")
        rows = [_difference(spec.name, value, other, rtol, atol)
                for (spec, value, other) in zip(chosen.outputs, got.values(), expected)]
        return Verification(name, tuple(rows))

    def save(self, path: Path, *, shapes: Shapes = None, dims: Sizes = None) -> None:
        """Writes the model, by the path's ending: a package (.aglow), which aglow.load runs without compiling; or its graph
        (.graph) or instructions (.ir) as text, with large constants beside it. `export` writes ONNX files."""
        self._core.save(os.fspath(path), shape_lists(shapes), self._sizes(dims))

    def emit(self, folder: Path, what: str = "bundle", *, name: Optional[str] = None, threads: bool = False,
             weights_in_c: bool = False, target: str = "", cpu: str = "", shapes: Shapes = None,
             dims: Sizes = None) -> None:
        """Writes code for programs without Python into a folder.

        what          "bundle" (object, C header, weights), "so" (shared object), "obj", "asm" or "llvm"
        name          of files and functions; by default that of the model
        threads       code that several threads of the caller share
        weights_in_c  weights as C source instead of a file to map
        target, cpu   for another machine: "aarch64-linux-gnu", "cortex-a76"
        """
        stem = os.path.splitext(self._name)[0] if name is None else name
        self._core.emit(os.fspath(folder), what, stem, threads, weights_in_c, target, cpu, shape_lists(shapes),
                        self._sizes(dims))

    def export(self, path: Path, after: str = "optimize", *,
               shapes: Shapes = None, dims: Sizes = None, external_data: bool = False) -> None:
        """Writes the graph after a phase or pass as an ONNX file; `external_data` puts tensors into one beside it."""
        self._core.export(after, shape_lists(shapes), self._sizes(dims), os.fspath(path), external_data)

    def __repr__(self) -> str:
        if len(self._functions) == 1:
            return f"<aglow.Model {self._name}{self._function()._signature()}>"
        return f"<aglow.Model {self._name} with {', '.join(self._functions)}>"

    def _repr_html_(self) -> str:
        rows = [(function.name, kind, spec.name, spec.type) for function in self._functions.values()
                for kind, specs in (("input", function.inputs), ("output", function.outputs)) for spec in specs]
        return f"<b>aglow.Model {escaped(self._name)}</b>" + table(("function", "", "name", "type"), rows)


def shape_lists(shapes: Shapes) -> dict[str, list[int]]:
    """Shapes as the compiler takes them."""
    return {name: [int(size) for size in shape] for name, shape in (shapes or {}).items()}


def _remade(source: Any, options: dict[str, Any], name: str, state: Mapping[str, Any]) -> Model:
    from ._compile import compile
    model = compile(source, **options)
    model._name = name
    for key, value in state.items():
        model.state[key] = value
    return model


def _expected(model: Model, function: Function, given: Mapping[str, Any], against: Any) -> tuple[list[Any], str]:
    """What others make of the inputs, and who they are."""
    if callable(against):
        made = against(*given.values())
        return list(made) if isinstance(made, (list, tuple)) else [made], getattr(against, "name", "a function")
    if not isinstance(against, str):
        return list(against) if isinstance(against, (list, tuple)) else [against], "the arrays given"
    if model._recipe is None:
        raise usage("E101", "this model does not know where it came from: name arrays to compare with")
    source, options = model._recipe
    if against == "onnxruntime":
        import onnxruntime
        if not isinstance(source, (str, bytes)):
            raise usage("E101", "onnxruntime runs ONNX files")
        session = onnxruntime.InferenceSession(source, providers=["CPUExecutionProvider"])
        return list(session.run(None, {name: as_numpy(value) for name, value in given.items()})), against
    from ._compile import compile
    if source is None:
        source = Graph(model._core.graph("import", {}, {}))
    options = {**options, "backend": against}
    if not against.startswith("opencl"):  # what is said of a device is not said of those it is compared with
        options.update(tune=False, f64_pairs=False)
    other = compile(source, **options)
    return list(other[function.name].run(given).values()), against


def _difference(name: str, got: Any, expected: Any, rtol: float, atol: float) -> Difference:
    if isinstance(got, (list, dict, type(None))) or as_numpy(got).dtype.kind in "OSUT":
        same = repr(got) == repr(expected)
        return Difference(name, same, 0.0, 0.0, 0 if same else 1)
    ok, fault, max_abs, max_rel, beyond = _core.compare(to_pair(got, "any"), to_pair(as_numpy(expected), "any"), rtol,
                                                        atol)
    return Difference(name, ok, max_abs, max_rel, beyond, fault)
