"""Models that onnxruntime saved after it had optimized them for one machine: channels and filters in blocks."""
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

DOMAIN = "com.microsoft.nchwc"
random = np.random.default_rng(17)


def filled(array, axis, block):
    """With zeros after its channels, up to whole blocks."""
    pads = [(0, 0)] * array.ndim
    pads[axis] = (0, -array.shape[axis] % block)
    return np.pad(array, pads)


def blocked_filter(w, block):
    """OIHW in blocks of output channels, and of input channels where there are enough."""
    w = filled(w, 0, block)
    if w.shape[1] < block:
        outer, inner, *size = w.reshape(-1, block, *w.shape[1:]).shape[0], w.shape[1], *w.shape[2:]
        return w.reshape(outer, block, inner, *size).transpose(0, 2, 3, 4, 1).reshape(w.shape)
    w = filled(w, 1, block)
    o, i, height, width = w.shape
    parts = w.reshape(o // block, block, i // block, block, height, width)
    return parts.transpose(0, 2, 4, 5, 3, 1).reshape(w.shape)


class Pair:
    """The same net twice: as exporters write it, and as onnxruntime saves it for a machine with such blocks."""

    def __init__(self, block):
        self.block = block
        self.plain, self.saved = [], []
        self.plain_weights, self.saved_weights = [], []

    def weights(self, *shape):
        return (random.normal(size=shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)

    def both(self, kind, inputs, output, **attributes):
        self.plain.append(helper.make_node(kind, inputs, [output], **attributes))
        self.saved.append(helper.make_node(kind, inputs, [output], **attributes))

    def blocked(self, kind, inputs, output, **attributes):
        self.plain.append(helper.make_node(kind, inputs, [output], **attributes))
        self.saved.append(helper.make_node(kind, inputs, [output], domain=DOMAIN, **attributes))

    def conv(self, x, w, b, output, total=None, activation=None, **attributes):
        names = [f"w_{output}"] + ([f"b_{output}"] if b is not None else [])
        self.plain_weights += [numpy_helper.from_array(value, name) for name, value in zip(names, (w, b))]
        self.saved_weights.append(numpy_helper.from_array(blocked_filter(w, self.block), names[0]))
        if b is not None:
            self.saved_weights.append(numpy_helper.from_array(filled(b, 0, self.block), names[1]))
        last = f"{output}_raw" if total or activation else output
        self.plain.append(helper.make_node("Conv", [x, *names], [last], **attributes))
        if total:
            self.plain.append(helper.make_node("Add", [last, total], [f"{output}_sum" if activation else output]))
        if activation:
            self.plain.append(helper.make_node(activation, [f"{output}_sum" if total else last], [output]))
        more = {"activation": activation} if activation else {}
        if attributes.get("group") == len(w):  # channels that were filled up are groups of their own
            attributes["group"] += -len(w) % self.block
        operands = [x, *names] + (["", total][b is not None:] if total else [])
        self.saved.append(helper.make_node("Conv", operands, [output], domain=DOMAIN, **attributes, **more))

    def reorder(self, kind, x, output, **attributes):
        self.plain.append(helper.make_node("Identity", [x], [output]))
        self.saved.append(helper.make_node(kind, [x], [output], domain=DOMAIN, **attributes))

    def models(self, shape, output):
        made = []
        for nodes, weights in ((self.plain, self.plain_weights), (self.saved, self.saved_weights)):
            graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
                                      [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)], weights)
            opsets = [helper.make_opsetid("", 13), helper.make_opsetid(DOMAIN, 1)]
            made.append(helper.make_model(graph, ir_version=8, opset_imports=opsets))
        return made


