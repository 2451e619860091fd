"""Devices: what the machine has, and what happens without one, or with one that fails."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import numpy as np
import onnx
import pytest
from bad_models import model, node, zeros
from device_bundles import DeviceBundle
from harness import process
from onnx import TensorProto, helper, numpy_helper

HERE = pathlib.Path(__file__).resolve().parent
COUNTER = HERE.parents[1] / "examples" / "counter" / "counter.graph"


def perceptron(folder):
    """A product with what follows it, and a reduction: three kernels."""
    path = folder / "model.onnx"
    nodes = [node("MatMul", ["image", "image"], outputs=["a"]), node("Relu", ["a"], outputs=["b"]),
             node("Softmax", ["b"])]
    made = model(nodes, {"image": zeros(20, 20)})
    path.write_bytes(made if isinstance(made, bytes) else made.SerializeToString())
    np.save(folder / "x.npy", np.linspace(-1, 1, 400, dtype=np.float32).reshape(20, 20))
    return path


@pytest.fixture
def run(program, tmp_path):
    path = perceptron(tmp_path)

    def call(backend, out="out", **environment):
        outcome = process.run([program, "run", path, "--backend", backend, "--input", f"image={tmp_path / 'x.npy'}",
                               "--output-dir", tmp_path / out], timeout=120,
                              env={**os.environ, "AGLOW_CACHE_DIR": "off", **environment})
        assert "fake OpenCL" not in outcome.err  # nothing is left behind, whatever happens
        return outcome

    return call


@pytest.fixture
def no_drivers(tmp_path):
    folder = tmp_path / "vendors"
    folder.mkdir()
    return {"OCL_ICD_VENDORS": str(folder)}


@pytest.fixture(scope="session")
def fake(tmp_path_factory):
    """fake(how): the environment in which OpenCL has one device that fails so."""
    folder = tmp_path_factory.mktemp("fake")
    subprocess.run(["gcc", "-shared", "-Wall", "-Wextra", "-Werror", "-fPIC", "-O1", HERE / "fake_opencl.c", "-o", folder / "libOpenCL.so.1"], check=True)
    return lambda how: {"LD_LIBRARY_PATH": str(folder), "FAKE_OPENCL": how}


def test_devices_of_the_fake(program, fake):
    outcome = process.run([program, "devices", "--json"], env={**os.environ, **fake("")})
    assert outcome.code == 0, outcome.err
    device, = json.loads(outcome.out)["devices"]
    assert device["backend"] == "opencl:0/0" and device["name"] == "fake device" and device["f64"]
    assert device["platform_version"] == "OpenCL 1.2 fakes" and device["vendor"] == "Fakers"
    assert device["extensions"] == ["cl_khr_none", "cl_khr_fp64", "cl_khr_subgroups"] and "peak_gflops" not in device
    text = process.run([program, "devices"], env={**os.environ, **fake("")}).out
    assert "opencl:0/0" in text and "fake device" in text and "peak not measured" in text
    assert "cl_khr_fp64 cl_khr_subgroups\n" in text
    assert "1 compute units at 1000 MHz" in text and "kernels as source\n" in text and device["il"] == ""


def test_names_of_any_bytes(program, fake):
    """What drivers say need be no UTF-8."""
    listed = process.run([program, "devices", "--json"], env={**os.environ, **fake("bytes")})
    assert listed.code == 0 and json.loads(listed.out)["devices"][0]["name"] == "GPU ?  x", listed.err


def test_names_in_headers(program, fake, tmp_path):
    """What drivers say may end a comment or a string of C."""
    made = process.run([program, "compile", products(tmp_path, [(64, 64)], 2), "--backend", "opencl", "--emit", "bundle", "-o", tmp_path],
                       timeout=120, env={**os.environ, **fake("quotes"), "AGLOW_CACHE_DIR": "off"})
    assert made.code == 0, made.err
    header = (tmp_path / "products.h").read_text()
    assert ' * target    OpenCL, kernels chosen for Weird "GPU"' in header and " * needs " not in header
    (tmp_path / "says.c").write_text('#include <stdio.h>\n#include "products.h"\nint main(void) { return puts(PRODUCTS_CPU) < 0; }\n')
    subprocess.run(["gcc", "-std=c99", "-Wall", "-Werror", f"-I{tmp_path}", tmp_path / "says.c", "-o", tmp_path / "says"], check=True)
    assert subprocess.run([tmp_path / "says"], capture_output=True, text=True, check=True).stdout == 'Weird "GPU" */ 1\n'


def test_devices_tell_what_they_know(program, fake):
    outcome = process.run([program, "devices"], env={**os.environ, **fake("no-clock,spirv:4")})
    assert "1 compute units, groups of" in outcome.out and "kernels as source or SPIR-V_1.4\n" in outcome.out


def test_a_device_that_tells_nothing_of_groups(program, run, fake):
    assert run("opencl", **fake("no-groups")).code == 0
    assert process.run([program, "devices", "--measure"], env={**os.environ, **fake("no-groups")}).code == 0


def test_a_peak_is_kept(program, fake, tmp_path):
    environment = {**os.environ, **fake(""), "AGLOW_CACHE_DIR": str(tmp_path / "cache"),
                   "FAKE_OPENCL_LOG": str(tmp_path / "log")}
    listed = [process.run([program, "devices", "--json", *words], env=environment) for words in (["--measure"], [], ["--measure"])]
    assert all(outcome.code == 0 and "fake OpenCL" not in outcome.err for outcome in listed)
    peaks = [json.loads(outcome.out)["devices"][0]["peak_gflops"] for outcome in listed]
    assert peaks[0] > 0 and peaks[1] == pytest.approx(peaks[0], rel=1e-5) and peaks[2] >= peaks[1]
    assert (tmp_path / "log").read_text().splitlines().count("source") == 1


def test_kernels_that_are_built_when_they_are_launched(program, fake):
    """As PoCL does: the time of the first launch is no measure."""
    peaks = []
    for how in ("", "builds-late"):
        outcome = process.run([program, "devices", "--measure", "--json"], timeout=120,
                              env={**os.environ, **fake(how), "AGLOW_CACHE_DIR": "off"})
        device = json.loads(outcome.out)["devices"][0]
        peaks.append((device["peak_gflops"], device["peak_gbytes_per_s"]))
    assert peaks[1] == pytest.approx(peaks[0])


def test_no_driver(program, run, no_drivers):
    if process.is_sanitized(str(program)):
        pytest.skip("what the loader leaves behind is not ours")
    for outcome in (process.run([program, "devices"], env={**os.environ, **no_drivers}), run("opencl", **no_drivers)):
        assert outcome.code == 6
        assert outcome.err.startswith("error[E601]") and ("no platform" in outcome.err or "loader" in outcome.err)


@pytest.mark.parametrize("how, code, words", [
    ("no-platform", 6, "no platform"),
    ("no-device", 6, "PoCL none where it cannot write to its cache, ~/.cache/pocl or the folder in POCL_CACHE_DIR"),
    ("small", 4, "one buffer of the device 0/0 (fake device) has at most 1000"),
    ("memory", 4, "clCreateBuffer failed with CL_MEM_OBJECT_ALLOCATION_FAILURE"),
    ("resources", 4, "clEnqueueNDRangeKernel failed with CL_OUT_OF_RESOURCES"),
    ("lost", 6, "clEnqueueNDRangeKernel failed with CL_INVALID_COMMAND_QUEUE"),
    ("lost:2", 6, "clEnqueueNDRangeKernel failed with CL_INVALID_COMMAND_QUEUE"),
    ("lost-waiting", 6, "clFinish failed with CL_OUT_OF_RESOURCES"),
    ("lost-waiting:2", 6, "clFinish failed with CL_OUT_OF_RESOURCES"),
    # Where the device has failed, no memory for the next command is not what is wrong.
    ("resources,lost-waiting:2", 6, "clFinish failed with CL_OUT_OF_RESOURCES"),
    *[(f"memory:{call}", 4, "clCreateBuffer failed with CL_MEM_OBJECT_ALLOCATION_FAILURE") for call in (2, 3)],
])
def test_faults(run, fake, tmp_path, how, code, words):
    outcome = run("opencl", **fake(how))
    assert outcome.code == code, outcome.err
    assert words in outcome.err
    assert not (tmp_path / "out").exists() or not list((tmp_path / "out").iterdir())


@pytest.mark.parametrize("how", ["memory:4", "memory:4,discrete"])
def test_memory_that_only_saves_time(run, fake, how):
    """Without pinned memory, or where the caller's cannot be used as it lies, the driver copies."""
    assert run("opencl", **fake(how)).code == 0


