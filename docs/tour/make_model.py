#!/usr/bin/env python3
"""Writes the model of docs/tour.md and an input for it: python docs/tour/make_model.py (needs onnx and numpy)."""
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


if __name__ == "__main__":
    onnx.save(model(), HERE / "conv.onnx")
    np.save(HERE / "x.npy", image())
