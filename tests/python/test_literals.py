"""Loops that differ only in a number that their code holds are different code."""
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper


@pytest.mark.parametrize("numbers", [(2.0, 3.0, 0.5), (1.25, 2.0)])
def test_scalars_of_the_same_loop(aglow, tmp_path, numbers):
    x = np.linspace(-1, 1, 300, dtype=np.float32).reshape(3, 100)
    nodes, constants, value = [], [numpy_helper.from_array(np.array(1), "axis")], "x"
    wanted = x.astype(np.float64)
    # What is summed up along an axis stands between loops.
    for i, number in enumerate(numbers):
        constants.append(numpy_helper.from_array(np.float32(number), f"c{i}"))
        nodes += [helper.make_node("Mul", [value, f"c{i}"], [f"m{i}"]), helper.make_node("Tanh", [f"m{i}"], [f"t{i}"]),
                  helper.make_node("CumSum", [f"t{i}", "axis"], [f"y{i}"])]
        value = f"y{i}"
        wanted = np.cumsum(np.tanh(wanted * number), axis=1)
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
                              [helper.make_tensor_value_info(value, TensorProto.FLOAT, x.shape)], constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), tmp_path / "m.onnx")
    np.save(tmp_path / "x.npy", x)
    aglow("run", tmp_path / "m.onnx", "--backend", "cpu", "--input", f"x={tmp_path}/x.npy", "-o", tmp_path / "out")
    np.testing.assert_allclose(np.load(tmp_path / "out" / "0.npy"), wanted, rtol=1e-4, atol=1e-4)
