"""Opsets from before 7, operators that draw random numbers, and what is said about operators that do not exist."""
import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper


def run(aglow, tmp_path, nodes, opset, inputs, constants=None, domain="", outputs=("y",), backend="cpu"):
    infos = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
             for name, value in inputs.items()]
    fixed = [numpy_helper.from_array(value, name) for name, value in (constants or {}).items()]
    graph = helper.make_graph(nodes, "one", infos, [onnx.ValueInfoProto(name=name) for name in outputs], fixed)
    imports = [helper.make_opsetid("", opset)] + ([helper.make_opsetid(domain, 1)] if domain else [])
    onnx.save(helper.make_model(graph, opset_imports=imports, ir_version=8), tmp_path / "one.onnx")
    given = []
    for name, value in inputs.items():
        np.save(tmp_path / f"{name}.npy", value)
        given.append(f"--input={name}={tmp_path}/{name}.npy")
    outcome = aglow("run", tmp_path / "one.onnx", "--backend", backend, *given, "--output-dir", tmp_path / "out")
    return outcome, [np.load(tmp_path / "out" / f"{i}.npy") for i in range(len(outputs))] if outcome.code == 0 else None


X = np.random.default_rng(5).uniform(-2, 2, (2, 3, 4, 4)).astype(np.float32)

OLD = [
    ("Cast", 1, dict(to="INT32"), {}, lambda x: x.astype(np.int32)),
    ("Reshape", 1, dict(shape=[6, -1]), {}, lambda x: x.reshape(6, 16)),
    ("Pad", 1, dict(paddings=[0, 0, 1, 0, 0, 0, 0, 2], value=3.0), {},
     lambda x: np.pad(x, [(0, 0), (0, 0), (1, 0), (0, 2)], constant_values=3)),
    ("GlobalLpPool", 1, dict(p=2.0), {}, lambda x: np.sqrt((x * x).sum((2, 3), keepdims=True))),
    ("Selu", 1, {}, {}, lambda x: np.where(x > 0, 1.0507 * x, 1.0507 * 1.6732 * np.expm1(x))),
    ("Tile", 1, {}, dict(tiles=np.array(3, np.int64), axis=np.array(1, np.int64)), lambda x: np.tile(x, (1, 3, 1, 1))),
    ("Upsample", 1, dict(height_scale=2.0, width_scale=3.0, mode="nearest"), {}, lambda x: x.repeat(2, 2).repeat(3, 3)),
    ("Concat", 1, {}, dict(other=X), lambda x: np.concatenate([x, X], 1)),
    ("Split", 1, dict(axis=1), dict(split=np.array([3], np.int64)), lambda x: x),
    ("Add", 1, dict(broadcast=1, axis=1), dict(b=np.arange(3, dtype=np.float32)),
     lambda x: x + np.arange(3).reshape(3, 1, 1)),
    ("Clip", 1, dict(min=-1.0, max=0.5), {}, lambda x: np.clip(x, -1, 0.5)),
    ("Softmax", 1, dict(axis=1), {},
     lambda x: (np.exp(x) / np.exp(x).sum((1, 2, 3), keepdims=True))),
    ("BatchNormalization", 7, dict(spatial=0, epsilon=0.0),
     {name: np.abs(X[0]) + 1 for name in ("scale", "bias", "mean", "variance")},
     lambda x: (x - abs(X[0]) - 1) / np.sqrt(abs(X[0]) + 1) * (abs(X[0]) + 1) + abs(X[0]) + 1),
    ("Affine", 6, dict(alpha=2.0, beta=1.0), {}, lambda x: 2 * x + 1),
    ("ScaledTanh", 6, dict(alpha=2.0, beta=0.5), {}, lambda x: 2 * np.tanh(0.5 * x)),
    ("ParametricSoftplus", 6, dict(alpha=2.0, beta=0.5), {}, lambda x: 2 * np.log1p(np.exp(0.5 * x))),
    ("ImageScaler", 6, dict(scale=2.0, bias=[1.0, 2.0, 3.0]), {},
     lambda x: 2 * x + np.array([1, 2, 3.0]).reshape(3, 1, 1)),
    ("Crop", 6, dict(border=[1, 0, 0, 2]), {}, lambda x: x[:, :, :2, 1:]),
]


