"""Bundles for devices: C files that run a model's kernels by OpenCL alone, compared bit by bit with the backend."""
import pathlib
import re
import shutil

import numpy as np
import onnx
import pytest
from bundle_models import MODELS
from bundles import check, run
from device_bundles import WARNINGS, DeviceBundle
from harness import process
from onnx import TensorProto, helper

HERE = pathlib.Path(__file__).resolve().parent
COUNTER = HERE.parents[1] / "examples" / "counter" / "counter.graph"


@pytest.fixture(scope="module", autouse=True)
def device(program):
    if process.is_sanitized(str(program)):
        pytest.skip("drivers are not run under sanitizers")
    listed = process.run([program, "devices"])
    if listed.code != 0 or "opencl:" not in listed.out:
        pytest.skip("this machine has no OpenCL device")
    if not pathlib.Path("/usr/include/CL/cl.h").is_file() or shutil.which("g++") is None:
        pytest.skip("OpenCL's headers are not installed")


def lstm():
    """Three steps of a layer."""
    random = np.random.default_rng(5)
    weights = {name: random.normal(size=shape).astype(np.float32) / 3
               for name, shape in (("w", (1, 24, 4)), ("r", (1, 24, 6)), ("b", (1, 48)))}
    graph = helper.make_graph(
        [helper.make_node("LSTM", ["x", "w", "r", "b"], ["y"], hidden_size=6)], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [3, 3, 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [3, 1, 3, 6])],
        [onnx.numpy_helper.from_array(value, name) for name, value in weights.items()])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return made, {"x": random.normal(size=(3, 3, 4)).astype(np.float32)}


@pytest.mark.parametrize("name, language", [("convnet", "c99"), ("mlp", "c++"), ("int8", "c99"), ("lstm", "c99")])
def test_bits(program, tmp_path, name, language):
    model, inputs = lstm() if name == "lstm" else MODELS[name]()
    path = tmp_path / f"{name}.onnx"
    onnx.save(model, path)
    words = []
    for key, value in inputs.items():
        np.save(tmp_path / f"{key}.npy", value)
        words += ["--input", f"{key}={tmp_path / key}.npy"]
    check(program, "run", path, "--backend", "opencl", *words, "--output-dir", tmp_path / "expected")
    expected = np.load(tmp_path / "expected" / "0.npy")
    bundle = DeviceBundle(program, tmp_path, path, *(["--dim", "batch=5"] if name == "mlp" else []))
    bundle.build(name, language)
    assert bundle.run(bundle.memory({key.upper(): value for key, value in inputs.items()}), calls=2) == [
        "open 0", "run 0 0", "run 0 0"]
    assert bundle.output("Y", expected) == expected.tobytes()


