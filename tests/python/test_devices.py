"""Devices: what the machine has, and what happens without one, or with one that fails."""
import json
import os
import pathlib
import subprocess

import numpy as np
import pytest
from bad_models import model, node, zeros
from harness import process

HERE = pathlib.Path(__file__).resolve().parent


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
        return process.run([program, "run", path, "--backend", backend, "--input", f"image={tmp_path / 'x.npy'}",
                            "--output-dir", tmp_path / out], timeout=120, env={**os.environ, **environment})

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
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", HERE / "fake_opencl.c", "-o", folder / "libOpenCL.so.1"], check=True)
    return lambda how: {"LD_LIBRARY_PATH": str(folder), "FAKE_OPENCL": how}


def test_devices_of_the_fake(program, fake):
    outcome = process.run([program, "devices", "--json"], env={**os.environ, **fake("")})
    assert outcome.code == 0, outcome.err
    device, = json.loads(outcome.out)["devices"]
    assert device["backend"] == "opencl:0/0" and device["name"] == "fake device" and device["f64"]
    text = process.run([program, "devices"], env={**os.environ, **fake("")}).out
    assert "opencl:0/0" in text and "fake device" in text


def test_no_driver(program, run, no_drivers):
    if process.is_sanitized(str(program)):
        pytest.skip("what the loader leaves behind is not ours")
    for outcome in (process.run([program, "devices"], env={**os.environ, **no_drivers}), run("opencl", **no_drivers)):
        assert outcome.code == 6
        assert outcome.err.startswith("error[E601]") and ("no platform" in outcome.err or "loader" in outcome.err)


@pytest.mark.parametrize("how, code, words", [
    ("no-platform", 6, "no platform"),
    ("no-device", 6, "no platform of OpenCL has a device"),
    ("no-f64", 6, "cl_khr_fp64"),
    ("small", 4, "one buffer of the device 0/0 (fake device) has at most 1000"),
    ("memory", 4, "clCreateBuffer failed with CL_MEM_OBJECT_ALLOCATION_FAILURE"),
    ("resources", 4, "clEnqueueNDRangeKernel failed with CL_OUT_OF_RESOURCES"),
    ("lost", 6, "clEnqueueNDRangeKernel failed with CL_INVALID_COMMAND_QUEUE"),
])
def test_faults(run, fake, tmp_path, how, code, words):
    outcome = run("opencl", **fake(how))
    assert outcome.code == code, outcome.err
    assert words in outcome.err
    assert not (tmp_path / "out").exists() or not list((tmp_path / "out").iterdir())


def test_a_kernel_that_cannot_be_built(run, fake):
    outcome = run("opencl", **fake("build"))
    assert outcome.code == 6
    assert "the fake compiler says no" in outcome.err and "KERNEL(" in outcome.err


def test_an_unknown_device(run, fake):
    outcome = run("opencl:3/1", **fake(""))
    assert outcome.code == 6
    assert "no OpenCL device '3/1'" in outcome.err and "0/0 (fake device)" in outcome.err
    assert run("cpu:0", **fake("")).code == 1
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
