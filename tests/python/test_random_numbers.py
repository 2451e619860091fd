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


@pytest.fixture
def dropping():
    """A layer behind a Dropout in training."""
    given = [onnx.numpy_helper.from_array(np.array(0.5, "f4"), "ratio"),
             onnx.numpy_helper.from_array(np.array(True), "on"),
             onnx.numpy_helper.from_array(np.ones((3, 2), "f4"), "w")]
    nodes = [helper.make_node("Dropout", ["x", "ratio", "on"], ["d"]), helper.make_node("MatMul", ["d", "w"], ["y"])]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 2])], given)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return lambda seed=0: aglow.Trainer(made, "squared-error", "sgd", batch=4, seed=seed)


DATA = np.ones((8, 3), "f4"), np.zeros((8, 2), "f4")


def test_what_drops_can_be_trained_and_exported(tmp_path, dropping):
    """Counters of runs are state beside the weights, and no part of the file."""
    trainer = dropping()
    trainer.fit(*DATA, epochs=2, rate=0.1)
    trainer.export(tmp_path / "out.onnx")
    exported = onnx.load(tmp_path / "out.onnx")
    assert [t.name for t in exported.graph.initializer] == ["ratio", "on", "w"]
    np.testing.assert_array_equal(onnx.numpy_helper.to_array(exported.graph.initializer[2]), trainer.state["w"])


def test_what_drops_goes_on_to_the_same_bits(tmp_path, dropping):
    whole, cut, rest = dropping(), dropping(), dropping()
    whole.fit(*DATA, epochs=4, rate=0.1)
    cut.fit(*DATA, epochs=4, rate=0.1, checkpoint=tmp_path / "c",
            callbacks=[lambda report: report.of_epoch and report.epoch == 2])
    rest.fit(*DATA, epochs=4, rate=0.1, checkpoint=tmp_path / "c", resume=True)
    np.testing.assert_array_equal(rest.state["w"], whole.state["w"])


def test_seeds_of_a_training_decide_what_drops(dropping):
    def trained(trainer):
        trainer.fit(*DATA, epochs=3, rate=0.1, shuffle=False)
        return trainer.state["w"]

    first, same, other = dropping(1), dropping(1), dropping(2)
    wanted = trained(first)
    np.testing.assert_array_equal(trained(same), wanted)
    assert not np.array_equal(trained(other), wanted)
    first.state.reset()
    np.testing.assert_array_equal(trained(first), wanted)


def test_inside_of_branches_and_loops():
    """One of two branches draws, and each turn of a loop: others in each run, the same on every backend."""
    def branch(name):
        return helper.make_graph([helper.make_node(name, ["x"], [name])], name, [],
                                 [helper.make_tensor_value_info(name, TensorProto.FLOAT, [40])])

    floats = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [40]) for name in ("s", "t")]
    truth = [helper.make_tensor_value_info(name, TensorProto.BOOL, []) for name in ("go", "on")]
    count = helper.make_tensor_value_info("i", TensorProto.INT64, [])
    body = helper.make_graph([helper.make_node("RandomUniformLike", ["s"], ["r"]),
                              helper.make_node("Add", ["s", "r"], ["t"]),
                              helper.make_node("Identity", ["go"], ["on"])],
                             "body", [count, truth[0], floats[0]], [truth[1], floats[1]])
    nodes = [helper.make_node("If", ["c"], ["y"], then_branch=branch("RandomNormalLike"),
                              else_branch=branch("RandomUniformLike")),
             helper.make_node("Loop", ["n", "", "x"], ["z"], body=body)]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("c", TensorProto.BOOL, []),
                                           helper.make_tensor_value_info("n", TensorProto.INT64, []),
                                           helper.make_tensor_value_info("x", TensorProto.FLOAT, [40])],
                              [helper.make_tensor_value_info(name, TensorProto.FLOAT, [40]) for name in ("y", "z")])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)

    def drawn(backend):
        compiled = aglow.compile(made, backend=backend)
        return [compiled.run({"c": np.array(c), "n": np.array(3), "x": np.zeros(40, "f4")})
                for c in (True, False, True, False)]

    expected = drawn("interpreter")
    for name, (a, b) in (("y", (0, 2)), ("y", (1, 3)), ("z", (0, 1)), ("z", (1, 2))):
        assert (expected[a][name] != expected[b][name]).mean() > 0.9, name
    assert min(run["y"].min() for run in expected[1::2]) >= 0 > expected[0]["y"].min()
    assert all(0.5 < run["z"].mean() < 2.5 for run in expected)
    if "cpu" in aglow.backends():
        for got, wanted in zip(drawn("cpu"), expected):
            assert all(got[name].tobytes() == wanted[name].tobytes() for name in ("y", "z"))


@pytest.mark.parametrize("backend", ["interpreter", "cpu"])
def test_sizes_may_be_drawn(aglow, tmp_path, backend):
    """A run cuts the model where a drawn number decides a shape; ahead of time that is refused."""
    nodes = [helper.make_node("RandomUniform", [], ["r"], shape=[1], low=2.0, high=5.0),
             helper.make_node("Cast", ["r"], ["n"], to=TensorProto.INT64),
             helper.make_node("ConstantOfShape", ["n"], ["y"])]
    graph = helper.make_graph(nodes, "g", [], [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n"])])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "m.onnx")
    done = aglow("run", tmp_path / "m.onnx", "--backend", backend, "-o", tmp_path / "out")
    assert done.code == 0, done.err
    assert np.load(tmp_path / "out" / "0.npy").shape[0] in (2, 3, 4)
    refused = aglow("compile", tmp_path / "m.onnx", "--backend", backend, "-o", tmp_path / "b", "--emit", "ir")
    assert refused.code == 3 and "a shape depends on the value of" in refused.err, refused.err
