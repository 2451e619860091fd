"""Dropout in training: other elements in each run, the same ones in each first, second and so on."""
import numpy
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

aglow = pytest.importorskip("aglow")

RATIO = 0.25
X = numpy.arange(1, 20001, dtype=numpy.float32).reshape(40, 500)


def model(**attributes):
    given = [numpy_helper.from_array(numpy.array(RATIO, numpy.float32), "ratio"),
             numpy_helper.from_array(numpy.array(True), "training")]
    node = helper.make_node("Dropout", ["x", "ratio", "training"], ["y", "mask"], **attributes)
    graph = helper.make_graph([node], "dropout", [helper.make_tensor_value_info("x", TensorProto.FLOAT, X.shape)],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, X.shape),
                               helper.make_tensor_value_info("mask", TensorProto.BOOL, X.shape)], given)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def runs(count, **options):
    compiled = aglow.compile(model(), **options)
    return [compiled(X) for _ in range(count)]


def test_every_run_drops_others():
    (first, kept), (second, others) = runs(2)
    assert (kept != others).mean() > 0.3
    for y, mask in ((first, kept), (second, others)):
        assert abs(mask.mean() - (1 - RATIO)) < 0.02
        numpy.testing.assert_array_equal(y, numpy.where(mask, X * numpy.float32(1 / (1 - RATIO)), 0))


def test_runs_repeat_themselves_on_every_backend():
    expected = runs(3)
    for options in ({"threads": 1}, {"threads": 2}, {"backend": "interpreter"}):
        for (y, mask), (wanted, kept) in zip(runs(3, **options), expected):
            assert y.tobytes() == wanted.tobytes() and mask.tobytes() == kept.tobytes(), options


def test_a_seed_drops_the_same_in_every_run():
    compiled = aglow.compile(model(seed=3))
    assert compiled(X)[1].tobytes() == compiled(X)[1].tobytes()
