"""Bundles with kernels as SPIR-V: who makes it, who takes it, and that it computes what the source does."""
import json
import os
import pathlib
import shutil
import struct
import subprocess

import numpy as np
import onnx
import pytest
from bundle_models import MODELS
from bundles import check, run
from device_bundles import DeviceBundle
from harness import process

HERE = pathlib.Path(__file__).resolve().parent
VERSIONS = ["-22", "-21", "-20", "-19", "-18", "-17", "-16", "-15", "-14", ""]
MODULE = struct.pack("<5I", 0x07230203, 0x00010200, 0, 1, 0)  # nothing but the head of one, of SPIR-V 1.2


@pytest.fixture(scope="module")
def headers():
    if not pathlib.Path("/usr/include/CL/cl.h").is_file():
        pytest.skip("OpenCL's headers are not installed")


@pytest.fixture(scope="module")
def fake(tmp_path_factory):
    """The folder of a loader of OpenCL 1.2, whose one device is as FAKE_OPENCL says."""
    folder = tmp_path_factory.mktemp("fake")
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", HERE / "fake_opencl.c", "-o", folder / "libOpenCL.so.1"], check=True)
    return folder


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "mlp.onnx"
    onnx.save(MODELS["mlp"]()[0], path)
    return path


def tools(folder, compiler="exit 0", translator='cp {module} "$4"'):
    """A PATH with programs of these words, which note what they are asked for."""
    folder.mkdir()
    (folder / "module").write_bytes(MODULE)
    for name, words in (("clang-15", compiler), ("llvm-spirv-15", translator)):
        path = folder / name
        words = words.replace("{module}", str(folder / "module"))
        path.write_text(f'#!/bin/sh\nPATH=/usr/bin:/bin\necho "$@" >{folder / name}.words\n{words}\n')
        path.chmod(0o755)
    return {"PATH": str(folder)}


def compiled(program, folder, model, fake, how="", **environment):
    return DeviceBundle(program, folder, model, "--dim", "batch=5", "--kernels", "spirv", LD_LIBRARY_PATH=str(fake),
                        FAKE_OPENCL=how, **environment)


def test_a_device_gets_what_it_takes(headers, program, tmp_path, model, fake):
    bundle = compiled(program, tmp_path, model, fake, **tools(tmp_path / "bin"))
    assert (tmp_path / "out" / "mlp.spv").read_bytes() == MODULE and (tmp_path / "out" / "mlp.cl").is_file()
    log = tmp_path / "log"
    for language in ("c99", "c++"):
        bundle.build("mlp", language, [f"-L{fake}", "-l:libOpenCL.so.1"])
        for how, made in [("", ["source"]), ("spirv:1", ["source"]), ("spirv:2", ["spirv 20"]), ("spirv:3", ["spirv 20"]),
                          ("spirv:2,narrow", ["source"]), ("spirv:2,no-il-call", ["source"]), ("spirv:2,il", ["refused 20", "source"]),
                          ("spirv:2,il-build", ["spirv 20", "source"])]:
            log.unlink(missing_ok=True)
            assert bundle.run(bytes(bundle.number("MUTABLE_BYTES")), LD_LIBRARY_PATH=str(fake), FAKE_OPENCL=how,
                              FAKE_OPENCL_LOG=str(log)) == ["open 0", "run 0 0"], how
            words = [line for line in log.read_text().splitlines() if line.split()[0] in ("source", "spirv", "refused")]
            assert words == made, how


def test_the_compiler_is_told_of_the_device(program, tmp_path, model, fake):
    compiled(program, tmp_path, model, fake, **tools(tmp_path / "bin"))
    words = (tmp_path / "bin" / "clang-15.words").read_text().split()
    # The compiler of the fake device knows every macro.
    assert "-cl-ext=-all,+cl_khr_fp64" in words and {"-DFP_FAST_FMAF", "-DFP_FAST_FMA"} <= set(words)
    assert "--spirv-max-version=1.0" in (tmp_path / "bin" / "llvm-spirv-15.words").read_text().split()


def test_tools_that_are_not_there(program, tmp_path, model, fake):
    (tmp_path / "empty").mkdir()
    cases = [({"PATH": str(tmp_path / "empty")}, "cannot be made\n"),
             (tools(tmp_path / "bad", compiler="echo 'no such builtin'; exit 1"), "no such builtin"),
             (tools(tmp_path / "silent", translator="echo nothing"), "cannot be made")]
    for environment, words in cases:
        outcome = run(program, "compile", model, "-o", tmp_path / "out", "--emit", "bundle", "--backend", "opencl", "--dim",
                      "batch=5", "--kernels", "spirv", env={**os.environ, "LD_LIBRARY_PATH": str(fake), **environment})
        assert outcome.returncode == 6 and words in outcome.stderr and "llvm-spirv-15" in outcome.stderr, outcome.stderr
        assert not (tmp_path / "out").exists()


def test_it_is_for_devices(program, tmp_path, model):
    for words in (["bundle"], ["ir"], ["package"], ["c"], ["ir", "--backend", "opencl"], ["graph", "--stop-after", "share"]):
        outcome = run(program, "compile", model, "-o", tmp_path / "out", "--dim", "batch=5", "--kernels", "spirv", "--emit", *words)
        assert outcome.returncode == 1 and "--kernels spirv is of bundles for devices" in outcome.stderr, outcome.stderr
        assert not (tmp_path / "out").exists()


def devices(program):
    listed = process.run([program, "devices", "--json"])
    return json.loads(listed.out)["devices"] if listed.code == 0 else []


@pytest.mark.parametrize("name", ["convnet", "mlp", "int8"])
def test_bits(headers, program, tmp_path, name):
    """With the real tools, on every device there is; where it takes SPIR-V, without the source."""
    if process.is_sanitized(str(program)):
        pytest.skip("drivers are not run under sanitizers")
    if not any(shutil.which("clang" + of) and shutil.which("llvm-spirv" + of) for of in VERSIONS):
        pytest.skip("clang and llvm-spirv are not installed")
    found = devices(program)
    if not found:
        pytest.skip("this machine has no OpenCL device")
    made, inputs = MODELS[name]()
    path = tmp_path / f"{name}.onnx"
    onnx.save(made, path)
    words = []
    for key, value in inputs.items():
        np.save(tmp_path / f"{key}.npy", value)
        words += ["--input", f"{key}={tmp_path / key}.npy"]
    for number, device in enumerate(found):
        folder = tmp_path / str(number)
        folder.mkdir()
        check(program, "run", path, "--backend", device["backend"], *words, "--output-dir", folder / "expected")
        expected = np.load(folder / "expected" / "0.npy")
        bundle = DeviceBundle(program, folder, path, "--kernels", "spirv", *(["--dim", "batch=5"] if name == "mlp" else []),
                              backend=device["backend"])
        if shutil.which("spirv-val"):
            check("spirv-val", "--target-env", "opencl1.2", folder / "out" / f"{name}.spv")
        if "SPIR-V" in device["il"]:
            host = folder / "out" / f"{name}.c"
            text = host.read_text()
            assert text.count("kernel_text[] = {\n") == 1
            host.write_text(text.replace("kernel_text[] = {\n", 'kernel_text[] = {\n  "#error source\\n",\n'))
        bundle.build(name)
        memory = bundle.memory({key.upper(): value for key, value in inputs.items()})
        assert bundle.run(memory, DEVICE=device["backend"].removeprefix("opencl:")) == ["open 0", "run 0 0"]
        assert bundle.output("Y", expected) == expected.tobytes()
