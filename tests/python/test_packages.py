"""Packages: the command line and the module give the model's own bits, from any number of processors; what is wrong with
a file is an error."""
import json
import os
import shutil
import subprocess

import numpy as np
import onnx
import pytest

from bundle_models import MODELS
from bundles import check
from onnx import TensorProto, helper


@pytest.fixture
def package(program, tmp_path):
    net, inputs = MODELS["mlp"](3)
    onnx.save(net, tmp_path / "mlp.onnx")
    np.save(tmp_path / "x.npy", inputs["x"])
    check(program, "compile", tmp_path / "mlp.onnx", "--dim", "batch=3", "-o", tmp_path, "--emit", "package")
    return tmp_path / "mlp.aglow"


def test_bits_of_the_model(program, package, tmp_path):
    x = ["--input", f"x={tmp_path / 'x.npy'}", "--backend", "cpu"]
    check(program, "run", tmp_path / "mlp.onnx", *x, "-o", tmp_path / "model")
    for threads in "1", "2", "7":
        check(program, "run", package, *x, "--threads", threads, "-o", tmp_path / "package")
        assert (tmp_path / "model" / "0.npy").read_bytes() == (tmp_path / "package" / "0.npy").read_bytes()


def test_the_same_for_any_number_of_processors(program, package, tmp_path):
    first = package.read_bytes()
    subprocess.run(["taskset", "-c", str(min(os.sched_getaffinity(0))), program, "compile", tmp_path / "mlp.onnx",
                    "--dim", "batch=3", "-o", tmp_path, "--emit", "package"], check=True)
    assert package.read_bytes() == first


def test_weights_stay_in_the_file(program, package, sanitized, tmp_path):
    """What the process has for itself does not grow with the weights, which are the file's pages."""
    if sanitized:
        pytest.skip("the sanitizers' own memory is larger")
    weights = np.random.default_rng(1).standard_normal((1024, 4096)).astype(np.float32)
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "g",
                              [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1024])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4096])],
                              [onnx.numpy_helper.from_array(weights, "w")])
    onnx.save(helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 17)]), tmp_path / "w.onnx")
    check(program, "compile", tmp_path / "w.onnx", "-o", tmp_path, "--emit", "package")
    # The most of several processes: a system that is short of memory takes some away.
    ready = [max(json.loads(check(program, "bench", path, "--runs", "1", "--json", "--backend", "cpu"))["ready_mb"] for _ in range(3))
             for path in (package, tmp_path / "w.aglow")]
    assert (tmp_path / "w.aglow").stat().st_size > 16 << 20
    assert ready[1] - ready[0] < 2, ready


def test_runs_without_llvm(program, package, sanitized, tmp_path):
    if sanitized:
        pytest.skip("the code generator is linked")
    words = ["run", package, "--input", f"x={tmp_path / 'x.npy'}", "--backend", "cpu"]
    loaded = subprocess.run([program, *words], env={**os.environ, "LD_DEBUG": "files"}, capture_output=True, text=True)
    assert loaded.returncode == 0 and "libfmt" in loaded.stderr and "libLLVM" not in loaded.stderr
    # The program alone, without the module beside it.
    alone = tmp_path / "alone" / "aglow"
    alone.parent.mkdir()
    shutil.copy(program, alone)
    check(alone, *words)
    refused = subprocess.run([alone, "run", tmp_path / "mlp.onnx", *words[2:]], capture_output=True, text=True)
    assert refused.returncode == 8 and "error[E801]" in refused.stderr and "aglow_llvm.so" in refused.stderr


def test_module(package, tmp_path):
    aglow = pytest.importorskip("aglow")
    x = np.load(tmp_path / "x.npy")
    expected = aglow.compile(tmp_path / "mlp.onnx", backend="cpu", cache=False)(x)
    model = aglow.load(package, threads=2)
    np.testing.assert_array_equal(model(x), expected)
    np.testing.assert_allclose(aglow.compile(package, backend="interpreter")(x), expected, rtol=1e-4, atol=1e-5)
    with pytest.raises(aglow.UsageError):
        aglow.load(tmp_path / "mlp.onnx")
    with pytest.raises(aglow.UsageError):
        model(x[:1])
    (tmp_path / "cut.aglow").write_bytes(package.read_bytes()[:5000])
    with pytest.raises(aglow.BadModelError, match="E210"):
        aglow.load(tmp_path / "cut.aglow")


def test_damage_is_found(aglow, package, tmp_path):
    whole = package.read_bytes()
    damaged = tmp_path / "damaged.aglow"
    rng = np.random.default_rng(5)
    for at in [0, 8, 12, 16, 30, 70, 100, *rng.integers(64, len(whole), 20)]:
        changed = bytearray(whole)
        changed[at] ^= 1 << int(rng.integers(0, 8))
        damaged.write_bytes(changed)
        shown = aglow("inspect", damaged)
        assert shown.code in (0, 2, 3), (at, shown)
        if at < 128:
            assert shown.code in (2, 3) and ("E210" in shown.err or "E305" in shown.err), (at, shown)
    damaged.write_bytes(whole[: len(whole) // 2])
    shown = aglow("run", damaged)
    assert shown.code == 2 and "E210" in shown.err
    # Weights come last; they are many, and only inspect looks at them.
    changed = bytearray(whole)
    changed[len(whole.rstrip(b"\0")) - 1] ^= 1
    damaged.write_bytes(changed)
    shown = aglow("inspect", damaged)
    assert shown.code == 2 and "E210" in shown.err, shown


def test_models_in_parts_have_no_package(aglow, tmp_path):
    graph = helper.make_graph(
        [helper.make_node("NonZero", ["x"], ["y"])], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])],
        [helper.make_tensor_value_info("y", TensorProto.INT64, [1, None])])
    onnx.save(helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 17)]), tmp_path / "n.onnx")
    shown = aglow("compile", tmp_path / "n.onnx", "-o", tmp_path / "out", "--emit", "package")
    assert shown.code == 3 and "E303" in shown.err
    assert not (tmp_path / "out").exists()
