"""Cases: the files of a mutant, and executions of the program, the Python module and the C interface on them."""
import dataclasses
import io
import re

import numpy as np
from onnx import TensorProto, helper

import byte_mutations
import model_mutations
from seeds import proto_of

BACKENDS = ("interpreter", "cpu")
MOST_ELEMENTS = 1 << 12


@dataclasses.dataclass
class Execution:
    tool: str  # aglow, c, python
    args: list


@dataclasses.dataclass
class Case:
    seed: str
    files: dict  # by name, the model first
    executions: list

    @property
    def model(self):
        return next(iter(self.files))


# ---- inputs

NUMPY_KINDS = {"f32": "f4", "f64": "f8", "f16": "f2", "bf16": "u2", "i64": "i8", "i32": "i4", "i16": "i2", "i8": "i1",
               "u64": "u8", "u32": "u4", "u16": "u2", "u8": "u1", "bool": "?", "qi8": "i1", "qu8": "u1"}


def array_of(random, dtype, shape):
    generator = np.random.default_rng(random.randrange(1 << 32))
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        array = generator.uniform(-1, 1, shape).astype(dtype)
        if array.size and random.random() < 0.15:
            with np.errstate(over="ignore"):  # f16 has no 1e30
                array.flat[random.randrange(array.size)] = random.choice([np.nan, np.inf, -np.inf, 0, -0.0, 1e30])
        return array
    if dtype.kind == "b":
        return generator.integers(0, 2, shape).astype(bool)
    if dtype.kind in "iu":
        high = random.choice([2, 2, 4, 100])
        return generator.integers(-1 if dtype.kind == "i" and random.random() < 0.2 else 0, high, shape).astype(dtype)
    return np.array([b"a", b"", b"\xc3\xa9 b"], "S")[generator.integers(0, 3, shape)]


def npy(array):
    file = io.BytesIO()
    np.save(file, array, allow_pickle=False)
    return file.getvalue()


def odd_npy(random, array):
    """A file that is damaged, or does not fit."""
    way = random.randrange(7)
    if way == 0:
        return byte_mutations.bytes_mutant(npy(array), random, npy(array.T))
    if way == 1:
        dtype = random.choice(["f8", "f4", "i8", "u1", ">f4", "c8"])
        return npy(array if array.dtype.kind == "S" else array.astype(dtype))
    if way == 2:
        return npy(array[None])
    if way == 3:
        return npy(np.asfortranarray(array))
    if way == 4:
        return npy(np.zeros(random.choice([(), (0,), (3, 0), (2, 3)]), array.dtype))
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({random.choice([-1, 1 << 62, 10 ** 30, 0])},), }}\n"
    return b"\x93NUMPY\x01\x00" + (len(header)).to_bytes(2, "little") + header.encode() + b"\0" * 8


def shape_with(random, dims, sizes):
    shape = [sizes.setdefault(d, random.choice([1, 2, 3])) if not isinstance(d, int) else d for d in dims]
    return [extent if 0 <= extent <= MOST_ELEMENTS else random.choice([1, 2]) for extent in shape]


def inputs_of_onnx(model, random):
    """[(name, ONNX's element type, dtype, shape)] of the inputs that are tensors and have no default."""
    preset, sizes, found = {tensor.name for tensor in model.graph.initializer}, {}, []
    for value in model.graph.input:
        tensor = value.type.tensor_type
        if value.name in preset or value.type.WhichOneof("value") != "tensor_type":
            continue
        try:
            dtype = np.dtype(helper.tensor_dtype_to_np_dtype(tensor.elem_type))
        except (KeyError, TypeError, ValueError):
            dtype = np.dtype("f4")
        if tensor.elem_type == TensorProto.STRING:
            dtype = np.dtype("S1")
        elif dtype.isbuiltin != 1:
            dtype = np.dtype("u2" if dtype.itemsize == 2 else "i1" if dtype.name.startswith("int") else "u1")
        dims = [d.dim_value if d.HasField("dim_value") else d.dim_param or f"{value.name} {i}"
                for i, d in enumerate(tensor.shape.dim)]
        shape = shape_with(random, dims, sizes)
        if np.prod(shape, dtype=float) <= MOST_ELEMENTS:
            found.append((value.name, tensor.elem_type, dtype, shape))
    return found


PLACEHOLDER = re.compile(r'(?:placeholder @("[^"]*"|\S+) : |%("[^"]*"|\S+) = placeholder )(\w+)\[([\d,]*)\]')
SAVED = re.compile(r'Save\([^,]*, @("[^"]*"|[^)]+)\)')
SIGNATURE = re.compile(r"^program @.*$", re.M)
OUTPUT = re.compile(r'@out %("[^"]*"|[^,)]+)')


def inputs_of_text(data):
    """The placeholders that no node saves to, and that no signature of a program has as an output."""
    found, text = [], data.decode("utf-8", "replace")
    written = SAVED.findall(text) + OUTPUT.findall("\n".join(SIGNATURE.findall(text)))
    for in_graph, in_program, kind, dims in PLACEHOLDER.findall(text):
        shape = [int(extent) for extent in dims.split(",") if extent]
        name = in_graph or in_program
        if name not in written and kind in NUMPY_KINDS and np.prod(shape, dtype=float) <= MOST_ELEMENTS:
            found.append((name.strip('"'), 1, np.dtype(NUMPY_KINDS[kind]), shape))
    return found


