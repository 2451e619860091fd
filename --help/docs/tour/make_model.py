#!/usr/bin/env python3
"""Writes the models of docs/tour.md and docs/training.md, and arrays for them: python docs/tour/make_model.py.

It needs onnx and numpy.
"""
import pathlib

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HERE = pathlib.Path(__file__).resolve().parent


def floats(*values):
    return np.array(values, np.float32)


def model():
    weights = {
        # One filter finds edges between left and right, the other those between top and bottom.
        "filter": floats([[[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]]], [[[-1, -2, -1], [0, 0, 0], [1, 2, 1]]]),
        "scale": floats(0.5, 2),
        "shift": floats(1, -1),
        "mean": floats(2, 4),
        "var": floats(4, 16),
    }
    nodes = [
        helper.make_node("Conv", ["image", "filter"], ["edges"], "conv", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        helper.make_node("BatchNormalization", ["edges", "scale", "shift", "mean", "var"], ["normal"], "norm",
                         epsilon=0.0),
        helper.make_node("Relu", ["normal"], ["features"], "relu"),
    ]
    graph = helper.make_graph(
        nodes, "tour",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", 1, 4, 4])],
        [helper.make_tensor_value_info("features", TensorProto.FLOAT, ["batch", 2, 4, 4])],
        [numpy_helper.from_array(array, name) for name, array in weights.items()])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8, producer_name="tour",
                             producer_version="1")
    onnx.checker.check_model(made, full_check=True)
    return made


def image():
    """A bright square on a dark ground."""
    x = np.zeros((1, 1, 4, 4), np.float32)
    x[0, 0, 1:3, 1:3] = 1
    return x


def classifier():
    """Tells points in three clusters apart; its weights are still to be found."""
    rng = np.random.default_rng(0)
    weights = {"first.weight": rng.standard_normal((2, 16)).astype("f4"), "first.bias": np.zeros(16, "f4"),
               "last.weight": rng.standard_normal((16, 3)).astype("f4") / 4, "last.bias": np.zeros(3, "f4")}
    nodes = [
        helper.make_node("Gemm", ["point", "first.weight", "first.bias"], ["sums"], "first"),
        helper.make_node("Relu", ["sums"], ["hidden"], "relu"),
        helper.make_node("Gemm", ["hidden", "last.weight", "last.bias"], ["scores"], "last"),
        helper.make_node("Softmax", ["scores"], ["class"], "softmax"),
    ]
    graph = helper.make_graph(
        nodes, "clusters",
        [helper.make_tensor_value_info("point", TensorProto.FLOAT, ["batch", 2])],
        [helper.make_tensor_value_info("class", TensorProto.FLOAT, ["batch", 3])],
        [numpy_helper.from_array(array, name) for name, array in weights.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8, producer_name="tour",
                             producer_version="1")


def clusters(seed):
    """Points around three centres, with the number of their centre."""
    rng = np.random.default_rng(seed)
    target = np.arange(60) % 3
    centres = floats([0, 2], [-2, -1], [2, -1])
    return {"point": (centres[target] + 0.4 * rng.standard_normal((60, 2))).astype("f4"), "target": target}


if __name__ == "__main__":
    onnx.save(model(), HERE / "conv.onnx")
    onnx.save(classifier(), HERE / "clusters.onnx")
    np.savez(HERE / "train.npz", **clusters(1))
    np.savez(HERE / "test.npz", **clusters(2))
    np.save(HERE / "x.npy", image())
