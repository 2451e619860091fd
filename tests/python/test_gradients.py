"""Gradients that models ask for: ONNX's Gradient, and steps of training as functions of a module."""
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

TRAINING = "ai.onnx.preview.training"


def model(nodes, inputs, outputs, initializers=()):
    def infos(values):
        return [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in values.items()]

    graph = helper.make_graph(nodes, "g", infos(inputs), infos(outputs),
                              [onnx.numpy_helper.from_array(array, name) for name, array in dict(initializers).items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid(TRAINING, 1)],
                             ir_version=8)


def gradient(xs, y, outputs, inputs=None, zs=()):
    return helper.make_node("Gradient", inputs or [*xs, *zs], outputs, "grad", domain=TRAINING, xs=list(xs),
                            zs=list(zs) or None, y=y)


@pytest.fixture
def run(aglow, tmp_path):
    def call(made, **inputs):
        onnx.save(made, tmp_path / "m.onnx")
        arguments = []
        for name, array in inputs.items():
            np.save(tmp_path / f"{name}.npy", array)
            arguments += ["--input", f"{name}={tmp_path / name}.npy"]
        outcome = aglow("run", tmp_path / "m.onnx", *arguments, "--output-dir", tmp_path / "out")
        if outcome.code != 0:
            return outcome
        return [np.load(tmp_path / "out" / f"{i}.npy") for i in range(len(made.graph.output))]

    return call


def test_gradient_by_inputs(run, backend):
    made = model([helper.make_node("Mul", ["a", "b"], ["m"]), helper.make_node("Add", ["m", "a"], ["y"]),
                  gradient(["a", "b"], "y", ["da", "db"])],
                 {"a": [3], "b": [3]}, {"da": [3], "db": [3]})
    a, b = np.float32([1, 2, 3]), np.float32([4, 5, 6])
    da, db = run(made, a=a, b=b)
    np.testing.assert_array_equal(da, b + 1)
    np.testing.assert_array_equal(db, a)


@pytest.mark.parametrize("node, expected", [
    (helper.make_node("ReduceL2", ["x"], ["n"], axes=[1], keepdims=1), [[0, 0], [0.6, 0.8]]),
    (helper.make_node("LpNormalization", ["x"], ["n"], axis=1, p=2), [[0, 0], [0.032, -0.024]]),
    (helper.make_node("LpNormalization", ["x"], ["n"], axis=1, p=1), [[0, 0], [0, 0]]),
    (helper.make_node("MeanVarianceNormalization", ["x"], ["n"], axes=[1]), [[0, 0], [0, 0]])])
def test_norms_of_zeros_have_no_gradient(run, backend, node, expected):
    """Their squares are flat there, and nothing divides zero by zero: torch gives zeros for norms, too."""
    made = model([node, gradient(["x"], "n", ["dx"])], {"x": [2, 2]}, {"dx": [2, 2]})
    made.opset_import[0].version = 13
    dx, = run(made, x=np.float32([[0, 0], [3, 4]]))
    np.testing.assert_allclose(dx, expected, atol=1e-6)


def test_weights_keep_their_gradient_although_they_could_be_folded(run, backend):
    """The transpose of a weight is known when compiling, but not by whom the gradient asks for."""
    w = np.arange(6, dtype=np.float32).reshape(2, 3)
    made = model([helper.make_node("Transpose", ["w"], ["wt"]), helper.make_node("MatMul", ["x", "wt"], ["y"]),
                  gradient(["w"], "y", ["dw"], zs=["x"])],
                 {"x": [4, 3]}, {"dw": [2, 3]}, {"w": w})
    x = np.random.default_rng(0).standard_normal((4, 3)).astype("f4")
    dw, = run(made, x=x)
    np.testing.assert_allclose(dw, np.ones((4, 2)).T @ x, rtol=1e-5)


def test_gradient_of_a_gradient(run, backend):
    made = model([helper.make_node("Mul", ["x", "x"], ["s"]), helper.make_node("Mul", ["s", "x"], ["y"]),
                  gradient(["x"], "y", ["dx"]), gradient(["x"], "dx", ["ddx"])],
                 {"x": [3]}, {"dx": [3], "ddx": [3]})
    x = np.float32([1, -2, 3])
    dx, ddx = run(made, x=x)
    np.testing.assert_allclose(dx, 3 * x * x, rtol=1e-6)
    np.testing.assert_allclose(ddx, 6 * x, rtol=1e-6)