def check(aglow, tmp_path, pair, shape, output):
    plain, saved = pair.models(shape, output)
    onnx.save(saved, tmp_path / "saved.onnx")
    x = random.normal(size=shape).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    outcome = aglow("run", tmp_path / "saved.onnx", "--input", f"x={tmp_path}/x.npy", "--output-dir", tmp_path / "out")
    assert outcome.code == 0, outcome.err
    wanted, = ReferenceEvaluator(plain).run(None, {"x": x})
    np.testing.assert_allclose(np.load(tmp_path / "out" / "0.npy"), wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("block", [8, 16])
def test_network(aglow, tmp_path, backend, block):
    """All operators; the first filter reads a plain tensor, and what is filled up tells the blocks apart."""
    pair = Pair(block)
    pair.conv("x", pair.weights(24, 3, 3, 3), pair.weights(24), "a", activation="Relu", pads=[1, 1, 1, 1])
    pair.conv("a", pair.weights(24, 1, 3, 3), pair.weights(24), "b", pads=[1, 1, 1, 1], group=24)
    pair.conv("b", pair.weights(24, 24, 1, 1), pair.weights(24), "c", total="a", activation="Relu")
    pair.blocked("MaxPool", ["c"], "d", kernel_shape=[2, 2], strides=[2, 2])
    pair.blocked("AveragePool", ["d"], "e", kernel_shape=[3, 3], pads=[1, 1, 1, 1], count_include_pad=1)
    pair.both("Sigmoid", ["e"], "f")
    pair.conv("f", pair.weights(2 * block, 24, 3, 3), None, "g", strides=[2, 2])
    pair.reorder("ReorderOutput", "g", "y", channels=2 * block)
    check(aglow, tmp_path, pair, [2, 3, 12, 10], "y")


@pytest.mark.parametrize("last", [0, 1], ids=["first", "last"])
@pytest.mark.parametrize("block", [8, 16])
def test_reorders(aglow, tmp_path, block, last):
    """Plain tensors into blocks and back, filled up and cut off."""
    pair = Pair(block)
    channels = 20
    x = "x"
    if last:
        pair.plain.append(helper.make_node("Transpose", ["x"], ["first"], perm=[0, 3, 1, 2]))
        x = "first"
    pair.plain.append(helper.make_node("Identity", [x], ["a"]))
    pair.saved.append(helper.make_node("ReorderInput", ["x"], ["a"], domain=DOMAIN, channels_last=last))
    pair.conv("a", pair.weights(channels, channels, 3, 3), pair.weights(channels), "b", activation="Relu")
    pair.blocked("GlobalAveragePool" if last else "GlobalMaxPool", ["b"], "c")
    pair.plain.append(helper.make_node("Transpose", ["c"], ["y"], perm=[0, 2, 3, 1] if last else [0, 1, 2, 3]))
    pair.saved.append(helper.make_node("ReorderOutput", ["c"], ["y"], domain=DOMAIN, channels=channels, channels_last=last))
    check(aglow, tmp_path, pair, [1, 5, 6, channels] if last else [1, channels, 5, 6], "y")


@pytest.mark.parametrize("mode, coordinates", [("nearest", "asymmetric"), ("linear", "asymmetric"), ("linear", "half_pixel"),
                                               ("linear", "align_corners")])
def test_upsample(aglow, tmp_path, mode, coordinates):
    pair = Pair(8)
    pair.conv("x", pair.weights(8, 3, 1, 1), None, "a")
    pair.plain_weights.append(numpy_helper.from_array(np.array([1, 1, 2, 3], np.float32), "scales"))
    pair.plain.append(helper.make_node("Resize", ["a", "", "scales"], ["b"], mode=mode, nearest_mode="floor",
                                       coordinate_transformation_mode=coordinates))
    pair.saved.append(helper.make_node("Upsample", ["a"], ["b"], domain=DOMAIN, scales=[1, 1, 2, 3], mode=mode,
                                       coordinate_transformation_mode=coordinates))
    pair.reorder("ReorderOutput", "b", "y", channels=8)
    check(aglow, tmp_path, pair, [1, 3, 4, 5], "y")


def test_few_channels_of_a_plain_tensor(aglow, tmp_path):
    """Twelve channels fill no block of 16, so their convolution reads a plain tensor."""
    pair = Pair(16)
    pair.conv("x", pair.weights(16, 12, 3, 3), pair.weights(16), "a")
    pair.reorder("ReorderOutput", "a", "y", channels=16)
    check(aglow, tmp_path, pair, [1, 12, 6, 6], "y")


def test_faults(aglow, tmp_path):
    pair = Pair(16)
    pair.conv("x", pair.weights(16, 12, 3, 3), None, "a")
    pair.reorder("ReorderOutput", "a", "y", channels=17)
    onnx.save(pair.models([1, 12, 6, 6], "y")[1], tmp_path / "m.onnx")
    outcome = aglow("compile", tmp_path / "m.onnx", "-o", tmp_path / "out")
    assert outcome.code == 2 and "expected 'channels' from 1 to 16, got 17" in outcome.err
