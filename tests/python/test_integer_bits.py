"""Networks of integers give the same bits on every kind of processor: random layers and shapes."""
import platform

import numpy as np
import onnx
import pytest
from bundles import host_has
from onnx import TensorProto, helper, numpy_helper

# What is multiplied at once, and with which instructions; the last is this processor with all that it has.
PROCESSORS = {
    "sse2": (["--cpu", "x86-64"], ()),
    "avx2": (["--cpu", "x86-64-v3"], ("avx2", "fma")),
    "avx512": (["--cpu", "x86-64-v4"], ("avx512f", "avx512bw", "avx512dq", "avx512vl")),
    "vnni": (["--cpu", "x86-64-v4", "--features", "+avx512vnni"], ("avx512vl", "avx512_vnni")),
    "native": ([], ()),
}


class Net:
    """A chain of layers between QuantizeLinear and DequantizeLinear, and branches of it."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.nodes, self.constants, self.number = [], [], 0
        self.kind = np.int8 if self.rng.integers(0, 2) else np.uint8

    def name(self, prefix):
        self.number += 1
        return f"{prefix}{self.number}"

    def constant(self, array):
        self.constants.append(numpy_helper.from_array(np.asarray(array), self.name("c")))
        return self.constants[-1].name

    def node(self, op, *inputs, **attributes):
        self.nodes.append(helper.make_node(op, list(inputs), [self.name(op.lower())], **attributes))
        return self.nodes[-1].output[0]

    def quantized(self, value, scale):
        middle = 0 if self.kind == np.int8 else 128
        zero = self.kind(middle + self.rng.integers(-40, 40))
        parameters = self.constant(np.float32(scale)), self.constant(zero)
        return self.node("DequantizeLinear", self.node("QuantizeLinear", value, *parameters), *parameters)

    def weights(self, shape, axis):
        scales = self.rng.uniform(0.002, 0.01, shape[axis]).astype(np.float32)
        levels = self.rng.integers(-127, 128, shape).astype(np.int8)
        zeros = self.constant(np.zeros(shape[axis], np.int8))
        return self.node("DequantizeLinear", self.constant(levels), self.constant(scales), zeros, axis=axis), scales

    def conv(self, x, channels):
        outputs = int(self.rng.choice([1, 8, 20, 32, 48]))
        kernel, stride, dilation = (int(self.rng.choice(of)) for of in ((1, 3, 5), (1, 1, 2), (1, 1, 2)))
        group = 1
        if self.rng.integers(0, 3) == 0:
            group = channels
            outputs = channels
        elif channels % 2 == 0 and outputs % 2 == 0 and self.rng.integers(0, 4) == 0:
            group = 2
        filter_, scales = self.weights((outputs, channels // group, kernel, kernel), 0)
        bias = self.node("DequantizeLinear", self.constant(self.rng.integers(-900, 900, outputs).astype(np.int32)),
                         self.constant(scales * np.float32(0.02)), self.constant(np.zeros(outputs, np.int32)), axis=0)
        y = self.node("Conv", x, filter_, bias, strides=[stride] * 2, dilations=[dilation] * 2, group=group,
                      pads=[dilation * (kernel // 2)] * 4)
        return y, outputs

    def layer(self, x, channels):
        """The next value, and its channels."""
        choice = self.rng.integers(0, 9)
        if choice < 4:
            y, channels = self.conv(x, channels)
            if self.rng.integers(0, 2):
                y = self.node("Relu", y)
        elif choice == 4:
            y = self.node("Add", self.quantized(self.node("Transpose", x, perm=[0, 1, 3, 2]), 0.03), x)
        elif choice == 5:
            kind = self.rng.choice(["MaxPool", "AveragePool"])
            y = self.node(kind, x, kernel_shape=[3, 3], pads=[1] * 4, strides=[1, 1])
        elif choice == 6:
            y = self.node("Concat", x, self.quantized(self.node("Clip", x, self.constant(np.float32(-1)),
                                                                self.constant(np.float32(1))), 0.02), axis=1)
            channels *= 2
        elif choice == 7:
            y = self.node(str(self.rng.choice(["Sigmoid", "Tanh", "HardSwish"])), x)
        else:
            y = self.node("Resize", x, "", self.constant(np.array([1, 1, 2, 2], np.float32)), mode="nearest",
                          nearest_mode="floor", coordinate_transformation_mode="asymmetric")
        return self.quantized(y, 0.02 * self.rng.uniform(0.5, 2)), channels

    def model(self):
        channels, size = int(self.rng.choice([3, 7, 16, 32])), int(self.rng.integers(5, 12))
        shape = [int(self.rng.integers(1, 3)), channels, size, size]
        x = self.quantized("x", 0.02)
        for _ in range(5):
            x, channels = self.layer(x, channels)
        columns = int(self.rng.choice([5, 32, 70]))
        last = self.node("Transpose", x, perm=[0, 2, 3, 1])
        rows = self.node("Reshape", last, self.constant(np.array([-1, channels])))
        y = self.quantized(self.node("MatMul", rows, self.weights((channels, columns), 1)[0]), 0.05)
        self.nodes.append(helper.make_node("Identity", [self.nodes[-1].input[0]], ["bytes"]))
        self.nodes = [node for node in self.nodes if node.output[0] != y]
        given = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(self.kind))
        result = helper.make_tensor_value_info("bytes", kind, None)
        graph = helper.make_graph(self.nodes, "integers", [given], [result], self.constants)
        values = self.rng.normal(size=shape).astype(np.float32)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), values


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the processors are x86-64's")
@pytest.mark.parametrize("seed", range(10))
def test_all_processors_give_the_interpreters_bits(aglow, tmp_path, seed):
    model, x = Net(seed).model()
    onnx.save(model, tmp_path / "m.onnx")
    np.save(tmp_path / "x.npy", x)

    def run(name, *options):
        done = aglow("run", tmp_path / "m.onnx", "--input", f"x={tmp_path / 'x.npy'}", "-o", tmp_path / name, *options)
        assert done.code == 0, done.err
        return np.load(tmp_path / name / "0.npy")

    expected = run("interpreter", "--backend", "interpreter")
    assert len(np.unique(expected)) > min(20, expected.size // 2), "hardly anything is computed"
    for name, (options, needs) in PROCESSORS.items():
        if host_has(*needs):
            different = np.count_nonzero(run(name, *options) != expected)
            assert different == 0, f"{name}: {different} of {expected.size} differ"
