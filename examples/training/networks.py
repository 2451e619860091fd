"""Networks to be trained, as ONNX models with weights drawn by a seed: a CNN, an LSTM and a transformer."""
import numpy as np
from onnx import TensorProto, helper, numpy_helper

F32, I64 = TensorProto.FLOAT, TensorProto.INT64


class Net:
    """A graph that grows: nodes are added by their operator, weights by their shape."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.nodes, self.initializers = [], []

    def tensor(self, name, array):
        self.initializers.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def weight(self, name, *shape, fan):
        return self.tensor(name, (self.rng.standard_normal(shape) * np.sqrt(1 / fan)).astype(np.float32))

    def zeros(self, name, *shape):
        return self.tensor(name, np.zeros(shape, np.float32))

    def add(self, operator, *inputs, outputs=1, **attributes):
        name = f"{operator.lower()}{len(self.nodes)}"
        results = [name if i == 0 else f"{name}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(operator, inputs, results, name, **attributes))
        return results[0]

    def dense(self, x, name, size, out):
        weight = self.weight(f"{name}.weight", size, out, fan=size)
        return self.add("Add", self.add("MatMul", x, weight), self.zeros(f"{name}.bias", out))

    def model(self, name, x, x_shape, x_type, y, y_shape, y_name="scores"):
        """Inputs and outputs with an open batch."""
        self.nodes.append(helper.make_node("Identity", [y], [y_name], "out"))
        graph = helper.make_graph(self.nodes, name, [helper.make_tensor_value_info(x, x_type, ["batch", *x_shape])],
                                  [helper.make_tensor_value_info(y_name, F32, ["batch", *y_shape])], self.initializers)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def cnn(seed=0):
    """Images of 8x8 pixels to ten probabilities."""
    net = Net(seed)
    x, channels = "image", 1
    for i, filters in enumerate((32, 32, 64)):
        weight = net.weight(f"conv{i}.weight", filters, channels, 3, 3, fan=4.5 * channels)
        x = net.add("Relu", net.add("Conv", x, weight, net.zeros(f"conv{i}.bias", filters), pads=[1, 1, 1, 1]))
        if i > 0:
            x = net.add("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
        channels = filters
    x = net.add("Relu", net.dense(net.add("Flatten", x), "hidden", 4 * channels, 128))
    y = net.add("Softmax", net.dense(x, "head", 128, 10), axis=1)
    return net.model("digits", "image", [1, 8, 8], F32, y, [10], "probabilities")


def lstm(letters, length, width=64, hidden=96, seed=0):
    """Letters to the scores of the letter after each."""
    net = Net(seed)
    x = net.add("Gather", net.weight("embedding", letters, width, fan=1), "text")
    x = net.add("Transpose", x, perm=[1, 0, 2])
    y = net.add("LSTM", x, net.weight("lstm.w", 1, 4 * hidden, width, fan=width),
                net.weight("lstm.r", 1, 4 * hidden, hidden, fan=hidden), net.zeros("lstm.bias", 1, 8 * hidden),
                hidden_size=hidden)
    y = net.add("Squeeze", y, net.tensor("directions", np.array([1])))
    y = net.add("Transpose", y, perm=[1, 0, 2])
    return net.model("letters", "text", [length], I64, net.dense(y, "head", hidden, letters), [length, letters])


def normalized(net, x, name, width):
    scale = net.tensor(f"{name}.scale", np.ones(width, np.float32))
    return net.add("LayerNormalization", x, scale, net.zeros(f"{name}.shift", width), axis=-1)


def attended(net, x, name, width, heads, length):
    """Every letter looks at those before it."""
    split = net.tensor(f"{name}.split", np.array([0, length, heads, width // heads]))

    def part(what, perm):
        return net.add("Transpose", net.add("Reshape", net.dense(x, f"{name}.{what}", width, width), split), perm=perm)

    query, key, value = part("query", [0, 2, 1, 3]), part("key", [0, 2, 3, 1]), part("value", [0, 2, 1, 3])
    root = net.tensor(f"{name}.root", np.float32(np.sqrt(width // heads)))
    scores = net.add("Div", net.add("MatMul", query, key), root)
    later = np.triu(np.full((length, length), -1e9, np.float32), 1)
    shares = net.add("Softmax", net.add("Add", scores, net.tensor(f"{name}.later", later)), axis=-1)
    mixed = net.add("Transpose", net.add("MatMul", shares, value), perm=[0, 2, 1, 3])
    joined = net.add("Reshape", mixed, net.tensor(f"{name}.joined", np.array([0, length, width])))
    return net.dense(joined, f"{name}.out", width, width)


def transformer(letters, length, width=64, heads=4, blocks=2, seed=0):
    """The same with attention. What masks later letters is no parameter: train all but `*.later`."""
    net = Net(seed)
    x = net.add("Gather", net.weight("embedding", letters, width, fan=1), "text")
    x = net.add("Add", x, net.weight("places", length, width, fan=1))
    for i in range(blocks):
        x = net.add("Add", x, attended(net, normalized(net, x, f"block{i}.first", width), f"block{i}", width, heads, length))
        inner = net.dense(normalized(net, x, f"block{i}.second", width), f"block{i}.up", width, 4 * width)
        x = net.add("Add", x, net.dense(net.add("Relu", inner), f"block{i}.down", 4 * width, width))
    y = net.dense(normalized(net, x, "last", width), "head", width, letters)
    return net.model("letters", "text", [length], I64, y, [length, letters])
