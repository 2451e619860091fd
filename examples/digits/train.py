#!/usr/bin/env python3
"""Trains a small convolutional network on handwritten digits and writes digits.onnx and images/.

    pip install numpy onnx scikit-learn
    python3 train.py

The data are the 1797 digits of 8x8 pixels that come with scikit-learn (UCI "Optical Recognition of Handwritten
Digits"); one in five is held out. The network is written in plain numpy: a forward and a backward function per layer.
"""
import pathlib

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from sklearn.datasets import load_digits

HERE = pathlib.Path(__file__).resolve().parent
EPSILON = 1e-5
EPOCHS = 40
BATCH = 64
rng = np.random.default_rng(7)


class Conv:
    """3x3 convolution that keeps the size, as one matrix product over unfolded patches."""

    def __init__(self, channels, filters):
        self.w = rng.normal(0, np.sqrt(2 / (9 * channels)), (filters, channels, 3, 3)).astype(np.float32)
        self.parameters = ["w"]

    def forward(self, x, training):
        n, c, h, w = x.shape
        padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
        patches = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
        self.shape = x.shape
        self.columns = patches.transpose(0, 2, 3, 1, 4, 5).reshape(n * h * w, c * 9)
        y = self.columns @ self.w.reshape(len(self.w), -1).T
        return y.reshape(n, h, w, -1).transpose(0, 3, 1, 2)

    def backward(self, g):
        n, c, h, w = self.shape
        flat = g.transpose(0, 2, 3, 1).reshape(n * h * w, -1)
        self.dw = (flat.T @ self.columns).reshape(self.w.shape)
        patches = (flat @ self.w.reshape(len(self.w), -1)).reshape(n, h, w, c, 3, 3)
        dx = np.zeros((n, c, h + 2, w + 2), np.float32)
        for i in range(3):
            for j in range(3):
                dx[:, :, i:i + h, j:j + w] += patches[..., i, j].transpose(0, 3, 1, 2)
        return dx[:, :, 1:-1, 1:-1]

    def node(self):
        return "Conv", [("w", self.w)], {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}


class BatchNorm:
    def __init__(self, channels):
        self.scale, self.shift = np.ones(channels, np.float32), np.zeros(channels, np.float32)
        self.mean, self.var = np.zeros(channels, np.float32), np.ones(channels, np.float32)
        self.parameters = ["scale", "shift"]

    def forward(self, x, training):
        mean, var = (x.mean((0, 2, 3)), x.var((0, 2, 3))) if training else (self.mean, self.var)
        if training:
            self.mean += np.float32(0.1) * (mean - self.mean)
            self.var += np.float32(0.1) * (var - self.var)
        self.deviation = np.sqrt(var + np.float32(EPSILON))[:, None, None]
        self.normal = (x - mean[:, None, None]) / self.deviation
        return self.scale[:, None, None] * self.normal + self.shift[:, None, None]

    def backward(self, g):
        count = np.float32(g.size / len(self.scale))
        self.dscale, self.dshift = (g * self.normal).sum((0, 2, 3)), g.sum((0, 2, 3))
        centred = g - (self.dshift[:, None, None] + self.normal * self.dscale[:, None, None]) / count
        return self.scale[:, None, None] * centred / self.deviation

    def node(self):
        weights = [("scale", self.scale), ("shift", self.shift), ("mean", self.mean), ("var", self.var)]
        return "BatchNormalization", weights, {"epsilon": EPSILON}


class Relu:
    parameters = []

    def forward(self, x, training):
        self.mask = x > 0
        return x * self.mask

    def backward(self, g):
        return g * self.mask

    def node(self):
        return "Relu", [], {}


