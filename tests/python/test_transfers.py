"""Weights that do not fit into a device's memory: they travel while something else is computed, and change no bit."""
import json
import os
import pathlib
import re
import subprocess

import numpy as np
import onnx
import pytest
from harness import process
from onnx import TensorProto, helper, numpy_helper


def narrow_vgg(path):
    """VGG-19 in all its layers, with a sixteenth of its channels and images of 64 x 64: 4 MB of weights, most of them in two products."""
    random = np.random.default_rng(1)
    nodes, weights = [], []

    def weight(name, *shape):
        values = random.standard_normal(shape).astype(np.float32) / np.sqrt(np.prod(shape[1:]) if len(shape) > 1 else 1)
        weights.append(numpy_helper.from_array(values.astype(np.float32), name))
        return name

    value, channels = "image", 3
    for stage, (wide, convs) in enumerate([(4, 2), (8, 2), (16, 4), (32, 4), (32, 4)]):
        for conv in range(convs):
            name = f"conv{stage}_{conv}"
            nodes += [helper.make_node("Conv", [value, weight(name + "w", wide, channels, 3, 3), weight(name + "b", wide)], [name],
                                       pads=[1] * 4), helper.make_node("Relu", [name], [name + "r"])]
            value, channels = name + "r", wide
        nodes.append(helper.make_node("MaxPool", [value], [f"pool{stage}"], kernel_shape=[2, 2], strides=[2, 2]))
        value = f"pool{stage}"
    nodes.append(helper.make_node("Flatten", [value], ["flat"]))
    value, wide = "flat", channels * 4
    for number, out in enumerate([4096, 128, 10]):
        nodes.append(helper.make_node("Gemm", [value, weight(f"fc{number}w", out, wide), weight(f"fc{number}b", out)], [f"fc{number}"],
                                      transB=1))
        value, wide = f"fc{number}", out
        if number < 2:
            nodes.append(helper.make_node("Relu", [value], [value + "r"]))
            value += "r"
    graph = helper.make_graph(nodes, "vgg", [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, 64, 64])],
                              [helper.make_tensor_value_info(value, TensorProto.FLOAT, [1, 10])], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    return sum(len(w.raw_data) for w in weights)


@pytest.fixture(scope="module")
def vgg(tmp_path_factory):
    folder = tmp_path_factory.mktemp("vgg")
    bytes_of_weights = narrow_vgg(folder / "vgg.onnx")
    np.save(folder / "x.npy", np.random.default_rng(2).standard_normal((1, 3, 64, 64)).astype(np.float32))
    return folder, bytes_of_weights


def bits(aglow, vgg, out, *options, **environment):
    folder, _ = vgg
    outcome = aglow("run", folder / "vgg.onnx", "--input", f"image={folder / 'x.npy'}", "--output-dir", folder / out, *options,
                    timeout=300, env={**os.environ, **environment})
    assert outcome.code == 0, outcome.err
    return np.load(folder / out / "0.npy").tobytes()


def transfers(aglow, vgg, *options):
    outcome = aglow("inspect", vgg[0] / "vgg.onnx", "--memory", "--json", "--backend", "interpreter", *options, timeout=300)
    assert outcome.code == 0, outcome.err
    return json.loads(outcome.out)


def test_bits_and_hidden_time(aglow, vgg):
    third = str(vgg[1] // 3)
    assert bits(aglow, vgg, "streamed", "--backend", "interpreter", "--device-memory", third) == bits(
        aglow, vgg, "whole", "--backend", "interpreter")
    early = transfers(aglow, vgg, "--device-memory", third)["transfers"]
    late = transfers(aglow, vgg, "--device-memory", third, "--disable", "prefetch")["transfers"]
    assert late["hidden"] == pytest.approx(0, abs=1e-9) and early["ms"] < late["ms"]
    # Two thirds of the weights travel at least, and wherever what is computed meanwhile takes longer they are hidden.
    assert sum(copy["bytes"] for copy in early["copies"]) >= vgg[1] * 2 / 3
    assert early["hidden"] > 0.2
    assert vgg[1] / 6 < early["device_bytes"] <= int(third)
    assert "transfers" not in transfers(aglow, vgg)


@pytest.mark.parametrize("gpu", [False, True])
def test_bits_on_a_device(aglow, vgg, program, tmp_path, gpu):
    """Also where sums are cut into as many parts as there are too few results for all units, as on GPUs."""
    if process.is_sanitized(str(program)):
        pytest.skip("drivers are not run under sanitizers")
    if "opencl:" not in process.run([program, "devices"]).out:
        pytest.skip("this machine has no OpenCL device")
    environment = {}
    if gpu:
        layer = tmp_path / "libgpu_layer.so"
        source = pathlib.Path(__file__).resolve().parents[1] / "conformance" / "gpu_layer.c"
        subprocess.run(["gcc", "-shared", "-fPIC", "-DCL_TARGET_OPENCL_VERSION=300", source, "-o", layer], check=True)
        environment["OPENCL_LAYERS"] = str(layer)
    resident = bits(aglow, vgg, "resident", "--backend", "opencl", **environment)
    for part in (3, 4):
        bound = ["--device-memory", str(vgg[1] // part)]
        assert bits(aglow, vgg, "device", "--backend", "opencl", *bound, **environment) == resident


def test_too_little_memory(aglow, vgg):
    run = ["run", vgg[0] / "vgg.onnx", "--input", f"image={vgg[0] / 'x.npy'}", "--backend"]
    refused = aglow(*run, "interpreter", "--device-memory", "64K", timeout=300)
    assert refused.code == 4
    least = re.search(r"at least (\d+) bytes of the device's memory", refused.err)[1]
    assert aglow(*run, f"interpreter@{2 * int(least)}", timeout=300).code == 0
    assert aglow(*run, "interpreter@some").code == 1
    refused = aglow(*run, "interpreter@64M", "--device-memory", "32M")
    assert refused.code == 1 and "--backend 'interpreter@64M' says already how much memory" in refused.err
    refused = aglow(*run, "cpu", "--device-memory", "64M")
    assert refused.code == 1 and "computes in the host's memory" in refused.err


def test_trace(aglow, vgg, tmp_path):
    outcome = aglow("bench", vgg[0] / "vgg.onnx", "--backend", "interpreter", "--device-memory", str(vgg[1] // 3), "--trace",
                    tmp_path / "trace.json", "--runs", "1", timeout=300)
    assert outcome.code == 0, outcome.err
    rows = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    tracks = {row["args"]["name"]: (row["pid"], row["tid"]) for row in rows if row["ph"] == "M"}
    for track in ("instructions", "compute", "copies"):
        assert [row for row in rows if row["ph"] == "X" and (row["pid"], row["tid"]) == tracks[track]], track
