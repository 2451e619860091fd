"""The Python module: ONNX's backend interface."""
import numpy as np
import onnx
import pytest
from onnx import helper

import module_models as models

pytest.importorskip("aglow", reason="the module is not built: ./dev test builds it")
import aglow.backend  # noqa: E402
from harness import backend_process, case, onnx_cases  # noqa: E402

X = np.float32([[-1, 0, 2]])


def test_models_are_prepared_and_run():
    prepared = aglow.backend.prepare(models.two_outputs(), "CPU")
    total, difference = prepared.run([X[0], X[0]])
    np.testing.assert_array_equal(total, 2 * X[0])
    assert not difference.any()
    (y,) = aglow.backend.run_model(models.unary("Neg"), [X[0]])
    np.testing.assert_array_equal(y, -X[0])
    (y,) = aglow.backend.Backend.prepare(models.unary("Neg"), backend="interpreter").run({"x": X[0]})
    np.testing.assert_array_equal(y, -X[0])


def test_nodes_are_run():
    (y,) = aglow.backend.run_node(helper.make_node("Clip", ["x", "", "high"], ["y"]), [X, np.float32(1)])
    np.testing.assert_array_equal(y, np.minimum(X, 1))
    (y,) = aglow.backend.run_node(helper.make_node("NonZero", ["x"], ["y"]), [X])
    np.testing.assert_array_equal(y, np.nonzero(X))
    scaler = helper.make_node("Scaler", ["x"], ["y"], domain="ai.onnx.ml", scale=[2.0], offset=[1.0])
    (y,) = aglow.backend.run_node(scaler, [X], outputs_info=[(np.float32, X.shape)])
    np.testing.assert_array_equal(y, (X - 1) * 2)


def test_what_is_supported():
    assert aglow.backend.supports_device("CPU") and aglow.backend.supports_device("CPU:0")
    assert not aglow.backend.supports_device("CUDA")
    assert aglow.backend.is_compatible(models.affine())
    assert not aglow.backend.is_compatible(models.unary("Frobnicate"))
    assert not aglow.backend.is_compatible(models.affine(), "CUDA")


def test_the_harness_tells_how_cases_end(tmp_path):
    def verdict(proto, expected):
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        onnx.save(proto, folder / "model.onnx")
        record = case.write_case(str(folder), proto, [([X[0]], [expected])], 1e-3, 1e-7)
        return backend_process.verdict_of(aglow.backend.Backend, str(folder / "model.onnx"), str(folder), record)

    assert verdict(models.unary("Neg"), -X[0]) == (case.PASS, "")
    assert verdict(models.unary("Neg"), X[0])[0] == case.WRONG
    assert verdict(models.unary("Frobnicate"), X[0])[0] == case.UNSUPPORTED
    assert verdict(models.unary("Neg", shape=(7,)), X[0])[0] == case.ERROR
    assert onnx_cases.KINDS