class MaxPool:
    """Windows of 2x2 that do not overlap."""
    parameters = []

    def forward(self, x, training):
        n, c, h, w = x.shape
        self.windows = x.reshape(n, c, h // 2, 2, w // 2, 2)
        y = self.windows.max((3, 5))
        self.mask = self.windows == y[:, :, :, None, :, None]
        return y

    def backward(self, g):
        n, c, h, _, w, _ = self.windows.shape
        return (self.mask * g[:, :, :, None, :, None]).reshape(n, c, 2 * h, 2 * w)

    def node(self):
        return "MaxPool", [], {"kernel_shape": [2, 2], "strides": [2, 2]}


class Flatten:
    parameters = []

    def forward(self, x, training):
        self.shape = x.shape
        return x.reshape(len(x), -1)

    def backward(self, g):
        return g.reshape(self.shape)

    def node(self):
        return "Flatten", [], {}


class Dense:
    def __init__(self, inputs, outputs):
        self.w = rng.normal(0, np.sqrt(2 / inputs), (outputs, inputs)).astype(np.float32)
        self.b = np.zeros(outputs, np.float32)
        self.parameters = ["w", "b"]

    def forward(self, x, training):
        self.x = x
        return x @ self.w.T + self.b

    def backward(self, g):
        self.dw, self.db = g.T @ self.x, g.sum(0)
        return g @ self.w

    def node(self):
        return "Gemm", [("w", self.w), ("b", self.b)], {"transB": 1}


class Adam:
    def __init__(self, layers):
        self.slots = [(layer, name) for layer in layers for name in layer.parameters]
        self.moments = [np.zeros((2,) + getattr(layer, name).shape, np.float32) for layer, name in self.slots]
        self.steps = 0

    def step(self, rate):
        self.steps += 1
        for (layer, name), moments in zip(self.slots, self.moments):
            gradient, value = getattr(layer, "d" + name), getattr(layer, name)
            moments[0] += np.float32(0.1) * (gradient - moments[0])
            moments[1] += np.float32(0.001) * (gradient ** 2 - moments[1])
            first, second = moments[0] / (1 - 0.9 ** self.steps), moments[1] / (1 - 0.999 ** self.steps)
            value -= (rate * first / (np.sqrt(second) + 1e-8)).astype(np.float32)


def network():
    return [Conv(1, 16), BatchNorm(16), Relu(), Conv(16, 32), BatchNorm(32), Relu(), MaxPool(),
            Conv(32, 32), BatchNorm(32), Relu(), MaxPool(), Flatten(), Dense(128, 64), Relu(), Dense(64, 10)]


def forward(layers, x, training=False):
    for layer in layers:
        x = layer.forward(x, training)
    return x


def shifted(images):
    """Each image moved by up to one pixel, so that the network does not learn positions by heart."""
    padded = np.pad(images, ((0, 0), (0, 0), (1, 1), (1, 1)))
    moves = rng.integers(0, 3, (len(images), 2))
    return np.stack([image[:, i:i + 8, j:j + 8] for image, (i, j) in zip(padded, moves)])


def train(layers, images, labels):
    optimizer = Adam(layers)
    for epoch in range(EPOCHS):
        order, total = rng.permutation(len(images)), 0.0
        for at in range(0, len(order), BATCH):
            pick = order[at:at + BATCH]
            scores = forward(layers, shifted(images[pick]), training=True)
            gradient = np.exp(scores - scores.max(1, keepdims=True))
            gradient /= gradient.sum(1, keepdims=True)
            total -= np.log(gradient[np.arange(len(pick)), labels[pick]] + 1e-12).sum()
            gradient[np.arange(len(pick)), labels[pick]] -= 1
            gradient /= len(pick)
            for layer in reversed(layers):
                gradient = layer.backward(gradient)
            optimizer.step(2e-3 * 0.5 * (1 + np.cos(np.pi * epoch / EPOCHS)))
        if epoch % 10 == 9:
            print(f"epoch {epoch + 1}: loss {total / len(images):.4f}")


def to_onnx(layers):
    nodes, constants, value = [], [], "image"
    for number, layer in enumerate(layers):
        kind, weights, attributes = layer.node()
        name = f"{kind.lower()}{number}"
        constants += [numpy_helper.from_array(data, f"{name}_{suffix}") for suffix, data in weights]
        inputs = [value] + [f"{name}_{suffix}" for suffix, _ in weights]
        value = f"{name}_out"
        nodes.append(helper.make_node(kind, inputs, [value], name=name, **attributes))
    nodes.append(helper.make_node("Softmax", [value], ["probabilities"], name="softmax", axis=1))
    graph = helper.make_graph(
        nodes, "digits",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 1, 8, 8])],
        [helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, [1, 10])], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8,
                              producer_name="aglow examples")
    onnx.checker.check_model(model, full_check=True)
    return model


def main():
    digits = load_digits()
    images = (digits.images / 16).astype(np.float32)[:, None]
    order = rng.permutation(len(images))
    held, rest = order[:len(order) // 5], order[len(order) // 5:]
    layers = network()
    train(layers, images[rest], digits.target[rest])
    right = forward(layers, images[held]).argmax(1) == digits.target[held]
    print(f"held-out accuracy: {100 * right.mean():.2f} % of {len(held)} images")
    onnx.save(to_onnx(layers), HERE / "digits.onnx")
    for old in (HERE / "images").glob("*.npy"):
        old.unlink()
    (HERE / "images").mkdir(exist_ok=True)
    for label in (0, 1, 2, 3, 4, 5, 7, 9):
        index = held[digits.target[held] == label][0]
        np.save(HERE / "images" / f"{label}.npy", images[index:index + 1])


if __name__ == "__main__":
    main()