def inputs_of(seed, data, random):
    if seed.kind in ("graph", "ir"):
        return inputs_of_text(data)
    if seed.kind == "onnx":
        model = proto_of(data)
        return inputs_of_onnx(model, random) if model is not None else []
    return [(name, 1, np.dtype(dtype), list(shape)) for name, dtype, shape in seed.inputs]


# ---- options

PHASES = ["import", "differentiate", "optimize", "lower", "optimize-core", "layout", "schedule", "irgen", "plan", "fuse", "memory",
          "chain", "share", "simplify", "dead-code", "place", "moves", "pack-weights", "min-peak-memory", "nothing"]
ODD_SIZES = ["0", "1", "2", "3", "17", "-1", "", "x", "1.5", "1e3", str(1 << 31), str(1 << 62), str(1 << 64), " 1"]
CPUS = ["native", "x86-64", "x86-64-v2", "x86-64-v3", "generic", "nothing", "cortex-a76", ""]
FEATURES = ["-avx512f", "-avx2", "-avx", "+sse4.2", "-fma", "+nothing", "avx2", ",", "-sse2"]
TARGETS = ["x86_64-linux-gnu", "aarch64-linux-gnu", "riscv64-linux-gnu", "nothing", "", "x86_64-pc-windows-msvc",
           "wasm32-unknown-unknown", "armv7-linux-gnueabihf", "i686-linux-gnu", "s390x-linux-gnu"]


def shared_option(random, inputs):
    names = [name for name, *_ in inputs] + ["x", "batch", "n", ""]
    shape = "x".join(random.choice(ODD_SIZES[:5] + ODD_SIZES) for _ in range(random.randrange(4)))
    return random.choice([
        lambda: [f"--shape={random.choice(names)}={shape}"],
        lambda: [f"--dim={random.choice(['batch', 'n', 'rows', 'N', ''])}={random.choice(ODD_SIZES)}"],
        lambda: [f"--value={random.choice(names)}={random.choice(['in0.npy', 'in1.npy', 'm.onnx', '', '.'])}"],
        lambda: ["-O", random.choice(["0", "1", "2", "3", "4", "-1", "x"])],
        lambda: ["--lanes", random.choice(["0", "1", "4", "8", "16", "3", "-1", "64", "99999999999"])],
        lambda: ["--stop-after", random.choice(PHASES)],
        lambda: ["--start-from", random.choice(PHASES)],
        lambda: ["--print-after", random.choice(PHASES)],
        lambda: ["--disable", random.choice(PHASES + ["winograd", "fuse,share", ","])],
        lambda: ["--fuse"],
        lambda: ["--verify-each"],
        lambda: ["--timing"],
        lambda: ["--opt-size"],
        lambda: ["--cpu", random.choice(CPUS)],
        lambda: [f"--features={random.choice(FEATURES)}"],
        lambda: ["--code-model", random.choice(["small", "medium", "large", "tiny"])],
        lambda: ["--dump", "dump"],
    ])()


def some_options(random, inputs, chance):
    out = []
    while random.random() < chance:
        out += shared_option(random, inputs)
    return out


def thread_option(random):
    return ["--threads", random.choice(["1", "2", "3", "8", "0", "-1", "x", "1025"])] if random.random() < 0.15 else []


def run_args(random, case, inputs, backend, options):
    words = ["run", case.model, "--backend", backend, *options]
    words += [f"--input={name}=in{i}.npy" for i, (name, *_) in enumerate(inputs)]
    return words + (["-o", "out"] if random.random() < 0.8 else [])


def emit(random, *kinds):
    return ",".join(random.sample(kinds, min(len(kinds), random.choice([1, 1, 1, 2]))))


def verify_args(random, case, inputs, options):
    words = ["verify", case.model, *options, "--seed", str(random.randrange(100))]
    words += ["--backend", random.choice(["cpu,interpreter", "cpu", "interpreter,cpu", "cpu:O0,cpu:O3", "cpu:O9,,"])]
    return words + random.choice([[], [], [], ["--bisect"], ["--json"], ["--against", "out"],
                                  ["--atol", random.choice(["nan", "-1", "0"])]])


def bench_args(random, case, inputs, options):
    words = ["bench", case.model, "--backend", random.choice(BACKENDS), *options]
    words += random.choice([["--runs", "1"], ["--runs", "2"], ["--seconds", "0"], ["--runs", "0"],
                            ["--seconds", random.choice(["-1", "nan", "inf"])]])
    return words + random.choice([[], ["--json"], ["--instructions"], ["--trace", "trace.json"]])