def products(folder, shapes, batch):
    """x [batch, 64] through products by constants of these shapes."""
    path, random = folder / "products.onnx", np.random.default_rng(1)
    weights = [numpy_helper.from_array(random.standard_normal(shape).astype(np.float32), f"w{i}") for i, shape in enumerate(shapes)]
    names = ["x", *(f"v{i}" for i in range(len(shapes) - 1)), "y"]
    graph = helper.make_graph([helper.make_node("MatMul", [a, w.name], [b]) for a, b, w in zip(names, names[1:], weights)], "products",
                              [helper.make_tensor_value_info("x", TensorProto.FLOAT, [batch, shapes[0][0]])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [batch, shapes[-1][1]])], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    return path


def calls(log, *kinds):
    """The bytes of each call of these kinds, in order."""
    rows = [line.split() for line in log.read_text().splitlines()]
    return [int(row[1]) for row in rows if row[0] in kinds]


def test_large_weights_have_several_buffers(program, fake, tmp_path):
    path, log = products(tmp_path, [(64, 640), (640, 64), (64, 320)], 2), tmp_path / "log"
    np.save(tmp_path / "x.npy", np.ones((2, 64), np.float32))

    def run(how, *options):
        log.write_text("")
        return process.run([program, "run", path, "--backend", "opencl", "--input", f"x={tmp_path / 'x.npy'}", *options], timeout=120,
                           env={**os.environ, **fake(how), "AGLOW_CACHE_DIR": "off", "FAKE_OPENCL_LOG": str(log)})

    assert run("discrete").code == 0
    assert 64 * 640 * 4 * 2 + 64 * 320 * 4 in calls(log, "buffer")
    assert run("discrete,buffer:300000").code == 0
    assert max(calls(log, "buffer")) <= 300000 and 64 * 640 * 4 in calls(log, "buffer")
    refused = run("discrete,buffer:100000")
    assert refused.code == 4 and "163840 bytes are needed for" in refused.err and "(weights)" in refused.err
    assert not calls(log, "buffer") and "kernel" not in log.read_text()
    # What the driver says of a kernel that it has built is known before anything runs as well.
    for how, words in [("group:3", "items in a group; the device 0/0 (fake device) has 3"),
                       ("local:40000", "a kernel needs 40000 bytes of local memory; the device 0/0 (fake device) has 32768")]:
        refused = run(how)
        assert refused.code == 4 and words in refused.err and "node " in refused.err, refused.err
        assert "kernel" not in log.read_text()
    # What a device of its own memory has no room for travels, one run at a time, from memory that is pinned.
    assert run("discrete,all:250000").code == 0
    assert sum(calls(log, "buffer")) <= 250000
    travelling = sum(calls(log, "write")) - sum(calls(log, "pageable"))
    assert travelling >= 64 * 640 * 4 and sum(calls(log, "pinned")) >= travelling
    # Without such memory it travels as well.
    assert run("discrete,all:250000,no-pinned").code == 0
    assert calls(log, "pageable") == calls(log, "write")
    # Nor is there more room where a user allows more than there is.
    allowed = run("discrete,all:250000", "--device-memory", "1G")
    assert allowed.code == 0 and sum(calls(log, "buffer")) <= 250000, allowed.err
    bundle = [program, "compile", path, "--backend", "opencl", "--emit", "bundle", "-o", tmp_path / "bundle"]
    # A bundle's weights are one buffer, which has to lie on the device whole, whether or not it is the host's memory.
    weights = (64 * 640 * 2 + 64 * 320) * 4
    for how, words in [("discrete,all:250000", "bytes are needed for weights in one buffer, which has at most 250000"),
                       ("discrete,buffer:300000", "bytes are needed for weights in one buffer, which has at most 300000"),
                       ("buffer:300000", "bytes are needed for weights in one buffer, which has at most 300000"),
                       (f"all:{weights + 5000},buffer:{weights + 1000}", f"bytes are needed, and it has {weights + 5000}")]:
        refused = process.run(bundle, timeout=120, env={**os.environ, **fake(how), "AGLOW_CACHE_DIR": "off"})
        assert refused.code == 4 and "has no room for all of" in refused.err and words in refused.err, refused.err
        assert not (tmp_path / "bundle").exists()
    whole = process.run(bundle, timeout=120, env={**os.environ, **fake(f"all:{weights + 20000}"), "AGLOW_CACHE_DIR": "off"})
    assert whole.code == 0, whole.err
    refused = run("discrete,all:9000")
    assert refused.code == 4 and "bytes are needed together, even with all weights" in refused.err
    # Mesa tells of fewer than it runs.
    assert run("group:3,rusticl").code == 0


