"""Models compiled: from files, bytes, graphs and texts."""
from __future__ import annotations

import os
import warnings
from typing import Any, Iterable, Mapping, Optional, Sequence, Union

from . import _core
from ._errors import ModelWarning, usage, whole
from ._graph import Graph
from ._model import Model, Path, shape_lists

_PRECISIONS = ("float", "int8", "bf16", "fp16", "int8-weights", "int4-weights")


def compile(model: Any, *, init: Any = None, backend: Optional[str] = None,
            shapes: Optional[Mapping[str, Sequence[int]]] = None,
            dims: Optional[Mapping[str, Union[int, Sequence[int]]]] = None, pad: bool = False,
            values: Optional[Mapping[str, Any]] = None, threads: Optional[int] = None, contexts: int = 0,
            queue: Optional[int] = None, cache: Union[Path, bool, None] = None,
            memory_limit: Optional[int] = None, opt_level: int = 3, disable: Iterable[str] = (),
            strict: bool = False, precision: str = "float", profile: Any = None, calibration: str = "",
            schema: str = "", keep_float: Iterable[str] = (), tune: Union[bool, float] = False,
            f64_pairs: bool = False) -> Model:
    """Reads a model and compiles it.

    model         path of an ONNX file, a Caffe2 net, a text form (.graph, .ir) or a package (.aglow); the bytes of an
                  ONNX file or Caffe2 net; a ModelProto; or an aglow.Graph, as it is now
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
    precision     "float", as the model has it; "int8" where the profile has ranges; or without a profile "bf16", "fp16", or
                  "int8-weights" and "int4-weights", which leave all but the weights of matrix products as it is
    profile       what aglow.profile gave, or the path of a file that it or `aglow profile` wrote
    calibration   how ranges are chosen: "min-max", "percentile=99.99", "mse" or "kl"
    schema        how integers stand for values: "asymmetric", "symmetric", "symmetric-uint8", "power-of-two" or
                  "symmetric-int16"
    keep_float    names of nodes and operators that stay in floats
    tune          for devices: measures which tiles of products are quickest, for so many seconds at most; True: 60
    f64_pairs     for devices: computes f64 as two f32 each, with 48 of their 53 bits and the range of f32; also on a
                  device that has no f64, which else refuses models that compute with it

    Raises an aglow.Error with all that is wrong with the model.
    """
    options = {**locals(), "disable": tuple(disable), "keep_float": tuple(keep_float)}
    del options["model"]
    if precision not in _PRECISIONS:
        raise usage("E101", f"precision is '{precision}'; expected one of {', '.join(_PRECISIONS)}")
    if precision == "int8" and profile is None:
        raise usage("E101", "precision 'int8' needs a profile", "aglow.profile makes one")
    if precision != "int8" and (profile is not None or calibration or schema):
        raise usage("E101", "profile, calibration and schema are for precision 'int8'")
    if precision == "float" and options["keep_float"]:
        raise usage("E101", "keep_float is for other precisions than 'float'")
    if not 0 <= whole(opt_level, "opt_level") <= 3:
        raise usage("E101", f"opt_level is {opt_level}; expected 0 to 3")
    seconds = 60.0 if tune is True else float(tune)
    if not 0 <= seconds < float("inf"):
        raise usage("E101", f"tune is {tune}; expected seconds, from 0 on")
    core, name, source = read(model, init)
    made = Model(core, name, values or {}, (source, options))
    several, single = {}, {}
    for dim, size in made._named_sizes(dims).items():
        if isinstance(size, Sequence) and not isinstance(size, str):
            several[dim] = [whole(one, f"dims['{dim}']") for one in size]
        else:
            single[dim] = whole(size, f"dims['{dim}']")
    if pad and not several:
        raise usage("E101", "pad needs sizes to fill up to", "name them with dims={'batch': (1, 4, 16)}")
    notes = core.open(backend=backend or os.environ.get("AGLOW_BACKEND", ""),
                      threads=checked_threads(threads, "threads") if threads else default_threads(),
                      contexts=_within(contexts, "contexts", _core.max_contexts),
                      queue=_core.default_queue if queue is None else _within(queue, "queue", 2**31 - 1),
                      cache="off" if cache is False else "" if cache is None or cache is True else os.fspath(cache),
                      memory_limit=_within(memory_limit or 0, "memory_limit", 2**63 - 1), shapes=shape_lists(shapes), dims=single, prepared=several, pad=pad,
                      values=made._preset(), opt_level=opt_level, disable=list(options["disable"]), strict=strict,
                      precision=precision, profile=profile_text(profile), calibration=calibration, schema=schema,
                      keep_float=list(options["keep_float"]), tune=seconds, f64_pairs=bool(f64_pairs))
    for note in notes:
        warnings.warn(note, RuntimeWarning, stacklevel=2)
    for text in core.take_warnings():
        warnings.warn(text, ModelWarning, stacklevel=2)
    return made


