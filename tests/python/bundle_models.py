"""Small models of different kinds for the tests of bundles: build(NAME) gives (model, inputs by name)."""
import numpy as np
from onnx import TensorProto, helper, numpy_helper


class Net:
    """Nodes one after the other, with random weights that are always the same."""

    def __init__(self):
        self.random = np.random.default_rng(11)
        self.nodes, self.constants = [], []

    def constant(self, array):
        self.constants.append(numpy_helper.from_array(np.asarray(array), f"c{len(self.constants)}"))
        return self.constants[-1].name

    def weights(self, *shape, dtype=np.float32):
        return self.constant((self.random.normal(size=shape) / np.sqrt(np.prod(shape[1:]))).astype(dtype))

    def node(self, kind, *inputs, **attributes):
        name = f"n{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], name=name, **attributes))
        return name

    def model(self, inputs, outputs):
        for node in self.nodes:
            node.output[:] = [outputs[0][0] if name == outputs[0][2] else name for name in node.output]
            node.input[:] = [outputs[0][0] if name == outputs[0][2] else name for name in node.input]
        graph = helper.make_graph(
            self.nodes, "net", [helper.make_tensor_value_info(name, kind, shape) for name, kind, shape in inputs],
            [helper.make_tensor_value_info(name, kind, None) for name, kind, _ in outputs], self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def convnet():
    """Convolutions of several kinds, an add that joins two ways, pooling, softmax."""
    net = Net()
    first = net.node("Relu", net.node("Conv", "x", net.weights(24, 3, 3, 3), net.weights(24), pads=[1, 1, 1, 1]))
    depthwise = net.node("Conv", first, net.weights(24, 1, 3, 3), pads=[1, 1, 1, 1], group=24)
    joined = net.node("Add", net.node("Conv", depthwise, net.weights(24, 24, 1, 1)), first)
    strided = net.node("Conv", joined, net.weights(40, 24, 3, 3), strides=[2, 2], pads=[1, 1, 1, 1])
    pooled = net.node("GlobalAveragePool", net.node("Sigmoid", strided))
    last = net.node("Softmax", net.node("Gemm", net.node("Flatten", pooled), net.weights(40, 7), net.weights(7)))
    return (net.model([("x", TensorProto.FLOAT, [1, 3, 13, 11])], [("y", TensorProto.FLOAT, last)]),
            {"x": np.random.default_rng(3).normal(size=(1, 3, 13, 11)).astype(np.float32)})


def mlp(batch=5):
    """Products with an open batch, a normalisation and a GELU."""
    net = Net()
    hidden = net.node("Tanh", net.node("Gemm", "x", net.weights(33, 70), net.weights(70)))
    normal = net.node("LayerNormalization", hidden, net.weights(70), net.weights(70))
    gelu = net.node("Mul", normal, net.node("Erf", normal))
    last = net.node("MatMul", gelu, net.weights(70, 9))
    return (net.model([("x", TensorProto.FLOAT, ["batch", 33])], [("y", TensorProto.FLOAT, last)]),
            {"x": np.random.default_rng(4).normal(size=(batch, 33)).astype(np.float32)})


def int8():
    """Integers between two scales."""
    net = Net()
    scale, zero = net.constant(np.float32(0.04)), net.constant(np.int8(3))
    weights = net.constant(net.random.integers(-90, 90, (40, 17)).astype(np.int8))
    weights_scale, weights_zero = net.constant(np.float32(0.01)), net.constant(np.int8(0))
    quantized = net.node("QuantizeLinear", "x", scale, zero)
    product = net.node("QLinearMatMul", quantized, scale, zero, weights, weights_scale, weights_zero, scale, zero)
    last = net.node("DequantizeLinear", product, scale, zero)
    return (net.model([("x", TensorProto.FLOAT, [6, 40])], [("y", TensorProto.FLOAT, last)]),
            {"x": np.random.default_rng(5).normal(size=(6, 40)).astype(np.float32)})


def quantized():
    """Convolutions of bytes, a table and a product by integers: all but the ends is exact."""
    net = Net()

    def rounded(value, scale, zero):
        scale, zero = net.constant(np.float32(scale)), net.constant(np.uint8(zero))
        return net.node("DequantizeLinear", net.node("QuantizeLinear", value, scale, zero), scale, zero)

    def weights(*shape):
        integers = net.constant(net.random.integers(-127, 128, shape).astype(np.int8))
        scales = net.constant(net.random.uniform(0.002, 0.01, shape[0]).astype(np.float32))
        return net.node("DequantizeLinear", integers, scales, net.constant(np.zeros(shape[0], np.int8)), axis=0)

    first = net.node("Conv", rounded("x", 0.02, 128), weights(32, 16, 3, 3), pads=[1, 1, 1, 1])
    each = net.node("Conv", rounded(net.node("Relu", first), 0.05, 0), weights(32, 1, 3, 3), group=32, strides=[2, 2])
    table = rounded(net.node("Sigmoid", rounded(each, 0.04, 131)), 1 / 256, 0)
    last = rounded(net.node("Conv", table, weights(20, 32, 1, 1)), 0.03, 120)
    return (net.model([("x", TensorProto.FLOAT, [1, 16, 9, 9])], [("y", TensorProto.FLOAT, last)]),
            {"x": np.random.default_rng(8).normal(size=(1, 16, 9, 9)).astype(np.float32)})


def f16():
    """Half precision throughout."""
    net = Net()
    product = net.node("Add", net.node("MatMul", "x", net.weights(24, 20, dtype=np.float16)),
                       net.weights(20, dtype=np.float16))
    last = net.node("Softmax", net.node("Exp", product))
    return (net.model([("x", TensorProto.FLOAT16, [4, 24])], [("y", TensorProto.FLOAT16, last)]),
            {"x": np.random.default_rng(6).normal(size=(4, 24)).astype(np.float16)})


def gather():
    """Indices from outside, of which one may be wrong."""
    net = Net()
    last = net.node("Gather", net.constant(np.arange(20, dtype=np.float32).reshape(5, 4)), "i")
    return (net.model([("i", TensorProto.INT64, [3])], [("y", TensorProto.FLOAT, last)]),
            {"i": np.array([4, 0, -2], np.int64)})


def resnet50():
    """The architecture of ResNet-50 with a quarter of its channels, on a small image."""
    net = Net()

    def conv(x, inputs, outputs, size, stride=1, relu=True):
        x = net.node("Conv", x, net.weights(outputs, inputs, size, size), strides=[stride] * 2, pads=[size // 2] * 4)
        scale, shift, mean = (net.constant(net.random.uniform(low, 1.2, outputs).astype(np.float32))
                              for low in (0.8, -0.2, -0.2))
        x = net.node("BatchNormalization", x, scale, shift, mean, scale)
        return net.node("Relu", x) if relu else x

    x = net.node("MaxPool", conv("x", 3, 16, 7, 2), kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    channels = 16
    for stage, blocks in enumerate((3, 4, 6, 3)):
        width = 16 << stage
        for block in range(blocks):
            stride = 2 if stage > 0 and block == 0 else 1
            way = conv(conv(conv(x, channels, width, 1), width, width, 3, stride), width, 4 * width, 1, relu=False)
            short = x if block > 0 else conv(x, channels, 4 * width, 1, stride, relu=False)
            x, channels = net.node("Relu", net.node("Add", way, short)), 4 * width
    last = net.node("Gemm", net.node("Flatten", net.node("GlobalAveragePool", x)), net.weights(channels, 100), net.weights(100))
    return (net.model([("x", TensorProto.FLOAT, [1, 3, 64, 64])], [("y", TensorProto.FLOAT, last)]),
            {"x": np.random.default_rng(8).normal(size=(1, 3, 64, 64)).astype(np.float32)})


def branches():
    """Ways that do not depend on each other, small enough to be run side by side, and an index that may be wrong."""
    net = Net()
    wide = net.node("Relu", net.node("Conv", "x", net.weights(32, 16, 1, 1)))
    deep = net.node("Conv", net.node("Conv", "x", net.weights(12, 16, 1, 1)), net.weights(20, 12, 3, 3), pads=[1] * 4)
    pooled = net.node("Conv", net.node("MaxPool", "x", kernel_shape=[3, 3], pads=[1] * 4), net.weights(8, 16, 1, 1))
    picked = net.node("Gather", "x", "i", axis=1)
    last = net.node("Concat", wide, deep, pooled, picked, axis=1)
    return (net.model([("x", TensorProto.FLOAT, [1, 16, 28, 28]), ("i", TensorProto.INT64, [4])],
                      [("y", TensorProto.FLOAT, last)]),
            {"x": np.random.default_rng(9).normal(size=(1, 16, 28, 28)).astype(np.float32),
             "i": np.array([4, 0, 15, -2], np.int64)})


MODELS = {"convnet": convnet, "branches": branches, "resnet50": resnet50, "mlp": mlp, "int8": int8,
          "quantized": quantized, "f16": f16, "gather": gather}
# Of results against the interpreter's: relative, absolute.
# Sums of f32 that differ in the last digit may become neighbouring bf16.
BF16_TOLERANCE = (2e-2, 1e-2)
TOLERANCES = {"convnet": (1e-4, 1e-6), "branches": (1e-4, 1e-5), "resnet50": (1e-4, 1e-4), "mlp": (1e-4, 1e-5),
              "int8": (0, 0.0401), "quantized": (0, 0), "f16": (4e-3, 1e-4), "gather": (0, 0)}
