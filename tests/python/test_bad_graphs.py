"""Graphs whose structure or nodes break the rules: code 2 (3 for what is unknown), all faults named at once."""
import numpy as np
import pytest
from bad_models import model, node, zeros
from onnx import TensorProto, helper, numpy_helper

X = {"x": zeros(2, 3)}


# ---- structure

def test_cycle(refusal):
    nodes = [node("Add", ["x", "b"], ["a"], "first"), node("Relu", ["a"], ["b"], "second"), node("Relu", ["b"])]
    refusal.refuse(model(nodes, X), {2}, inputs=X)


def test_own_output(refusal):
    refusal.refuse(model([node("Add", ["x", "y"])], X), {2}, inputs=X)


def test_undefined_values_are_all_named(refusal):
    nodes = [node("Add", ["x", "ghost_one"], ["a"]), node("Add", ["a", "ghost_two"])]
    refusal.refuse(model(nodes, X), {2}, "ghost_one", "ghost_two", inputs=X)


def test_undefined_output(refusal):
    refusal.refuse(model([node("Relu", ["x"])], X, outputs=["y", "ghost"]), {2}, "ghost", inputs=X)


def test_value_defined_twice(refusal):
    nodes = [node("Relu", ["x"], ["twice"]), node("Neg", ["x"], ["twice"]), node("Abs", ["twice"])]
    refusal.refuse(model(nodes, X), {2}, "twice", inputs=X)


def test_node_defines_an_input(refusal):
    refusal.refuse(model([node("Relu", ["x"], ["x"]), node("Relu", ["x"])], X), {2}, "x", inputs=X)


def test_initializer_defined_twice(refusal):
    bad = model([node("Add", ["x", "twice"])], X, {"twice": zeros(3)})
    bad.graph.initializer.append(numpy_helper.from_array(zeros(3) + 1, "twice"))
    refusal.refuse(bad, {2}, "twice", inputs=X)


def test_unknown_operators_are_all_named(refusal):
    nodes = [node("Foo", ["x"], ["a"], "n1"), node("Bar", ["a"], ["b"], "n2"), node("Relu", ["b"], ["c"], "n3"),
             node("Qux", ["c"], ["y"], "n4")]
    refusal.refuse(model(nodes, X), {2, 3}, "Foo", "Bar", "Qux", inputs=X)


def test_unknown_domain(refusal):
    nodes = [node("Relu", ["x"], domain="com.nowhere")]
    refusal.refuse(model(nodes, X, opsets=[("", 17), ("com.nowhere", 1)]), {2, 3}, "com.nowhere", inputs=X)
    refusal.refuse(model(nodes, X), {2, 3}, "com.nowhere", inputs=X)


@pytest.mark.parametrize("version", [9999, 0, -1])
def test_unknown_opset(refusal, version):
    refusal.refuse(model([node("Relu", ["x"])], X, opsets=[("", version)]), {2, 3}, inputs=X)


@pytest.mark.parametrize("calls", [{"F": "F"}, {"F": "G", "G": "F"}])
def test_recursive_functions(refusal, calls):
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)]
    functions = [helper.make_function("local", name, ["a"], ["b"],
                                      [node(callee, ["a"], ["b"], f"in_{name}", domain="local")], opsets)
                 for name, callee in calls.items()]
    bad = model([node("F", ["x"], domain="local")], X, opsets=[("", 17), ("local", 1)], functions=functions)
    refusal.refuse(bad, {2}, inputs=X)


# ---- nodes: kind, attributes, the input x, constants

IMAGE = zeros(1, 4, 8, 8)
KERNEL = zeros(4, 4, 3, 3)
MATRIX = zeros(2, 3)
INTS = {"dtype": np.int64}


def ints(*values):
    return np.array(values, np.int64)