def test_a_device_without_f64(program, fake, tmp_path):
    """What has no f64 runs, also where sums are taken in it; what has some is refused by node, or computed in pairs."""
    path = products(tmp_path, [(64, 64)], 2)
    for kind, dtype, code in [("Relu", TensorProto.FLOAT, 0), ("Softmax", TensorProto.FLOAT, 0), ("Cast", TensorProto.FLOAT16, 0),
                              ("Cast", TensorProto.INT64, 0), ("Cast", TensorProto.UINT8, 0), ("Cast", TensorProto.BFLOAT16, 0),
                              ("Cast", TensorProto.DOUBLE, 3)]:
        changed = onnx.load(path)
        changed.graph.node[0].output[0] = "product"
        changed.graph.node.append(helper.make_node(kind, ["product"], ["y"], name="last", **({"to": dtype} if kind == "Cast" else {})))
        changed.graph.output[0].type.tensor_type.elem_type = dtype
        onnx.save(changed, tmp_path / "changed.onnx")
        np.save(tmp_path / "x.npy", np.ones((2, 64), np.float32))
        command = [program, "run", tmp_path / "changed.onnx", "--backend", "opencl", "--input", f"x={tmp_path / 'x.npy'}"]
        environment = {**os.environ, **fake("no-f64"), "AGLOW_CACHE_DIR": "off"}
        outcome = process.run(command, timeout=120, env=environment)
        assert outcome.code == code, (kind, dtype, outcome.err)
        if code:
            assert "has no f64 (cl_khr_fp64), in which these compute:\n  node 'product+last' (MatMul)" in outcome.err and "--f64 pairs" in outcome.err
        assert process.run([*command, "--f64", "pairs"], timeout=120, env=environment).code == 0


