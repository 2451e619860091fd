"""Models of many like pieces: the time to compile grows with their number, not with its square. It is
the processor's time, and the bound is generous: what it has to tell apart lies a factor of ten and more away."""
import resource
import subprocess

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

SECONDS = 20  # about two are needed


def spent():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def values(names, shape):
    return [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in names]


def concat_of_operands(count):
    names = ["x" if i % 2 else "z" for i in range(count)]
    return [helper.make_node("Concat", names, ["y"], axis=1)], values("xz", [3, 2]), values("y", [3, 2 * count]), []


def concat_of_inputs(count):
    names = [f"x{i}" for i in range(count)]
    return [helper.make_node("Concat", names, ["y"], axis=0)], values(names, [2]), values("y", [2 * count]), []


def sum_of_inputs(count):
    names = [f"x{i}" for i in range(count)]
    return [helper.make_node("Sum", names, ["y"])], values(names, [2]), values("y", [2]), []


def appends(count):
    """Each result is read elsewhere as well, so that the concatenations cannot become one."""
    nodes, last = [], "x"
    for i in range(count):
        nodes += [helper.make_node("Concat", [last, "z"], [f"t{i}"], axis=1),
                  helper.make_node("ReduceMax", [f"t{i}"], [f"m{i}"], axes=[1], keepdims=1)]
        last = f"t{i}"
    nodes.append(helper.make_node("Concat", [f"m{i}" for i in range(count)], ["y"], axis=1))
    return nodes, values("xz", [3, 1]), values("y", [3, count]), []


def split_into_outputs(count):
    names = [f"y{i}" for i in range(count)]
    return [helper.make_node("Split", ["x"], names, axis=1)], values("x", [3, 2 * count]), values(names, [3, 2]), []


def split_and_concat(count):
    parts = [f"s{i}" for i in range(count)]
    nodes = [helper.make_node("Split", ["x"], parts, axis=1), helper.make_node("Concat", parts[::-1], ["y"], axis=1)]
    return nodes, values("x", [3, 2 * count]), values("y", [3, 2 * count]), []


def outputs(count):
    names = [f"y{i}" for i in range(count)]
    nodes = [helper.make_node("Mul", ["x", f"c{i}"], [name]) for i, name in enumerate(names)]
    return nodes, values("x", [2]), values(names, [2]), [helper.make_tensor(f"c{i}", 1, [], [i]) for i in range(count)]


def small_nodes(count):
    nodes, last = [], "x"
    for i in range(count):
        op, more = [("Transpose", []), ("Add", ["x"])][i % 2]
        nodes.append(helper.make_node(op, [last, *more], [f"t{i}"]))
        last = f"t{i}"
    return [*nodes, helper.make_node("Identity", [last], ["y"])], values("x", [4, 4]), values("y", [4, 4]), []


CASES = [(concat_of_operands, 20000), (concat_of_inputs, 10000), (sum_of_inputs, 3000), (appends, 300),
         (split_into_outputs, 3000), (split_and_concat, 3000), (outputs, 1000), (small_nodes, 10000)]


@pytest.mark.parametrize("make,count", CASES, ids=[make.__name__ for make, _ in CASES])
def test_many(program, tmp_path, make, count):
    nodes, inputs, results, constants = make(count)
    graph = helper.make_graph(nodes, "g", inputs, results, constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), tmp_path / "m.onnx")
    before = spent()
    done = subprocess.run([program, "bench", tmp_path / "m.onnx", "--backend", "cpu", "--threads", "1", "--runs", "1",
                           "--cache", "off"], capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr
    assert spent() - before < SECONDS


def test_results(program, tmp_path):
    """Beyond the first few shapes kernels read theirs from a table: with the same results as the interpreter."""
    nodes, inputs, results, constants = appends(70)
    graph = helper.make_graph(nodes, "g", inputs, results, constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), tmp_path / "m.onnx")
    rng = np.random.default_rng(1)
    words = []
    for info in inputs:
        np.save(tmp_path / f"{info.name}.npy", rng.standard_normal((3, 1)).astype(np.float32))
        words += ["--input", f"{info.name}={tmp_path}/{info.name}.npy"]
    given = []
    for backend in ("cpu", "interpreter"):
        subprocess.run([program, "run", tmp_path / "m.onnx", "--backend", backend, *words, "--output-dir", tmp_path / backend],
                       check=True)
        given.append(np.load(tmp_path / backend / "0.npy"))
    np.testing.assert_array_equal(*given)