@pytest.mark.parametrize("how", ["own", "pairs"])
def test_f64(program, tmp_path, how):
    """In pairs they need no device that has them."""
    path, value = tmp_path / "tanh_product.onnx", np.linspace(-2, 2, 12).reshape(3, 4)
    graph = helper.make_graph(
        [helper.make_node("Tanh", ["x"], ["t"]), helper.make_node("MatMul", ["t", "w"], ["y"])], "g",
        [helper.make_tensor_value_info("x", TensorProto.DOUBLE, [3, 4])],
        [helper.make_tensor_value_info("y", TensorProto.DOUBLE, [3, 4])],
        [onnx.numpy_helper.from_array(np.arange(16.0).reshape(4, 4) / 7, "w")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    np.save(tmp_path / "x.npy", value)
    check(program, "run", path, "--backend", "opencl", "--f64", how, "--input", f"x={tmp_path / 'x.npy'}", "--output-dir", tmp_path / "expected")
    expected = np.load(tmp_path / "expected" / "0.npy")
    bundle = DeviceBundle(program, tmp_path, path, "--f64", how)
    host = (tmp_path / "out" / "tanh_product.c").read_text()
    assert f"AGLOW_NEEDS_F64 = {int(how == 'own')}, AGLOW_F64_PAIRS = {int(how == 'pairs')}" in host
    bundle.build("tanh_product")
    assert bundle.run(bundle.memory({"X": value})) == ["open 0", "run 0 0"]
    assert bundle.output("Y", expected) == expected.tobytes()
    np.testing.assert_allclose(expected, np.tanh(value) @ (np.arange(16.0).reshape(4, 4) / 7), rtol=2.0 ** -43)


@pytest.mark.parametrize("name", ["run", "load", "entries", "takes", "kernel_text", "aglow", "calloc", "cl_mem"])
def test_names(program, tmp_path, name):
    """Whatever a model is called, its C file has other names for what is its own, and the header those of the model."""
    onnx.save(MODELS["gather"]()[0], tmp_path / "gather.onnx")
    check(program, "compile", tmp_path / "gather.onnx", "-o", tmp_path, "--emit", "bundle", "--backend", "opencl", "--name", name)
    host, = tmp_path.glob("*.c")
    assert host.stem == {"calloc": "calloc_", "aglow": "m_aglow", "cl_mem": "m_cl_mem"}.get(name, name)
    for compiler in (["gcc", "-std=c99"], ["g++", "-x", "c++"]):
        check(*compiler, *WARNINGS, "-fsyntax-only", host)


def test_what_the_file_defines_is_its_own(program, tmp_path):
    check(program, "compile", COUNTER, "-o", tmp_path, "--emit", "bundle", "--backend", "opencl", "--name", "probe")
    text = (tmp_path / "probe.c").read_text()
    names = set(re.findall(r"^(?:static )?(?:const )?(?:struct )?\w+ \*?(?:const )?(\w+)[(\[]|^#define (\w+)", text, re.M))
    names = {one for row in names for one in row if one}
    names |= {one for row in re.findall(r"^enum {([^}]*)}", text, re.M) for one in re.findall(r"([A-Za-z]\w*)(?: = |,|$)", row.strip())}
    assert {"aglow_run", "aglow_entries", "aglow_kernel_text", "AGLOW_STEPS", "probe_open"} <= names
    assert all(re.match("aglow_|probe|AGLOW_|CL_TARGET|CL_USE", name) for name in names), names


def test_copies_stay_on_the_device(program, tmp_path):
    """A program in which values travel computes the same where all of it lies on the device."""
    random = np.random.default_rng(3)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "v"], ["h"]), helper.make_node("MatMul", ["h", "w"], ["y"])], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 64])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 64])],
        [onnx.numpy_helper.from_array(random.normal(size=(64, 64)).astype(np.float32), name) for name in "vw"])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "two.onnx")
    check(program, "compile", tmp_path / "two.onnx", "-o", tmp_path, "--emit", "ir", "--backend", "opencl@24K")
    assert "copy.start" in (tmp_path / "two.ir").read_text()
    value = random.normal(size=(2, 64)).astype(np.float32)
    np.save(tmp_path / "x.npy", value)
    check(program, "run", tmp_path / "two.onnx", "--backend", "opencl", "--input", f"x={tmp_path / 'x.npy'}", "--output-dir", tmp_path / "expected")
    expected = np.load(tmp_path / "expected" / "0.npy")
    bundle = DeviceBundle(program, tmp_path, tmp_path / "two.ir")
    bundle.build("two")
    assert bundle.run(bundle.memory({"X": value}), calls=2) == ["open 0", "run 0 0", "run 0 0"]
    assert bundle.output("Y", expected) == expected.tobytes()


