"""The models that mutants are made of: small ones of the project, of the ONNX suite, and of a folder of models where
there is one. A seed is its files by name; the first is the model."""
import dataclasses
import inspect
import json
import pathlib
import sys

import onnx

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "python")]
LARGEST = 12_000  # bytes of a model: mutations of its structure matter, its size does not


@dataclasses.dataclass
class Seed:
    kind: str  # onnx, graph, ir, caffe2
    name: str
    files: dict
    inputs: list = dataclasses.field(default_factory=list)  # (name, dtype, shape) of nets, which do not say it

    @property
    def model(self):
        return next(iter(self.files))

    @property
    def size(self):
        return sum(map(len, self.files.values()))

    @property
    def network(self):
        """Whether it is one of the few that hold layers with weights, as real models do."""
        return self.name.startswith(("net:", "layout/", "fuse/"))


def built_models():
    """What the Python tests build: models by name."""
    import bundle_models
    import contrib_problems
    import module_models
    from test_contrib_operators import model_of

    for module in (module_models, bundle_models):
        for name, function in vars(module).items():
            if inspect.isfunction(function) and function.__module__ == module.__name__ and all(
                    p.default is not p.empty for p in inspect.signature(function).parameters.values()):
                made = function()
                yield f"net:{name}", made[0] if isinstance(made, tuple) else made
    for number, problem in enumerate(contrib_problems.PROBLEMS):
        yield f"{problem.name}-{number}", model_of(problem)[0]


def built_nets():
    from caffe2_nets import Net, Op, fill
    from caffe2_problems import PROBLEMS

    for number, problem in enumerate(PROBLEMS):
        inputs = [f"in{i}" for i in range(len(problem.operands))]
        outputs = [f"out{i}" for i in range(problem.outputs)]
        init = Net("init", [fill(name, value) for i, (name, value) in enumerate(zip(inputs, problem.operands))
                            if i in problem.fixed])
        net = Net("one", [Op(problem.type, inputs, outputs, problem.args)], inputs, outputs)
        free = [(name, value.dtype.str, value.shape) for i, (name, value) in enumerate(zip(inputs, problem.operands))
                if i not in problem.fixed]
        if number % 3 == 0:
            files = {"m.pbtxt": net.text().encode(), "init.pbtxt": init.text().encode()}
        else:
            files = {"m.pb": net.binary(), "init.pb": init.binary()}
        yield Seed("caffe2", problem.type, files, free)


def onnx_seeds(cases, shared):
    for name, proto in built_models():
        yield Seed("onnx", name, {"m.onnx": proto.SerializeToString()})
    for folder in (ROOT / "docs", ROOT / "examples", ROOT / "tests", cases, shared / "models"):
        for path in sorted(folder.rglob("*.onnx")) if folder.is_dir() else ():
            yield Seed("onnx", f"{path.parent.name}/{path.name}", {"m.onnx": path.read_bytes()})


def text_seeds():
    for path in sorted((ROOT / "tests").rglob("*.graph")) + sorted((ROOT / "tests").rglob("*.ir")):
        files = {f"m{path.suffix}": path.read_bytes()}
        blobs = path.with_suffix(".blobs")
        if blobs.is_file():
            files["m.blobs"] = blobs.read_bytes()
        yield Seed(path.suffix[1:], f"{path.parent.name}/{path.name}", files)


def net_seeds(shared):
    yield from built_nets()
    folder = ROOT / "tests/golden/cli/Inputs"
    yield Seed("caffe2", "golden", {"m.pbtxt": (folder / "caffe2_predict.pbtxt").read_bytes(),
                                    "init.pbtxt": (folder / "caffe2_init.pbtxt").read_bytes()})
    for folder in sorted((shared / "caffe2-models").glob("*/")):
        predict, init = sorted(folder.glob("predict_net.*")), sorted(folder.glob("init_net.*"))
        if predict and init:
            yield Seed("caffe2", folder.name, {"m" + predict[0].suffix: predict[0].read_bytes(),
                                               "init" + init[0].suffix: init[0].read_bytes()})


PROGRAMS = [["--emit", "ir", "--backend", "cpu"], ["--emit", "ir", "--backend", "interpreter"], ["--emit", "graph"],
            ["--emit", "ir", "--stop-after", "fuse"], ["--emit", "ir", "--lanes", "4"],
            ["--emit", "ir", "--cpu", "x86-64"], ["--emit", "graph", "--stop-after", "optimize"]]


def program_seeds(seeds, compile_to, every):
    """What the compiler makes of some of the others: `compile_to(seed, options)` gives the files, or nothing."""
    for number, seed in enumerate(seeds):
        # Networks with weights become packed and fused programs; of operators that stand alone some are enough.
        one = [PROGRAMS[number // every % len(PROGRAMS)]] if number % every == 0 else []
        for options in PROGRAMS if seed.network else one:
            files = compile_to(seed, options)
            for ending in ("ir", "graph"):
                if f"m.{ending}" in files:
                    yield Seed(ending, seed.name, {f"m.{ending}": files.pop(f"m.{ending}"), **files})


def collect(cases, shared, compile_to, every=9):
    """All seeds by kind; `every`: of how many models one also goes in as the program that it becomes."""
    found = [*onnx_seeds(cases, shared), *text_seeds(), *net_seeds(shared)]
    found += program_seeds([seed for seed in found if seed.kind in ("onnx", "graph") and seed.size <= LARGEST * 8],
                           compile_to, every)
    small = [seed for seed in found if seed.size <= LARGEST * (8 if seed.network else 1)]
    kinds = {}
    for seed in small:
        kinds.setdefault(seed.kind, []).append(seed)
    return kinds


def summary(kinds):
    return json.dumps({kind: len(seeds) for kind, seeds in kinds.items()})


def proto_of(data):
    """The bytes as a ModelProto, or None."""
    try:
        proto = onnx.ModelProto()
        proto.ParseFromString(data)
        return proto
    except Exception:  # protobuf's own kinds of exception differ between its implementations
        return None
