"""Operators of ai.onnx.ml that the suite lacks, against the reference of the onnx package."""
import numpy as np
import onnx
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator

random = np.random.default_rng(3)


def numbers(*shape):
    return random.uniform(-1, 1, shape).astype(np.float32)


def coupled(likely, classes):
    """Probabilities of classes from those of pairs, as libsvm finds them (Wu, Lin and Weng 2004, second method)."""
    r = np.zeros((classes, classes))
    r[np.triu_indices(classes, 1)] = likely
    r += np.tril(1 - r.T, -1)
    q = -r * r.T + np.diag((r * r).sum(0))
    p = np.full(classes, 1 / classes)
    for _ in range(100):
        qp = q @ p
        if abs(qp - p @ qp).max() < 0.005 / classes:
            break
        total = p @ qp
        for t in range(classes):
            step = (total - qp[t]) / q[t, t]
            total = (total + step * (step * q[t, t] + 2 * qp[t])) / (1 + step) ** 2
            p[t] += step
            p, qp = p / (1 + step), (qp + step * q[t]) / (1 + step)
    return p


@pytest.fixture(autouse=True)
def right_reference(monkeypatch):
    """The package's own coupling multiplies other elements than the paper for three classes and more."""
    from onnx.reference.ops.aionnxml import op_svm_classifier
    monkeypatch.setattr(op_svm_classifier, "multiclass_probability", lambda k, r: coupled(r[np.triu_indices(k, 1)], k))


def check(aglow, tmp_path, backend, name, x, outputs, **attrs):
    node = helper.make_node(name, ["x"], outputs, domain="ai.onnx.ml", **attrs)
    inputs = [helper.make_tensor_value_info("x", helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)]
    graph = helper.make_graph([node], "one", inputs, [onnx.ValueInfoProto(name=output) for output in outputs if output])
    model = helper.make_model(graph, ir_version=9,
                              opset_imports=[helper.make_opsetid("", 16), helper.make_opsetid("ai.onnx.ml", 3)])
    onnx.save(model, tmp_path / "one.onnx")
    np.save(tmp_path / "x.npy", x)
    outcome = aglow("run", tmp_path / "one.onnx", "--backend", backend, "--input", f"x={tmp_path}/x.npy",
                    "--output-dir", tmp_path / "out")
    assert outcome.code == 0, outcome.err
    for i, wanted in enumerate(ReferenceEvaluator(model).run(None, {"x": x})):
        np.testing.assert_allclose(np.load(tmp_path / "out" / f"{i}.npy"), wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("backend", ["interpreter", "cpu"])
@pytest.mark.parametrize("kernel", ["LINEAR", "POLY", "RBF", "SIGMOID"])
def test_svm_regressor(aglow, tmp_path, backend, kernel):
    for one_class in (0, 1):
        check(aglow, tmp_path, backend, "SVMRegressor", numbers(5, 3), ["y"], kernel_type=kernel, n_supports=4,
              kernel_params=[0.4, 0.3, 2.0], support_vectors=numbers(12), coefficients=numbers(4), rho=[0.2],
              one_class=one_class)


@pytest.mark.parametrize("backend", ["interpreter", "cpu"])
def test_linear_svm_regressor(aglow, tmp_path, backend):
    check(aglow, tmp_path, backend, "SVMRegressor", numbers(5, 3), ["y"], coefficients=numbers(3), rho=[0.2],
          n_supports=0)


@pytest.mark.parametrize("backend", ["interpreter", "cpu"])
@pytest.mark.parametrize("kernel, classes, probabilities", [
    ("LINEAR", 2, False), ("POLY", 3, False), ("RBF", 4, False), ("SIGMOID", 3, False), ("RBF", 2, True),
    ("LINEAR", 3, True), ("RBF", 4, True)])
def test_svm_classifier(aglow, tmp_path, backend, kernel, classes, probabilities):
    counts = [2, 3, 1, 2][:classes]
    pairs = classes * (classes - 1) // 2
    more = dict(prob_a=numbers(pairs) - 1, prob_b=numbers(pairs)) if probabilities else {}
    check(aglow, tmp_path, backend, "SVMClassifier", numbers(6, 3), ["label", "scores"], kernel_type=kernel,
          kernel_params=[0.4, 0.3, 2.0], support_vectors=numbers(3 * sum(counts)), vectors_per_class=counts,
          coefficients=numbers((classes - 1) * sum(counts)), rho=numbers(pairs),
          classlabels_ints=[7, 3, 5, 9][:classes], **more)