def test_state_and_functions(program, tmp_path):
    bundle = DeviceBundle(program, tmp_path, COUNTER)
    assert "int counter_add(counter_device *device" in bundle.header and "int counter_reset(" in bundle.header
    bundle.build("counter_add")
    entry = bytearray(bundle.number("ADD_MUTABLE_BYTES"))
    at = bundle.number("ADD_STEP_OFFSET")
    entry[at:at + 4] = np.float32(2).tobytes()
    assert bundle.run(bytes(entry), calls=3) == ["open 0"] + ["run 0 0"] * 3
    state = (tmp_path / "state.bin").read_bytes()
    at = bundle.number("STATE_COUNT_OFFSET")
    assert np.frombuffer(state[at:at + 4], np.float32)[0] == 6
    assert (tmp_path / "again.bin").read_bytes() == state


@pytest.fixture
def gathers(program, tmp_path):
    graph = helper.make_graph(
        [helper.make_node("Gather", ["x", "i"], ["y"])], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 3]), helper.make_tensor_value_info("i", TensorProto.INT64, [2])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 3])])
    path = tmp_path / "gathers.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    bundle = DeviceBundle(program, tmp_path, path)
    bundle.build("gathers")
    return bundle


def test_faults(gathers, tmp_path):
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    good = gathers.memory({"X": x, "I": np.array([3, -1])})
    assert gathers.run(good) == ["open 0", "run 0 0"]
    assert gathers.output("Y", x[[3, 3]]) == x[[3, 3]].tobytes()
    opened, status, words = gathers.run(gathers.memory({"X": x, "I": np.array([1, 4])}))
    assert (opened, status.split()[:2]) == ("open 0", ["run", "1"]) and words == "index 4 lies outside of its axis"
    wrong = tmp_path / "wrong.bin"
    wrong.write_bytes(b"\1" * gathers.number("CONSTANTS_BYTES"))
    assert gathers.run(good, weights=wrong)[0] == "open 4"
    for environment in ({"DEVICE": "no such device"}, {"AGLOW_OPENCL_DEVICE": "77/"}):
        status, words = gathers.run(good, **environment)
        assert status == "open 3" and "no OpenCL device" in words
    (tmp_path / "vendors").mkdir()
    assert gathers.run(good, OCL_ICD_VENDORS=str(tmp_path / "vendors"))[0] == "open 3"
    for number in ("4294967296", "0/4294967296", "18446744073709551616/0"):  # which some type of C takes for 0
        assert gathers.run(good, DEVICE=number)[0] == "open 3"
    assert gathers.run(good, DEVICE="0/0") == ["open 0", "run 0 0"]


def test_new_weights(program, tmp_path):
    """The header notes what the bundle was compiled for."""
    model, _ = MODELS["mlp"]()
    path = tmp_path / "mlp.onnx"
    onnx.save(model, path)
    bundle = DeviceBundle(program, tmp_path, path, "--dim", "batch=5")
    assert "--backend opencl" in re.search(r'#define MLP_OPTIONS "(.*)"', bundle.header).group(1)
    for tensor in model.graph.initializer:
        tensor.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(tensor) + 1, tensor.name))
    onnx.save(model, path)
    check(program, "pack-weights", path, "--for", tmp_path / "out" / "mlp")
    (tmp_path / "new").mkdir()
    DeviceBundle(program, tmp_path / "new", path, "--dim", "batch=5")
    packed, compiled = ((tmp_path / folder / "mlp.weights.bin").read_bytes() for folder in ("out", "new/out"))
    assert packed == compiled


def test_refused(program, tmp_path):
    for words in (["--emit", "so"], ["--emit", "c"], ["--emit", "bundle", "--threads"], ["--emit", "bundle,llvm"]):
        outcome = run(program, "compile", COUNTER, "-o", tmp_path / "out", "--backend", "opencl", *words)
        assert outcome.returncode == 1 and "for devices there is --emit bundle alone" in outcome.stderr
    for words in (["--backend", "opencl", "--device-memory", "1MB"], ["--backend", "opencl@64M"]):
        outcome = run(program, "compile", COUNTER, "-o", tmp_path / "out", "--emit", "bundle", *words)
        assert outcome.returncode == 1 and "has no --device-memory" in outcome.stderr, outcome.stderr
