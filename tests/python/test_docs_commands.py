"""Every command that the documentation shows in a code block is run, on small models under the names it uses."""
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from conftest import ROOT
from map_models import classifier, features

PAGES = sorted(path.relative_to(ROOT).as_posix() for path in
               [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "examples").glob("*/README.md")])
# Where a word stands for something: the forms of a command. A server runs until it is told to end: test_serve_* do that.
SYNOPSIS = re.compile(r"\[--|MODEL |NAME=MODEL|^aglow serve")


def commands(page):
    """The words of each command, in order."""
    found = []
    for line in re.findall(r"^ {4,}(?:\$ )?(?:build/)?(aglow .*)$", (ROOT / page).read_text(encoding="utf-8"), re.M):
        if not SYNOPSIS.search(line):
            found.append(shlex.split(line.split("&&")[0], comments=True)[1:])
    return found


WITH_COMMANDS = [page for page in PAGES if commands(page)]


def network(path, inputs, nodes, outputs, weights=()):
    info = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, "net", [info(name, TensorProto.FLOAT, shape) for name, shape in inputs],
                              [info(name, TensorProto.FLOAT, shape) for name, shape in outputs],
                              [numpy_helper.from_array(np.asarray(array), name) for name, array in weights])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def classes(path, name, shape, count, seed=1):
    """A product of the mean of each channel."""
    random = np.random.default_rng(seed)
    nodes = [helper.make_node("Conv", [name, "filter"], ["c"], "conv"), helper.make_node("Relu", ["c"], ["r"], "relu"),
             helper.make_node("GlobalAveragePool", ["r"], ["p"], "pool"), helper.make_node("Flatten", ["p"], ["f"], "flat"),
             helper.make_node("Gemm", ["f", "w"], ["y"], "gemm")]
    network(path, [(name, shape)], nodes, [("y", [shape[0], count])],
            [("filter", random.normal(size=(6, shape[1], 3, 3)).astype(np.float32)),
             ("w", random.normal(size=(6, count)).astype(np.float32))])


@pytest.fixture
def folder(tmp_path):
    """A place where all files are that documents name."""
    random = np.random.default_rng(2)
    classes(tmp_path / "model.onnx", "image", ["batch", 3, 8, 8], 4)
    classes(tmp_path / "retrained.onnx", "image", ["batch", 3, 8, 8], 4, seed=3)
    classes(tmp_path / "resnet50.onnx", "image", [1, 3, 224, 224], 1000)
    classes(tmp_path / "vgg19.onnx", "image", [1, 3, 32, 32], 10)
    classes(tmp_path / "net.onnx", "image", [1, 3, 16, 16], 10)
    network(tmp_path / "enlarge.onnx", [("image", [1, 3, 16, 16])],
            [helper.make_node("Resize", ["image", "", "scales"], ["y"])], [("y", [1, 3, 32, 32])],
            [("scales", np.array([1, 1, 2, 2], np.float32))])
    iris = classifier(["setosa", "versicolor", "virginica"])[0]
    for node in iris.graph.node:
        node.input[:] = ["X" if name == "x" else name for name in node.input]
    iris.graph.input[0].name = "X"
    onnx.save(iris, tmp_path / "iris.onnx")
    np.save(tmp_path / "x.npy", random.normal(size=(1, 3, 8, 8)).astype(np.float32))
    np.save(tmp_path / "y.npy", np.array([2], np.int64))
    np.save(tmp_path / "image.npy", random.normal(size=(1, 3, 224, 224)).astype(np.float32))
    np.save(tmp_path / "two.npy", np.array(2, np.float32))
    pixels = random.integers(0, 255, (16, 16, 3), np.uint8).tobytes()
    for name in ("photo.jpg", "small.png"):
        (tmp_path / name).write_bytes(b"P6 16 16 255\n" + pixels)
    (tmp_path / "classes.txt").write_text("\n".join(f"class {i}" for i in range(1000)))
    for name in ("samples", "test_data_set_0"):
        (tmp_path / name).mkdir()
    shutil.copy(tmp_path / "x.npy", tmp_path / "samples")
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    shutil.copy(ROOT / "examples/digits/digits.onnx", tmp_path)
    for name in ("predict_net", "init_net"):
        text = 'name: "n"\n' + ('op { input: "data" output: "y" type: "Relu" }\nexternal_input: "data"\nexternal_output: "y"\n'
                                if name == "predict_net" else "")
        for ending in ("pb", "pbtxt"):
            (tmp_path / f"{name}.{ending}").write_text(text)
    return tmp_path


def test_all_pages_are_looked_at():
    assert len(WITH_COMMANDS) >= 11 and sum(len(commands(page)) for page in WITH_COMMANDS) >= 45


@pytest.mark.parametrize("page", WITH_COMMANDS)
def test_commands(page, program, folder, monkeypatch):
    monkeypatch.setenv("AGLOW_PYTHON", sys.executable)
    if page == "docs/classifiers.md":
        np.save(folder / "x.npy", features(1))
    tensor = numpy_helper.from_array(np.load(folder / "x.npy"), "image")
    (folder / "test_data_set_0" / "input_0.pb").write_bytes(tensor.SerializeToString())

    def run(words):
        # What a driver of OpenCL never frees is not ours.
        leaks = {"ASAN_OPTIONS": "detect_leaks=0:abort_on_error=1"} if "opencl" in words else {}
        return subprocess.run([program, *words], cwd=folder, env={**os.environ, **leaks}, capture_output=True, text=True,
                              timeout=300)

    if any("--against" in words and "test_data_set_0" in words for words in commands(page)):
        assert run(["run", "model.onnx", "--input", "image=x.npy", "--output-dir", "expected"]).returncode == 0
        answer = numpy_helper.from_array(np.load(folder / "expected" / "0.npy"), "y")
        (folder / "test_data_set_0" / "output_0.pb").write_bytes(answer.SerializeToString())
    wrong = []
    for words in commands(page):
        if "pack-weights" in words:
            bundle = words[words.index("--for") + 1].split("/")[1]
            model = {"digits": "digits.onnx", "model": "model.onnx"}[bundle]
            words = [model if word == "retrained.onnx" and bundle == "digits" else word for word in words]
            assert run(["compile", model, "-o", "out", "--emit", "bundle", *(["--batch", "1"] if bundle == "model" else [])]).returncode == 0
        # A moment is enough here, and a size that a bundle needs stands in the text around it.
        words = ["0.1" if before == "--seconds" else word for before, word in zip(["", *words], words)]
        if words[0] == "bench" and "--seconds" not in words:
            words += ["--seconds", "0.1"]
        if words[0] in ("compile", "verify") and words[1] == "model.onnx" and not {"--dim", "--batch", "test_data_set_0"} & set(words):
            words += ["--dim", "batch=1"]
        if words[0] == "reduce":  # nothing is wrong with the model
            words += ["--test", "! grep -qa Relu {}"]
        if "onnxruntime" in words and importlib.util.find_spec("onnxruntime") is None:
            continue
        done = run(words)
        if done.returncode != 0:
            wrong.append(f"aglow {' '.join(words)}\n  exit code {done.returncode}: {done.stderr}")
    assert not wrong, f"{page}:\n" + "\n".join(wrong)