def test_results_may_be_left_out(run):
    made = model([helper.make_node("Mul", ["a", "b"], ["y"]), gradient(["a", "b"], "y", ["", "db"])],
                 {"a": [2], "b": [2]}, {"db": [2]})
    db, = run(made, a=np.float32([1, 2]), b=np.float32([3, 4]))
    np.testing.assert_array_equal(db, [1, 2])


@pytest.mark.parametrize("node, code, says", [
    (gradient(["a"], "y", ["da"], inputs=["b"]), 3, "gradients at other values than those of the model"),
    (gradient(["a"], "nothing", ["da"]), 2, "'nothing'"),
    (gradient(["a", "a"], "y", ["da"], inputs=["a"]), 3, "gradients at other values"),
    (helper.make_node("Gradient", ["a"], ["da"], domain=TRAINING, xs=["a"]), 2, "'y'"),
])
def test_bad_requests_are_refused(run, node, code, says):
    made = model([helper.make_node("Mul", ["a", "b"], ["y"]), node], {"a": [2], "b": [2]}, {"da": [2]})
    outcome = run(made, a=np.float32([1, 2]), b=np.float32([3, 4]))
    assert outcome.code == code and says in outcome.err, outcome.err


def test_operators_without_a_gradient_are_named(run):
    made = model([helper.make_node("QuantizeLinear", ["a", "scale"], ["q"], "quantize"),
                  helper.make_node("DequantizeLinear", ["q", "scale"], ["d"], "dequantize"),
                  helper.make_node("Exp", ["d"], ["y"]), gradient(["a"], "y", ["da"])],
                 {"a": [2]}, {"da": [2]}, {"scale": np.float32(0.5)})
    outcome = run(made, a=np.float32([1, 2]))
    assert outcome.code == 3 and "'quantize' (QuantizeLinear)" in outcome.err, outcome.err
    assert "'dequantize' (DequantizeLinear)" in outcome.err


def test_models_that_are_cut_are_refused(run):
    """Where a shape depends on a value, the parts of a model do not see each other's nodes."""
    made = model([helper.make_node("NonZero", ["a"], ["n"]), helper.make_node("Cast", ["n"], ["c"], to=TensorProto.FLOAT),
                  helper.make_node("ReduceSum", ["c"], ["s"], keepdims=0), helper.make_node("Mul", ["a", "s"], ["y"]),
                  gradient(["a"], "y", ["da"])], {"a": [3]}, {"da": [3]})
    outcome = run(made, a=np.float32([1, 0, 2]))
    assert outcome.code == 3 and "cut into parts" in outcome.err, outcome.err


REGRESSION = """module {
  state @w : f32[2,1] = [0, 0]
  placeholder @x : f32[4,2]
  placeholder @target : f32[4,1]
  placeholder @rate : f32[]
  placeholder @y : f32[4,1]
  placeholder @loss : f32[]
  func @predict {
    %y = MatMul(@x, @w)
    Save(%y, @y)
  }
  func @train {
    %y = MatMul(@x, @w)
    %errors = SquaredError(%y, @target)
    %loss = Reduce(%errors) {kind = mean, axes = [0, 1], keepdims = false}
    %dw = Gradient(%loss, @w)
    %new = SGD(@w, %dw, @rate)
    Save(%loss, @loss)
    Save(%new, @w)
  }
}
"""


def test_steps_of_training_share_their_weights_with_the_prediction(aglow, backend, tmp_path):
    x = np.float32([[1, 2], [-1, 0.5], [3, -2], [0.25, 1]])
    weights = np.float32([[0.5], [-1]])
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "t.npy", x @ weights)
    np.save(tmp_path / "rate.npy", np.float32(0.1))
    (tmp_path / "r.graph").write_text(REGRESSION)
    steps = 60
    outcome = aglow("run", tmp_path / "r.graph", "--function", ",".join(["train"] * steps + ["predict"]), "--input",
                    f"x={tmp_path}/x.npy", "--input", f"target={tmp_path}/t.npy", "--input", f"rate={tmp_path}/rate.npy",
                    "--output-dir", tmp_path / "out")
    assert outcome.code == 0, outcome.err
    values = [np.load(tmp_path / "out" / f"{i}.npy") for i in range(steps + 2)]
    losses = [float(v) for v in values[:steps]]
    assert losses[0] > 1 and losses[-1] < 1e-6 and losses == sorted(losses, reverse=True)
    np.testing.assert_allclose(values[steps], x @ weights, atol=1e-2)
    np.testing.assert_allclose(values[steps + 1], weights, atol=1e-2)
