"""aglow reduce: of a model that fails, the nodes that matter are left."""
import json

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from bundles import check, run


def chain(path, kinds, extra=()):
    """Operators one after the other, with a side branch, weights in several forms, and a graph inside."""
    info = helper.make_tensor_value_info
    nodes, value = [], "x"
    for number, kind in enumerate(kinds):
        inputs = [value, "w"] if kind in ("Add", "MatMul") else [value]
        nodes.append(helper.make_node(kind, inputs, [f"v{number}"], f"node{number}"))
        value = f"v{number}"
    weights = [helper.make_tensor("w", TensorProto.FLOAT, [4, 4], np.arange(16) / 16)]  # not as raw data
    graph = helper.make_graph([*nodes, *extra], "g", [info("x", TensorProto.FLOAT, ["batch", 4])],
                              [info(value, TensorProto.FLOAT, ["batch", 4])], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


# A test that fails where a model has two kinds of operators.
HAS_BOTH = "! (grep -qa Tanh {} && grep -qa Softmax {})"


def test_what_does_not_matter_goes(program, tmp_path):
    chain(tmp_path / "model.onnx", ["Relu", "MatMul", "Tanh", "Abs", "Add", "Softmax", "Neg", "Sigmoid"] * 3)
    done = json.loads(check(program, "reduce", tmp_path / "model.onnx", "-o", tmp_path / "small.onnx", "--test", HAS_BOTH, "--json"))
    small = onnx.load(tmp_path / "small.onnx")
    onnx.checker.check_model(small, full_check=True)
    assert sorted(node.op_type for node in small.graph.node) == ["Softmax", "Tanh"]
    assert done["nodes_before"] == 24 and done["nodes"] == 2 and done["exit_code"] == 1 and done["tests"] < 200
    assert all(d.dim_value in (1, 4) for i in small.graph.input for d in i.type.tensor_type.shape.dim)


def test_weights_go_with_their_nodes(program, tmp_path):
    chain(tmp_path / "model.onnx", ["Relu", "MatMul", "Tanh", "Abs"])
    check(program, "reduce", tmp_path / "model.onnx", "-o", tmp_path / "small.onnx", "--test", "! grep -qa MatMul {}")
    small = onnx.load(tmp_path / "small.onnx")
    assert [node.op_type for node in small.graph.node] == ["MatMul"]
    np.testing.assert_array_equal(numpy_helper.to_array(small.graph.initializer[0]), np.arange(16, dtype=np.float32).reshape(4, 4) / 16)
    check(program, "run", tmp_path / "small.onnx", "--input", f"{small.graph.input[0].name}={saved(tmp_path)}")


def saved(folder):
    np.save(folder / "x.npy", np.ones((1, 4), np.float32))
    return folder / "x.npy"


def test_graphs_inside_of_nodes_are_kept(program, tmp_path):
    info = helper.make_tensor_value_info
    branch = lambda op: helper.make_graph([helper.make_node(op, ["v1"], ["b"])], op, [], [info("b", TensorProto.FLOAT, None)])  # noqa: E731
    choose = helper.make_node("If", ["flag"], ["chosen"], "choose", then_branch=branch("Sqrt"), else_branch=branch("Floor"))
    chain(tmp_path / "model.onnx", ["Relu", "Abs", "Neg"], [choose])
    model = onnx.load(tmp_path / "model.onnx")
    model.graph.input.append(info("flag", TensorProto.BOOL, []))
    model.graph.output.append(info("chosen", TensorProto.FLOAT, None))
    onnx.save(model, tmp_path / "model.onnx")
    check(program, "reduce", tmp_path / "model.onnx", "-o", tmp_path / "small.onnx", "--test", "! grep -qa Floor {}")
    small = onnx.load(tmp_path / "small.onnx")
    assert [node.op_type for node in small.graph.node] == ["If"]
    assert {i.name for i in small.graph.input} == {"flag", "v1"}


def test_a_model_that_does_not_fail_is_told(program, tmp_path):
    chain(tmp_path / "model.onnx", ["Relu", "Tanh"])
    done = run(program, "reduce", tmp_path / "model.onnx", "--dim", "batch=1", "-o", tmp_path / "small.onnx")
    assert done.returncode == 1 and "does not fail" in done.stderr
    assert not (tmp_path / "small.onnx").exists()


def test_the_passes_that_matter_are_named(program, tmp_path):
    """What "fails" is that two transposes meet and are gone: the work of two rules, and of the pass that they are part of."""
    nodes = [helper.make_node(kind, [f"v{i}"], [f"v{i + 1}"]) for i, kind in
             enumerate(["Relu", "Transpose", "Tanh", "Transpose", "Sigmoid"])]
    info = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, "g", [info("v0", TensorProto.FLOAT, [3, 4])], [info("v5", TensorProto.FLOAT, [3, 4])])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "model.onnx")
    still_there = f"! grep -qa Transpose {{}} || {program} compile {{}} --stop-after optimize --emit graph -o - | grep -q Transpose"
    words = ["reduce", tmp_path / "model.onnx", "-o", tmp_path / "small.onnx", "--test", still_there]
    done = json.loads(check(program, *words, "--json"))
    assert [node.op_type for node in onnx.load(tmp_path / "small.onnx").graph.node] == ["Transpose", "Tanh", "Transpose"]
    assert done["passes"] == ["simplify", "sink-transpose-unary", "transpose-transpose"]
    assert "without it nothing fails: --disable transpose-transpose\n" in check(program, *words)


@pytest.mark.parametrize("rule", [True, False])
def test_the_same_error_is_asked_for(program, tmp_path, rule):
    """Of a node that nobody knows, that node is left; errors with other codes do not count."""
    unknown = helper.make_node("Frob", ["v0"], ["f"], "frob", domain="nobody")
    chain(tmp_path / "model.onnx", ["Relu", "Tanh", "Abs"], [unknown])
    model = onnx.load(tmp_path / "model.onnx")
    model.opset_import.append(helper.make_opsetid("nobody", 1))
    model.graph.output.append(helper.make_tensor_value_info("f", TensorProto.FLOAT, [1, 4]))
    model.graph.value_info.append(helper.make_tensor_value_info("v0", TensorProto.FLOAT, [1, 4]))
    onnx.save(model, tmp_path / "model.onnx")
    words = [] if rule else ["--test", f"{program} inspect {{}} --support"]
    done = json.loads(check(program, "reduce", tmp_path / "model.onnx", "-o", tmp_path / "small.onnx", "--dim", "batch=1", "--json", *words))
    assert done["nodes"] == 1 and done["error"] == "E301" and done["exit_code"] == 3