NODES = {
    "conv group 0": ("Conv", {"group": 0}, IMAGE, KERNEL),
    "conv group does not divide": ("Conv", {"group": 3}, IMAGE, KERNEL),
    "conv stride 0": ("Conv", {"strides": [0, 1]}, IMAGE, KERNEL),
    "conv stride negative": ("Conv", {"strides": [-1, 1]}, IMAGE, KERNEL),
    "conv dilation 0": ("Conv", {"dilations": [1, 0]}, IMAGE, KERNEL),
    "conv kernel larger than input": ("Conv", {}, zeros(1, 4, 2, 2), KERNEL),
    "conv kernel_shape is not the filter's": ("Conv", {"kernel_shape": [5, 5]}, IMAGE, KERNEL),
    "conv too few strides": ("Conv", {"strides": [1]}, IMAGE, KERNEL),
    "conv too few pads": ("Conv", {"pads": [1, 1]}, IMAGE, KERNEL),
    "conv unknown auto_pad": ("Conv", {"auto_pad": "SIDEWAYS"}, IMAGE, KERNEL),
    "conv filter of another rank": ("Conv", {}, IMAGE, zeros(4, 4, 3)),
    "conv filter of other channels": ("Conv", {}, IMAGE, zeros(4, 3, 3, 3)),
    "conv bias of another length": ("Conv", {}, IMAGE, KERNEL, zeros(5)),
    "conv without filter": ("Conv", {}, IMAGE),
    "transposed conv group 0": ("ConvTranspose", {"group": 0}, IMAGE, KERNEL),
    "transposed conv stride 0": ("ConvTranspose", {"strides": [0, 0]}, IMAGE, KERNEL),
    "max pool kernel 0": ("MaxPool", {"kernel_shape": [0, 0]}, IMAGE),
    "max pool stride 0": ("MaxPool", {"kernel_shape": [2, 2], "strides": [0, 0]}, IMAGE),
    "max pool kernel larger than input": ("MaxPool", {"kernel_shape": [9, 9]}, IMAGE),
    "max pool without kernel": ("MaxPool", {}, IMAGE),
    "average pool kernel of another rank": ("AveragePool", {"kernel_shape": [2]}, IMAGE),
    "softmax axis too large": ("Softmax", {"axis": 2}, MATRIX),
    "softmax axis too small": ("Softmax", {"axis": -3}, MATRIX),
    "softmax axis is a string": ("Softmax", {"axis": "one"}, MATRIX),
    "concat axis": ("Concat", {"axis": 2}, MATRIX, MATRIX),
    "concat other dims differ": ("Concat", {"axis": 0}, MATRIX, zeros(2, 4)),
    "concat ranks differ": ("Concat", {"axis": 0}, MATRIX, zeros(2)),
    "concat without axis": ("Concat", {}, MATRIX, MATRIX),
    "transpose perm repeats": ("Transpose", {"perm": [0, 0]}, MATRIX),
    "transpose perm too short": ("Transpose", {"perm": [0]}, MATRIX),
    "transpose perm out of range": ("Transpose", {"perm": [0, 2]}, MATRIX),
    "reduce axis out of range": ("ReduceMean", {"axes": [7]}, MATRIX),
    "reduce axes repeat": ("ReduceSum", {}, MATRIX, ints(1, -1)),
    "squeeze a dim that is not 1": ("Squeeze", {}, MATRIX, ints(0)),
    "squeeze axis out of range": ("Squeeze", {}, MATRIX, ints(5)),
    "unsqueeze axes repeat": ("Unsqueeze", {}, MATRIX, ints(0, 0)),
    "gather axis": ("Gather", {"axis": 2}, MATRIX, ints(0)),
    "gather constant index": ("Gather", {}, MATRIX, ints(2)),
    "reshape to another size": ("Reshape", {}, MATRIX, ints(5)),
    "reshape with two unknowns": ("Reshape", {}, MATRIX, ints(-1, -1)),
    "reshape to a negative dim": ("Reshape", {}, MATRIX, ints(-2, 3)),
    "flatten axis": ("Flatten", {"axis": 3}, MATRIX),
    "split to another size": ("Split", {"axis": 1}, MATRIX, ints(2)),
    "slice step 0": ("Slice", {}, MATRIX, ints(0), ints(1), ints(0), ints(0)),
    "slice lengths differ": ("Slice", {}, MATRIX, ints(0, 0), ints(1)),
    "matmul sizes": ("MatMul", {}, MATRIX, MATRIX),
    "gemm sizes": ("Gemm", {}, MATRIX, MATRIX),
    "gemm bias does not broadcast": ("Gemm", {"transB": 1}, MATRIX, MATRIX, zeros(5)),
    "add does not broadcast": ("Add", {}, MATRIX, zeros(4)),
    "add of two types": ("Add", {}, MATRIX, zeros(3, **INTS)),
    "expand does not broadcast": ("Expand", {}, MATRIX, ints(4)),
    "tile repeats of another length": ("Tile", {}, MATRIX, ints(2)),
    "tile repeats negative": ("Tile", {}, MATRIX, ints(-1, 1)),
    "pad of another length": ("Pad", {}, MATRIX, ints(1, 1)),
    "pad of unknown mode": ("Pad", {"mode": "sideways"}, MATRIX, ints(1, 1, 1, 1)),
    "depth to space block 0": ("DepthToSpace", {"blocksize": 0}, IMAGE),
    "depth to space block does not divide": ("DepthToSpace", {"blocksize": 3}, IMAGE),
    "cast to an unknown type": ("Cast", {"to": 999}, MATRIX),
    "cast without type": ("Cast", {}, MATRIX),
    "batch norm lengths": ("BatchNormalization", {}, IMAGE, zeros(4), zeros(4), zeros(3), zeros(4)),
    "top k larger than the axis": ("TopK", {}, MATRIX, ints(4)),
    "logical not of floats": ("Not", {}, MATRIX),
    "relu of two inputs": ("Relu", {}, MATRIX, MATRIX),
    "prelu slope does not broadcast": ("PRelu", {}, MATRIX, zeros(4)),
    "resize scale negative": ("Resize", {}, IMAGE, zeros(0), np.array([1, 1, -1, 1], np.float32)),
    "quantize scale 0": ("QuantizeLinear", {}, MATRIX, np.float32(0), np.uint8(0)),
    "quantize scale NaN": ("QuantizeLinear", {}, MATRIX, np.float32("nan"), np.uint8(0)),
    "quantize scale negative": ("QuantizeLinear", {}, MATRIX, np.float32(-1), np.uint8(0)),
    "quantize scale infinite": ("QuantizeLinear", {}, MATRIX, np.float32("inf"), np.uint8(0)),
    "quantize per axis, another length": ("QuantizeLinear", {"axis": 1}, MATRIX, np.ones(2, np.float32),
                                          np.zeros(2, np.uint8)),
    "quantize offset of another length": ("QuantizeLinear", {"axis": 1}, MATRIX, np.ones(3, np.float32),
                                          np.zeros(2, np.uint8)),
    "dequantize scale 0": ("DequantizeLinear", {}, zeros(2, 3, dtype=np.uint8), np.float32(0), np.uint8(0)),
    "dequantize per axis, another length": ("DequantizeLinear", {"axis": 1}, zeros(2, 3, dtype=np.uint8),
                                            np.ones(2, np.float32), np.zeros(2, np.uint8)),
}