def parse(text: str, **options: Any) -> Model:
    """Compiles the text of a graph or of instructions, as `str(graph)`, `model.graph()` and `model.program()` give it;
    the options are those of compile. Large constants are not in texts: files keep them."""
    return compile(_Text(text), **options)


class _Text(str):
    """A text form, where compile would take it for a path."""


def read(model: Any, init: Any = None) -> tuple[_core.Model, str, Any]:
    """A model, what it is called, and where it can be read again."""
    if isinstance(model, Graph):
        return _core.model_of(model._core), "graph", None
    if isinstance(model, _Text):
        return _core.parse_text(str(model)), "text", model
    if not isinstance(model, (str, os.PathLike)):
        data = bytes_of(model)
        return _core.parse(data, None if init is None else bytes_of(init)), "model", data
    if not isinstance(init, (str, os.PathLike, type(None))):
        raise usage("E101", "a model that is a path has an init net that is a path")
    path = os.fspath(model)
    return _core.read(path, os.fspath(init) if init is not None else ""), os.path.basename(path), os.path.abspath(path)


def profile_text(profile: Any) -> str:
    """The text of a profile, or of the file that holds one."""
    if profile is None:
        return ""
    from ._profile import Profile
    return (profile if isinstance(profile, Profile) else Profile.load(profile)).text


def load(path: Path, *, threads: Optional[int] = None, contexts: int = 0,
         queue: Optional[int] = None, memory_limit: Optional[int] = None) -> Model:
    """Opens a package (.aglow), which `aglow compile --emit package` wrote: nothing is compiled, and the weights stay in
    the file, which all processes that open it share. The arguments are those of compile.

    Raises an aglow.Error where the file is damaged, or is not for this version or processor.
    """
    if not os.fspath(path).endswith(".aglow"):
        raise usage("E101", f"'{os.fspath(path)}' is not a package, which ends with .aglow", "aglow.compile takes models")
    return compile(path, backend="cpu", threads=threads, contexts=contexts, queue=queue, memory_limit=memory_limit)


def bytes_of(model: Any) -> bytes:
    """The bytes of a model in memory."""
    if isinstance(model, (bytes, bytearray, memoryview)):
        return bytes(model)
    if hasattr(model, "SerializeToString"):
        return bytes(model.SerializeToString())
    raise usage("E101", f"a model is a path, bytes, a ModelProto or an aglow.Graph, not {type(model).__name__}")


def default_threads() -> int:
    """What AGLOW_THREADS says."""
    word = os.environ.get("AGLOW_THREADS", "0")
    if not word.isdecimal():
        raise usage("E101", f"AGLOW_THREADS is '{word}', not a number")
    return checked_threads(int(word), "AGLOW_THREADS")


def _within(number: int, name: str, most: int) -> int:
    if not 0 <= whole(number, name) <= most:
        raise usage("E101", f"{name} is {number}; expected 0 to {most}")
    return number


def checked_threads(threads: int, name: str) -> int:
    """The number, where it is one of threads."""
    if not 0 <= whole(threads, name) <= _core.max_threads:
        raise usage("E101", f"{name} is {threads}; expected 1 to {_core.max_threads}, or 0 for one per processor")
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
    raise usage("E101", f"there is no code '{code}'", "aglow.explain('E301')")