def test_f64_in_pairs(program, tmp_path):
    """Two f32 for each f64: not the same bits, but 46 of them; other backends have no use for it."""
    if process.is_sanitized(str(program)):
        pytest.skip("drivers are not run under sanitizers")
    value, path = np.linspace(-3, 3, 60).reshape(4, 15), tmp_path / "wide.onnx"
    graph = helper.make_graph([helper.make_node("Sigmoid", ["x"], ["s"]), helper.make_node("MatMul", ["s", "w"], ["y"])], "wide",
                              [helper.make_tensor_value_info("x", TensorProto.DOUBLE, [4, 15])],
                              [helper.make_tensor_value_info("y", TensorProto.DOUBLE, [4, 15])],
                              [numpy_helper.from_array(np.cos(np.arange(225.0)).reshape(15, 15), "w")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    np.save(tmp_path / "x.npy", value)

    def run(*options):
        return process.run([program, "run", path, "--input", f"x={tmp_path / 'x.npy'}", "--output-dir", tmp_path / "out", *options],
                           timeout=120, env={**os.environ, "AGLOW_CACHE_DIR": "off"})

    found = []
    for how in ("pairs", "own"):
        outcome = run("--backend", "opencl", "--f64", how)
        if outcome.code == 6:
            pytest.skip("this machine has no OpenCL device")
        assert outcome.code == 0, outcome.err
        found.append(np.load(tmp_path / "out" / "0.npy"))
    expected = (1 / (1 + np.exp(-value))) @ np.cos(np.arange(225.0)).reshape(15, 15)
    np.testing.assert_allclose(found[0], expected, rtol=0, atol=2.0 ** -44)
    np.testing.assert_allclose(found[1], expected, rtol=0, atol=2.0 ** -49)
    assert (found[0] != found[1]).any()
    refused = run("--backend", "interpreter", "--f64", "pairs")
    assert refused.code == 1 and "computes f64 as they are" in refused.err


def test_what_travels(program, fake, tmp_path):
    """With memory of its own, inputs and outputs go over pinned memory; else the device uses the host's."""
    path, log = products(tmp_path, [(64, 64)], 2), tmp_path / "log"
    np.save(tmp_path / "x.npy", np.ones((2, 64), np.float32))
    for how in ("discrete", ""):
        log.write_text("")
        outcome = process.run([program, "run", path, "--backend", "opencl", "--input", f"x={tmp_path / 'x.npy'}"], timeout=120,
                              env={**os.environ, **fake(how), "AGLOW_CACHE_DIR": "off", "FAKE_OPENCL_LOG": str(log)})
        assert outcome.code == 0 and "fake OpenCL" not in outcome.err, outcome.err
        weights, data, staging = 64 * 64 * 4, 2 * 64 * 4, 2 * 512
        if how:
            assert calls(log, "pinned") == calls(log, "map") == [staging] and not calls(log, "wrapped")
            assert calls(log, "write") == [weights, data] and calls(log, "read") == [data]
        else:
            assert sorted(calls(log, "wrapped")) == [data, data, weights] and calls(log, "map") == [data]
            assert not calls(log, "write", "read", "pinned")


def test_weights_are_uploaded_once(fake, program, tmp_path):
    """One model for many sizes has its weights on the device once."""
    if process.is_sanitized(str(program)):
        pytest.skip("the Python module is not sanitized")
    aglow = pytest.importorskip("aglow")
    path, log = products(tmp_path, [(64, 128), (128, 32)], "n"), tmp_path / "log"
    script = f"""
import numpy as np, aglow
model = aglow.compile({str(path)!r}, backend="opencl", cache="off")
for n in (1, 2, 3, 2, 9):
    assert model(np.ones((n, 64), np.float32)).shape == (n, 32)
"""
    environment = {**os.environ, **fake("discrete"), "FAKE_OPENCL_LOG": str(log),
                   "PYTHONPATH": str(pathlib.Path(aglow.__file__).parents[1])}
    outcome = process.run([sys.executable, "-c", script], env=environment, timeout=120)
    assert outcome.code == 0 and "fake OpenCL" not in outcome.err, outcome.err
    written = calls(log, "write")
    assert written.count(64 * 128 * 4) == 1 and written.count(128 * 32 * 4) == 1
    assert calls(log, "buffer").count(64 * 128 * 4 + 128 * 32 * 4) == 1


def test_a_kernel_that_cannot_be_built(run, fake):
    outcome = run("opencl", **fake("build"))
    assert outcome.code == 6
    assert "the fake compiler says no" in outcome.err
    lines = outcome.err.splitlines()
    assert any(line.startswith("     1 | KERNEL(") for line in lines), outcome.err
    assert sum(line.startswith(">    2 | ") for line in lines) == 1 and "hint" not in outcome.err, outcome.err
    # PoCL says nothing of its cache that cannot be written.
    silent = run("opencl", **fake("build,silent"))
    assert silent.code == 6 and "hint: PoCL builds nothing where it cannot write" in silent.err, silent.err


def kept(folder):
    return sorted(folder.glob("*.kernels"))


def test_binaries_are_kept(program, run, fake, tmp_path):
    cache, log = tmp_path / "cache", tmp_path / "log"
    environment = {**fake(""), "AGLOW_CACHE_DIR": str(cache), "FAKE_OPENCL_LOG": str(log)}

    def origins(**changes):
        log.write_text("")
        assert run("opencl", **{**environment, **changes}).code == 0
        return [word for word in log.read_text().splitlines() if word in ("source", "binary", "refused")]

    assert origins(AGLOW_CACHE_DIR="off") == ["source"] and not cache.exists()
    assert origins() == ["source"]
    file, = kept(cache)
    assert origins() == ["binary"]
    listed = json.loads(process.run([program, "cache", "--json", "--cache", cache]).out)
    assert file.name in [entry["name"] for entry in listed["files"]]
    # What is damaged, or what the driver refuses, is built again and kept again.
    whole = file.read_bytes()
    for damaged in (b"", whole[:40], whole[:-1], whole[:70] + b"?" + whole[71:]):
        file.write_bytes(damaged)
        assert origins() == ["source"] and file.read_bytes() == whole
    os.truncate(file, 1 << 40)  # more than there is memory for
    assert origins() == ["source"] and file.read_bytes() == whole
    assert origins(FAKE_OPENCL="binary") == ["refused", "source"]
    assert origins() == ["binary"]
    assert process.run([program, "cache", "--clear", "--cache", cache]).code == 0
    assert not kept(cache) and origins() == ["source"]


def test_tiles_are_measured_once(program, fake, tmp_path):
    path, log = products(tmp_path, [(64, 64)], 40), tmp_path / "log"
    np.save(tmp_path / "x.npy", np.ones((40, 64), np.float32))

    def origins(*words, backend="opencl"):
        log.write_text("")
        outcome = process.run([program, "run", path, "--backend", backend, "--input", f"x={tmp_path / 'x.npy'}", *words], timeout=120,
                              env={**os.environ, **fake(""), "AGLOW_CACHE_DIR": str(tmp_path / "cache"), "FAKE_OPENCL_LOG": str(log)})
        assert "fake OpenCL" not in outcome.err
        return outcome.code, [word for word in log.read_text().splitlines() if word in ("source", "binary")]

    assert origins() == (0, ["source"])
    code, measured = origins("--tune")
    assert code == 0 and measured.count("source") > 2 and len(list((tmp_path / "cache").glob("*.measured"))) == 1
    assert origins("--tune") == (0, ["binary"])
    next((tmp_path / "cache").glob("*.measured")).unlink()
    assert origins("--tune-seconds", "1e-9") == (0, ["binary"])
    assert origins(backend="cpu")[0] == 0  # and is kept: nothing is compiled below
    for backend in ("interpreter", "cpu"):
        for words in (["--tune"], ["--f64", "pairs"]):
            assert origins(*words, backend=backend)[0] == 1
    for wrong in ("nan", "0", "-1", "inf", "x"):
        outcome = process.run([program, "run", path, f"--tune-seconds={wrong}"])
        assert outcome.code == 1 and f"--tune-seconds: Value {wrong} is not a number above 0" in outcome.err, outcome.err


@pytest.mark.parametrize("how", ["lost:10", "lost-waiting:5", "build"])
def test_a_device_that_fails_while_it_measures(program, fake, tmp_path, how):
    """Not a model that it cannot run."""
    path = products(tmp_path, [(64, 64)], 40)
    np.save(tmp_path / "x.npy", np.ones((40, 64), np.float32))
    outcome = process.run([program, "run", path, "--backend", "opencl", "--input", f"x={tmp_path / 'x.npy'}", "--tune", "--cache", "off"],
                          timeout=120, env={**os.environ, **fake(how)})
    assert outcome.code == 6 and "error[E601]" in outcome.err and "node " in outcome.err, outcome.err
    assert "fake OpenCL" not in outcome.err


def test_groups_of_any_size_are_measured(program, fake):
    outcome = process.run([program, "devices", "--measure"], env={**os.environ, **fake("group:12"), "AGLOW_CACHE_DIR": "off"}, timeout=120)
    assert outcome.code == 0 and "fake OpenCL" not in outcome.err, outcome.err


def test_verify_says_of_devices_what_is_theirs(program, fake, tmp_path):
    """The reference has nothing to tune, computes f64 as they are, and has all memory."""
    path, log = products(tmp_path, [(64, 64)], 40), tmp_path / "log"
    np.save(tmp_path / "x.npy", np.zeros((40, 64), np.float32))  # whose product is what the fake device computes

    def verify(*words):
        log.write_text("")
        return process.run([program, "verify", path, "--input", f"x={tmp_path / 'x.npy'}", *words], timeout=120,
                           env={**os.environ, **fake(""), "AGLOW_CACHE_DIR": "off", "FAKE_OPENCL_LOG": str(log)})

    for words in (["--tune"], ["--tune-seconds", "5"], ["--f64", "pairs"], ["--device-memory", "40K"]):
        for backends in ("opencl", "opencl,interpreter", "opencl,cpu"):
            outcome = verify("--backend", backends, *words)
            assert outcome.code == 0, outcome.err
            if "--tune" in words[0]:
                assert log.read_text().split().count("source") > 2
            if "--device-memory" in words:
                assert 0 < sum(calls(log, "buffer")) <= 40 << 10
        assert verify("--backend", "cpu", *words).code == 1  # which takes none of them
    assert verify("--backend", "interpreter,cpu", "--tune").code == 1
    assert verify("--backend", "interpreter", "--against", "onnxruntime", "--f64", "pairs").code == 1


def test_packages_are_for_processors(program, tmp_path):
    """Who asks for a device does not get a processor."""
    path = products(tmp_path, [(64, 64)], 2)
    np.save(tmp_path / "x.npy", np.ones((2, 64), np.float32))

    def call(*words):
        return process.run([program, *words], timeout=120, env={**os.environ, "AGLOW_CACHE_DIR": "off"})

    assert call("compile", path, "--emit", "package", "-o", tmp_path / "out").code == 0
    run = ["run", tmp_path / "out" / "products.aglow", "--input", f"x={tmp_path / 'x.npy'}"]
    assert call(*run).code == 0 and call(*run, "--backend", "interpreter").code == 0
    for words in (["--backend", "opencl"], ["--backend", "opencl:9/9"], ["--tune"], ["--f64", "pairs"],
                  ["--device-memory", "1M"]):
        assert call(*run, *words).code == 1, words
    assert "a package has code for processors" in call(*run, "--backend", "opencl").err
    refused = call("compile", path, "--emit", "package", "--backend", "opencl", "-o", tmp_path / "other")
    assert refused.code == 1 and not (tmp_path / "other").exists()
    assert "a package has code for processors" in refused.err


def test_a_module_verifies_devices(fake, program, tmp_path):
    """What is said of a device is not said of those that it is compared with."""
    if process.is_sanitized(str(program)):
        pytest.skip("the Python module is not sanitized")
    aglow = pytest.importorskip("aglow")
    path = products(tmp_path, [(64, 64)], 2)
    script = f"""
import numpy as np, aglow
for options in ({{"tune": True}}, {{"f64_pairs": True}}):
    model = aglow.compile({str(path)!r}, backend="opencl", cache=False, **options)
    for against in ("interpreter", "cpu", "opencl"):
        # Zeros, whose product is what the fake device computes.
        assert model.verify(np.zeros((2, 64), np.float32), against=against).ok
"""
    environment = {**os.environ, **fake(""), "PYTHONPATH": str(pathlib.Path(aglow.__file__).parents[1])}
    outcome = process.run([sys.executable, "-c", script], env=environment, timeout=120)
    assert outcome.code == 0, outcome.err


@pytest.mark.parametrize("how", ["lost:2", "lost-waiting:2", "memory:3", "build"])
def test_a_session_goes_on_elsewhere(fake, program, tmp_path, how):
    """A device that fails raises, again and again; the same program then runs the model on the processor."""
    if process.is_sanitized(str(program)):
        pytest.skip("the Python module is not sanitized")
    aglow = pytest.importorskip("aglow")
    perceptron(tmp_path)
    script = f"""
import numpy as np, aglow
x = np.load({str(tmp_path / 'x.npy')!r})
def attempt():
    try:
        model = aglow.compile({str(tmp_path / 'model.onnx')!r}, backend="opencl", cache="off")
        for _ in range(3):
            model(x)
        print("ran")
    except aglow.Error as fault:
        print(str(fault).splitlines()[0])
attempt()
attempt()
print(aglow.compile({str(tmp_path / 'model.onnx')!r}, backend="cpu", cache="off")(x).sum())
"""
    environment = {**os.environ, **fake(how), "PYTHONPATH": str(pathlib.Path(aglow.__file__).parents[1])}
    outcome = process.run([sys.executable, "-c", script], env=environment, timeout=120)
    assert outcome.code == 0, outcome.err
    *faults, total = outcome.out.splitlines()
    assert len(faults) == 2 and all("E601" in fault or "E402" in fault for fault in faults), outcome.out
    assert float(total) == pytest.approx(20, rel=1e-5)
    assert "fake OpenCL" not in outcome.err


def test_in_a_forked_child(fake, program, tmp_path):
    """Which has none of the driver's threads: it says so, where it would wait for ever."""
    if process.is_sanitized(str(program)):
        pytest.skip("the Python module is not sanitized")
    aglow = pytest.importorskip("aglow")
    script = f"""
import numpy as np, aglow, os, sys
step = np.float32(1)
early = os.fork()
model = aglow.compile({str(COUNTER)!r}, backend="opencl", cache="off")
model["add"](step)
if early == 0:  # who forks before has a driver of its own
    os._exit(0)
child = os.fork()
if child == 0:
    said = 0
    for attempt in (lambda: model["add"](step), lambda: dict(model.state),
                    lambda: aglow.compile({str(COUNTER)!r}, backend="opencl", cache="off")):
        try:
            attempt()
        except aglow.Error as fault:
            said += "E601" in str(fault) and "forked" in str(fault)
    os.environ["FAKE_OPENCL_LOG"] = {str(tmp_path / 'log')!r}
    model.close()
    os._exit(said)
codes = [os.waitstatus_to_exitcode(os.waitpid(one, 0)[1]) for one in (early, child)]
model["add"](step)
sys.exit(codes != [0, 3])
"""
    for how in ("", "discrete"):
        environment = {**os.environ, **fake(how), "PYTHONPATH": str(pathlib.Path(aglow.__file__).parents[1])}
        outcome = process.run([sys.executable, "-c", script], env=environment, timeout=120)
        assert outcome.code == 0 and "fake OpenCL" not in outcome.err, outcome.err
        assert not (tmp_path / "log").exists()


def test_what_is_in_and_out_on_a_driver_with_copies(fake, program, tmp_path):
    """A buffer of the host's memory may have copies of the bytes from when it was made until it is mapped."""
    path = tmp_path / "both.graph"
    path.write_text("module {\n  placeholder @x : f32[64]\n  func @main {\n    %y = Relu(@x)\n    Save(%y, @x)\n  }\n}\n")
    value = np.arange(64, dtype=np.float32)
    np.save(tmp_path / "x.npy", value)
    outcome = process.run([program, "run", path, "--backend", "opencl", "--input", f"x={tmp_path / 'x.npy'}", "--output-dir", tmp_path],
                          timeout=120, env={**os.environ, **fake("caches"), "AGLOW_CACHE_DIR": "off"})
    assert outcome.code == 0 and "fake OpenCL" not in outcome.err, outcome.err
    np.testing.assert_array_equal(np.load(tmp_path / "0.npy"), value)  # the device computes nothing


@pytest.mark.parametrize("how", ["", "discrete"])
def test_each_call_fails_once(fake, program, tmp_path, how):
    """Whichever call of the driver fails: an error of the device, and all objects are released."""
    if process.is_sanitized(str(program)):
        pytest.skip("the Python module is not sanitized")
    aglow = pytest.importorskip("aglow")
    perceptron(tmp_path)
    log = tmp_path / "log"
    script = f"""
import numpy as np, aglow, os, pathlib
log, one = pathlib.Path({str(log)!r}), np.float32(1)
def attempt(path, run):
    call, faults = 0, 0
    while call == 0 or "unlucky" in log.read_text():
        call += 1
        log.write_text("")
        os.environ["FAKE_OPENCL"] = f"{how},call:{{call}}"
        try:
            model = aglow.compile(path, backend="opencl", cache="off")
            for _ in range(2):
                run(model)
        except aglow.Error as fault:
            assert "E601" in str(fault), fault
            faults += 1
        model = None
    assert faults > call / 2, (faults, call)
x = np.load({str(tmp_path / 'x.npy')!r})
attempt({str(tmp_path / 'model.onnx')!r}, lambda model: model(x))
attempt({str(COUNTER)!r}, lambda model: (model["add"](one), dict(model.state)))
"""
    environment = {**os.environ, **fake(how), "FAKE_OPENCL_LOG": str(log),
                   "PYTHONPATH": str(pathlib.Path(aglow.__file__).parents[1])}
    outcome = process.run([sys.executable, "-c", script], env=environment, timeout=120)
    assert outcome.code == 0 and "fake OpenCL" not in outcome.err, outcome.err


def test_each_call_of_a_bundle_fails_once(fake, program, tmp_path):
    """As above; what did not open whole runs nothing, which device_bundle_driver.c looks at."""
    if not pathlib.Path("/usr/include/CL/cl.h").is_file():
        pytest.skip("OpenCL's headers are not installed")
    log = tmp_path / "log"
    bundle = DeviceBundle(program, tmp_path, products(tmp_path, [(64, 64), (64, 32)], 2), **fake(""))
    bundle.build("products", loader=["-L" + fake("")["LD_LIBRARY_PATH"], "-l:libOpenCL.so.1"])
    memory = bytes(bundle.number("MUTABLE_BYTES"))
    call, opened = 0, {"open 0": 0, "open 5": 0}
    while call == 0 or "unlucky" in log.read_text():
        call += 1
        log.write_text("")
        opened[bundle.run(memory, **fake(f"call:{call}"), FAKE_OPENCL_LOG=str(log))[0]] += 1
    assert opened["open 5"] > 20 and opened["open 0"] > 5, opened
    # Memory is told from the device as in test_faults.
    for how, said in [("memory", "open 6"), ("resources", "run 6 "), ("lost", "run 5 "), ("lost-waiting", "open 5"),
                      ("resources,lost-waiting:2", "run 5 ")]:
        assert any(line.startswith(said) for line in bundle.run(memory, **fake(how))), how


def test_a_run_ends_with_the_keyboard(fake, program, tmp_path):
    """Ctrl-C in Python ends a run on a device between two batches, and the device is done with the memory then."""
    if process.is_sanitized(str(program)):
        pytest.skip("the Python module is not sanitized")
    aglow = pytest.importorskip("aglow")
    count, path, log = 1500, tmp_path / "long.onnx", tmp_path / "log"
    names = ["image", *(f"v{i}" for i in range(count - 1)), "y"]
    made = model([node("MatMul", [a, "image"], outputs=[b]) for a, b in zip(names, names[1:])], {"image": zeros(2, 2)})
    path.write_bytes(made if isinstance(made, bytes) else made.SerializeToString())
    script = f"""
import numpy as np, aglow, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # which background jobs ignore
model = aglow.compile({str(path)!r}, backend="opencl", cache="off")
try:
    model(np.ones((2, 2), np.float32))
except KeyboardInterrupt:
    sys.exit(33)
"""
    environment = {**os.environ, **fake("slow"), "FAKE_OPENCL_LOG": str(log),
                   "PYTHONPATH": str(pathlib.Path(aglow.__file__).parents[1])}
    with subprocess.Popen([sys.executable, "-c", script], env=environment) as child:
        while child.poll() is None and (not log.exists() or "kernel" not in log.read_text()):
            time.sleep(0.01)
        child.send_signal(signal.SIGINT)
        assert child.wait(60) == 33
    words = log.read_text().split()
    assert 0 < words.count("kernel") < count and words[-1] == "finish" and "read" not in words


def test_an_unknown_device(run, fake):
    outcome = run("opencl:3/1", **fake(""))
    assert outcome.code == 6
    assert "no OpenCL device '3/1'" in outcome.err and "0/0 (fake device)" in outcome.err
    assert run("cpu:0", **fake("")).code == 1
    for name in ("CPU @ 2.80GHz", "CPU @ 2.80GHz@64M"):  # as processors are called
        outcome = run(f"opencl:{name}", **fake(""))
        assert outcome.code == 6 and "no OpenCL device 'CPU @ 2.80GHz'" in outcome.err, outcome.err
    assert run("opencl:fakes/fake@64M", **fake("")).code == 0
    assert run("opencl:fakes/fake", **fake("")).code == 0


def test_a_real_device(program, run, tmp_path):
    if process.is_sanitized(str(program)):
        pytest.skip("drivers are not run under sanitizers")
    listed = process.run([program, "devices"])
    if listed.code != 0 or "opencl:" not in listed.out:
        pytest.skip("this machine has no OpenCL device")
    for backend in ("opencl", "interpreter"):
        outcome = run(backend, backend)
        assert outcome.code == 0, outcome.err
    got, expected = (np.load(tmp_path / backend / "0.npy") for backend in ("opencl", "interpreter"))
    np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("wrong", [-1, float("nan"), float("inf")])
def test_tuning_takes_seconds(tmp_path, wrong):
    aglow = pytest.importorskip("aglow")
    path = products(tmp_path, [(64, 64)], 40)
    with pytest.raises(aglow.Error, match="expected seconds"):
        aglow.compile(path, backend="opencl", tune=wrong)
    with pytest.raises(aglow.Error, match="nothing to measure"):
        aglow.compile(path, backend="interpreter", tune=True)