def with_node(kind, attributes, x, constants):
    """A model of one node; its outputs have the types that the operator gives."""
    names = ["" if np.size(c) == 0 else f"c{index}" for index, c in enumerate(constants)]
    outputs = {"TopK": ["y", "i"]}.get(kind, ["y"])
    made = model([node(kind, ["x", *names], outputs, **attributes)], {"x": x},
                 {name: constant for name, constant in zip(names, constants) if name})
    if kind == "QuantizeLinear":
        made.graph.output[0].type.tensor_type.elem_type = TensorProto.UINT8
    return made


@pytest.mark.parametrize("name", NODES)
def test_node(refusal, name):
    kind, attributes, x, *constants = NODES[name]
    outcome = refusal.run(with_node(kind, attributes, x, constants), {"x": x})
    # An operator or element type that is not supported at all cannot be judged further.
    unknown = outcome.code == 3 and ("E301" in outcome.err or "element type" in outcome.err)
    refusal.check(outcome, {3} if unknown else {2}, "culprit")


def test_all_bad_nodes_are_named(refusal):
    nodes = [node("Softmax", ["x"], ["a"], "bad_axis", axis=9), node("Transpose", ["x"], ["b"], "bad_perm", perm=[0, 0]),
             node("Relu", ["x"])]
    refusal.refuse(model(nodes, X, outputs=["y", "a", "b"]), {2}, "bad_axis", "bad_perm", inputs=X)


# ---- sizes that no machine has

HUGE = {
    "expand": ("Expand", {}, zeros(1, 1), ints(10 ** 6, 10 ** 6)),
    "tile": ("Tile", {}, zeros(1, 1), ints(10 ** 6, 10 ** 6)),
    "resize": ("Resize", {}, zeros(1, 1, 1, 1), zeros(0), np.array([1, 1, 1e6, 1e6], np.float32)),
    "pad": ("Pad", {}, zeros(1, 1), ints(0, 0, 10 ** 6, 10 ** 6)),
    "outer product": ("MatMul", {}, zeros(10 ** 6, 1), zeros(1, 10 ** 6)),
}


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("name", HUGE)
def test_huge_result(refusal, name):
    kind, attributes, x, *constants = HUGE[name]
    refusal.refuse(with_node(kind, attributes, x, constants), {4}, inputs={"x": x})


@pytest.mark.usefixtures("backend")
def test_gigapixel_under_a_memory_limit(refusal, sanitized):
    if sanitized:
        pytest.skip("sanitizers need the address space")
    x = {"x": zeros(1, 1)}
    huge = model([node("Expand", ["x", "c0"])], x, {"c0": ints(40_000, 40_000)})
    refusal.check(refusal.run(huge, x, memory_mb=1024), {4})


def test_result_size_overflows(refusal):
    x = {"x": zeros(1, 1)}
    refusal.refuse(model([node("Expand", ["x", "c0"])], x, {"c0": ints(1 << 40, 1 << 40)}), {2, 4}, inputs=x)