@pytest.mark.parametrize("backend", ["interpreter", "cpu"])
@pytest.mark.parametrize("name, opset, attrs, constants, oracle", OLD, ids=[row[0] for row in OLD])
def test_old_opset(aglow, tmp_path, backend, name, opset, attrs, constants, oracle):
    node = helper.make_node(name, ["x", *constants], ["y"], **attrs)
    outcome, got = run(aglow, tmp_path, [node], opset, {"x": X}, constants, backend=backend)
    assert outcome.code == 0, outcome.err
    np.testing.assert_allclose(got[0], oracle(X), rtol=1e-5, atol=1e-5)


RANDOM = [
    ("RandomUniform", [], dict(low=2.0, high=4.0, shape=[100, 100], seed=1.0), 3, 2 / np.sqrt(12)),
    ("RandomNormal", [], dict(mean=2.0, scale=3.0, shape=[100, 100]), 2, 3),
    ("RandomUniformLike", ["x"], dict(low=-1.0, high=1.0), 0, 2 / np.sqrt(12)),
    ("RandomNormalLike", ["x"], dict(seed=7.0), 0, 1),
    ("Bernoulli", ["x"], {}, 0.25, np.sqrt(0.25 * 0.75)),
]


@pytest.mark.parametrize("name, operands, attrs, mean, deviation", RANDOM, ids=[row[0] for row in RANDOM])
def test_random_numbers_have_their_distribution(aglow, tmp_path, name, operands, attrs, mean, deviation):
    x = np.full((100, 100), 0.25, np.float32)
    nodes = [helper.make_node(name, operands, ["y"], **attrs), helper.make_node("Identity", ["x"], ["z"])]
    outcome, first = run(aglow, tmp_path, nodes, 18, {"x": x}, outputs=("y", "z"))
    assert outcome.code == 0, outcome.err
    assert abs(first[0].mean() - mean) < 0.05 * deviation and abs(first[0].std() - deviation) < 0.05 * deviation
    assert abs(np.corrcoef(first[0][:, 0], first[0][:, 1])[0, 1]) < 0.4
    _, second = run(aglow, tmp_path, nodes, 18, {"x": x}, outputs=("y", "z"), backend="interpreter")
    np.testing.assert_array_equal(first[0], second[0])


def test_random_nodes_differ_unless_their_seed_is_the_same(aglow, tmp_path):
    like = lambda name, **attrs: helper.make_node("RandomNormalLike", ["x"], [name], **attrs)
    nodes = [like("a"), like("b"), like("c", seed=3.0), like("d", seed=3.0)]
    outcome, got = run(aglow, tmp_path, nodes, 18, {"x": X}, outputs="abcd")
    assert outcome.code == 0, outcome.err
    assert (got[0] != got[1]).any() and (got[0] != got[2]).any() and (got[2] == got[3]).all()


def test_multinomial_draws_classes_as_often_as_they_are_likely(aglow, tmp_path):
    x = np.log(np.array([[0.1, 0.2, 0.7], [0.5, 0.5, 1e-9]], np.float32))
    node = helper.make_node("Multinomial", ["x"], ["y"], sample_size=4000)
    outcome, got = run(aglow, tmp_path, [node], 18, {"x": x})
    assert outcome.code == 0, outcome.err
    shares = [[(row == k).mean() for k in range(3)] for row in got[0]]
    np.testing.assert_allclose(shares, np.exp(x), atol=0.03)


@pytest.mark.parametrize("name, opset, domain, hint", [
    ("Convv", 18, "", "did you mean 'Conv'?"),
    ("MultiHeadAttentoin", 18, "com.microsoft", "did you mean 'MultiHeadAttention'?"),
    ("Attention", 18, "", "from version 23"),
    ("Upsample", 18, "", "up to version 9"),
    ("MatMul", 18, "com.microsoft", "the standard domain has an operator of this name"),
    ("Warble", 18, "com.example", "write it as a function of the model"),
])
def test_an_alternative_is_named(aglow, tmp_path, name, opset, domain, hint):
    node = helper.make_node(name, ["x"], ["y"], domain=domain)
    outcome, _ = run(aglow, tmp_path, [node], opset, {"x": X}, domain=domain)
    assert outcome.code == 3 and hint in outcome.err, outcome.err