def compile_args(random, case, inputs, options, kinds):
    words = ["compile", case.model, "--emit", emit(random, *kinds), *options, "-o", "out"]
    if random.random() < 0.3:
        words += random.choice([["--weights", "c"], ["-g"], ["--threads"], ["--batch", "1,2"], ["--prefix", "p_"],
                                ["--name", "a b"], ["--name", ""], ["--external-data"],
                                ["--target", random.choice(TARGETS)]])
    return words


def inspect_args(random, case, inputs, options):
    words = ["inspect", case.model, *options]
    views = [[], ["--json"], ["--support"], ["--memory"], ["--memory", "--json"], ["--explain"],
             ["--explain", "--json"], ["--dot", "x.dot"]]
    return words + random.choice(views)


def api_args(random, case, inputs, backend):
    mode = random.choice(["load", "memory", "session", "session-memory"])
    words = [mode, case.model, str(random.randrange(1 << 30)), backend]
    words += [f"input.{name}={kind}:{'x'.join(map(str, shape))}" for name, kind, _, shape in inputs]
    while random.random() < 0.3:
        size = random.choice(ODD_SIZES)
        words.append(random.choice([f"dim.batch={size}", f"shape.x={size}x2", "threads=2", "threads=-1", "threads=1000000000", "limit=4096",
                                    "pad=1", "prepare.batch=1x4", "cache=cache"]))
    return words


def python_args(random, case, inputs, backend):
    return [case.model, str(random.randrange(1 << 30)), backend]


# ---- cases

TEXT_LIMIT = ["--memory-limit", "256M"]


def executions_of(random, case, inputs, chance):
    """Several on one mutant. Those through LLVM are rarer: they cost ten times the others."""
    options = some_options(random, inputs, chance)
    text = case.model.endswith((".graph", ".ir"))
    init = ["--init", list(case.files)[1]] if len(case.files) > 1 and list(case.files)[1].startswith("init") else []
    common = init + TEXT_LIMIT + options
    threads = thread_option(random)
    out = []

    def add(tool, words):
        out.append(Execution(tool, words))

    both = random.random() < 0.6
    add("aglow", run_args(random, case, inputs, "interpreter", common))
    if both:
        add("aglow", [word if word != "interpreter" else "cpu" for word in out[0].args] + threads)
    if random.random() < 0.5:
        add("aglow", inspect_args(random, case, inputs, common))
    if random.random() < 0.2 and not text:
        add("aglow", verify_args(random, case, inputs, common + threads))
    if random.random() < 0.15:
        add("aglow", bench_args(random, case, inputs, common + threads))
    if random.random() < 0.35:
        add("aglow", compile_args(random, case, inputs, common, ["graph", "ir", "onnx", "dot", "ir-dot"]))
    if random.random() < 0.1:
        add("aglow", compile_args(random, case, inputs, common, ["bundle", "obj", "asm", "llvm"]))
    if random.random() < 0.03:
        add("aglow", compile_args(random, case, inputs, common, ["so"]))
        add("c", ["bundle", "./out/m.so", str(random.randrange(1 << 30)), "cpu"])
    if random.random() < 0.4:
        add("c", api_args(random, case, inputs, random.choice(["interpreter", "interpreter", "cpu"])))
    if random.random() < 0.3:
        add("python", python_args(random, case, inputs, random.choice(["interpreter", "interpreter", "cpu"])))
    return out


def mutant_of(seed, random, donors):
    """The seed's files, one of them changed."""
    files = dict(seed.files)
    donor = random.choice(donors)
    name = seed.model if random.random() < 0.85 else random.choice(list(files))
    other = donor.files[donor.model]
    if name.endswith(".onnx") and random.random() < 0.75:
        mutant = model_mutations.structural_mutant(proto_of(files[name]), random, proto_of(other))
        files[name] = mutant.SerializeToString()
    elif name.endswith((".graph", ".ir", ".pbtxt")):
        files[name] = byte_mutations.text_mutant(files[name], random, other)
    elif name.endswith(".blobs") or random.random() < 0.3:
        files[name] = byte_mutations.bytes_mutant(files[name], random, other)
    else:
        files[name] = byte_mutations.wire_mutant(files[name], random, other)
    return files


WEIGHTS = {"onnx": 60, "graph": 13, "ir": 15, "caffe2": 12}


def make(random, seeds):
    """A case, drawn with `random` alone."""
    kinds = [kind for kind in WEIGHTS if seeds.get(kind)]
    kind = random.choices(kinds, [WEIGHTS[kind] for kind in kinds])[0]
    seed = random.choice(seeds[kind])
    what = random.choices(["model", "arrays", "options"], [88, 5, 7])[0]
    files = mutant_of(seed, random, seeds[kind]) if what == "model" else dict(seed.files)
    case = Case(f"{kind}:{seed.name}:{what}", files, [])
    inputs = inputs_of(seed, case.files[case.model], random)
    for i, (_, _, dtype, shape) in enumerate(inputs):
        array = array_of(random, dtype, shape)
        case.files[f"in{i}.npy"] = odd_npy(random, array) if what == "arrays" else npy(array)
    case.executions = executions_of(random, case, inputs, {"model": 0.15, "arrays": 0.0, "options": 0.6}[what])
    return case
