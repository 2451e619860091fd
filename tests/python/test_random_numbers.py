"""Operators that draw: others in each run without a seed, the same ones with it, and the same on every backend."""
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

aglow = pytest.importorskip("aglow")

X = np.full((40, 50), 0.25, np.float32)
OPERATORS = {
    "RandomUniform": ([], dict(low=2.0, high=4.0, shape=X.shape)),
    "RandomNormal": ([], dict(mean=2.0, scale=3.0, shape=X.shape)),
    "RandomUniformLike": (["x"], {}),
    "RandomNormalLike": (["x"], {}),
    "Bernoulli": (["x"], {}),
    "Multinomial": (["x"], dict(sample_size=64)),
}
everything = pytest.mark.parametrize("name", OPERATORS)


def runs(name, count=3, seed=None, **options):
    operands, attributes = OPERATORS[name]
    attributes = dict(attributes) if seed is None else dict(attributes, seed=seed)
    nodes = [helper.make_node(name, operands, ["y"], **attributes), helper.make_node("Identity", ["x"], ["z"])]
    kind = TensorProto.INT32 if name == "Multinomial" else TensorProto.FLOAT
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, X.shape)],
                              [helper.make_tensor_value_info("y", kind, None),
                               helper.make_tensor_value_info("z", TensorProto.FLOAT, None)])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    compiled = aglow.compile(made, **options)
    return [compiled(X)[0] for _ in range(count)]


@everything
def test_every_run_draws_others(name):
    first, second, third = runs(name)
    for a, b in ((first, second), (second, third), (first, third)):
        assert (a != b).mean() > 0.3
        if a.std() > 0:
            assert abs(np.corrcoef(a.ravel(), b.ravel())[0, 1]) < 0.1


@everything
def test_a_seed_draws_the_same_in_every_run(name):
    first, second = runs(name, 2, seed=3.0)
    np.testing.assert_array_equal(first, second)
    assert (first != runs(name, 1, seed=4.0)[0]).mean() > 0.3
    assert (first != runs(name, 1)[0]).mean() > 0.3


@everything
@pytest.mark.parametrize("seed", [None, 3.0])
def test_backends_and_threads_agree(name, seed):
    expected = runs(name, seed=seed)
    for options in ({"threads": 1}, {"threads": 2}, {"backend": "interpreter"}):
        for got, wanted in zip(runs(name, seed=seed, **options), expected):
            assert got.tobytes() == wanted.tobytes(), options


@pytest.mark.parametrize("kind", [TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.DOUBLE])
def test_certain_and_impossible(kind):
    """A chance of 1 always comes, also where the numbers drawn would round to 1, and one of 0 never."""
    nodes = [helper.make_node("Cast", ["x"], ["p"], to=kind),
             helper.make_node("Bernoulli", ["p"], ["y"], dtype=TensorProto.FLOAT)]
    info = helper.make_tensor_value_info("x", TensorProto.FLOAT, [100000])
    graph = helper.make_graph(nodes, "g", [info], [helper.make_tensor_value_info("y", TensorProto.FLOAT, [100000])])
    compiled = aglow.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10))
    assert compiled(np.ones(100000, "f4")).all() and not compiled(np.zeros(100000, "f4")).any()


def test_a_training_sees_other_noise_in_each_step_and_repeats_itself():
    nodes = [helper.make_node("RandomNormalLike", ["x"], ["noise"]), helper.make_node("Mul", ["noise", "w"], ["y"])]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 3])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4, 3])],
                              [onnx.numpy_helper.from_array(np.ones(3, "f4"), "w")])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)

    def losses(backend):
        trainer = aglow.Trainer(made, "squared-error", "sgd", batch=4, backend=backend)
        seen = []
        trainer.fit(np.zeros((8, 3), "f4"), np.zeros((8, 3), "f4"), epochs=3, rate=0,
                    callbacks=[lambda report: None if report.of_epoch else seen.append(report.loss)])
        return seen

    first = losses("interpreter")
    assert len(set(first)) == 6
    for backend in set(aglow.backends()) & {"interpreter", "cpu"}:
        np.testing.assert_allclose(losses(backend), first, rtol=1e-6)


def test_what_drops_can_be_trained_and_exported(tmp_path):
    """Counters of runs are state beside the weights, and no part of the file."""
    given = [onnx.numpy_helper.from_array(np.array(0.5, "f4"), "ratio"),
             onnx.numpy_helper.from_array(np.array(True), "on"), onnx.numpy_helper.from_array(np.ones((3, 2), "f4"), "w")]
    nodes = [helper.make_node("Dropout", ["x", "ratio", "on"], ["d"]), helper.make_node("MatMul", ["d", "w"], ["y"])]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 2])], given)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    trainer = aglow.Trainer(made, "squared-error", "sgd", batch=4)
    trainer.fit(np.ones((8, 3), "f4"), np.zeros((8, 2), "f4"), epochs=2, rate=0.1)
    trainer.export(tmp_path / "out.onnx")
    exported = onnx.load(tmp_path / "out.onnx")
    assert [t.name for t in exported.graph.initializer] == ["ratio", "on", "w"]
    np.testing.assert_array_equal(onnx.numpy_helper.to_array(exported.graph.initializer[2]), trainer.state["w"])
