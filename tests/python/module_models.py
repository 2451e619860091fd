"""Small models for the tests of the Python module."""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

F32 = TensorProto.FLOAT


def value(name, shape=None, element=F32):
    return helper.make_tensor_value_info(name, element, shape)


def model(nodes, inputs, outputs, initializers=(), opset=21, functions=()):
    tensors = [numpy_helper.from_array(np.asarray(array), name) for name, array in dict(initializers).items()]
    graph = helper.make_graph(nodes, "test", inputs, outputs, tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], functions=functions, ir_version=10)


def node(operator, inputs, outputs, **attributes):
    return helper.make_node(operator, inputs.split(), outputs.split(), name=f"{operator}_node", **attributes)


def affine():
    """y = x @ weights + bias for any number of rows; bias has a default."""
    return model([node("MatMul", "x weights", "product"), node("Add", "product bias", "y")],
                 [value("x", ["rows", 3]), value("bias", [2])], [value("y", ["rows", 2])],
                 {"weights": np.arange(6, dtype=np.float32).reshape(3, 2), "bias": np.ones(2, np.float32)})


def unary(operator, element=F32, shape=("n",), **attributes):
    return model([node(operator, "x", "y", **attributes)], [value("x", shape, element)], [value("y", shape, element)])


def two_outputs():
    return model([node("Add", "a b", "sum"), node("Sub", "a b", "difference")],
                 [value("a", ["n"]), value("b", ["n"])], [value("sum", ["n"]), value("difference", ["n"])])


def reshape():
    """The value of an input decides the shape of the output."""
    return model([node("Reshape", "x shape", "y")], [value("x", [6]), value("shape", ["rank"], TensorProto.INT64)],
                 [value("y")])


def heavy(size=192, count=40):
    """A chain of products that takes the interpreter a good while."""
    nodes = [node("MatMul", f"v{i} v{i}", f"v{i + 1}") for i in range(count)]
    return model(nodes, [value("v0", [size, size])], [value(f"v{count}", [size, size])])


def save(proto, path):
    onnx.save(proto, path)
    return path
