"""Precisions that need no profile: products of bf16, f16, and weights of a few bits."""
import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from test_quantization import BACKENDS, DIGITS, LABELS, outputs, sqnr

# Least decibels of each precision.
REACHED = {"bf16": 35, "int8-weights": 40, "int4-weights": 20}


@pytest.fixture
def rng():
    return np.random.default_rng(7)


def saved(path, nodes, inputs, outputs_, weights):
    """A model with named weights; the types of outputs are left to shape inference."""
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in outputs_.items()],
        [numpy_helper.from_array(value, name) for name, value in weights.items()])
    domains = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    onnx.save(helper.make_model(graph, opset_imports=domains, ir_version=10), path)
    return path


def ran(aglow, model, x, tmp_path, *options):
    np.save(tmp_path / "x.npy", x)
    done = aglow("run", model, "--input", f"x={tmp_path / 'x.npy'}", "-o", tmp_path / "out", *options)
    assert done.code == 0, done.err
    return np.load(tmp_path / "out" / "0.npy")


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("precision", [*REACHED, "fp16"])
def test_the_digits_stay_what_they_are(aglow, tmp_path, precision, backend):
    expected = outputs(aglow, tmp_path, "--backend", backend)
    got = outputs(aglow, tmp_path, "--backend", backend, "--precision", precision)
    # All its matrices fit the nearest caches, so that fewer bits gain nothing.
    assert (got != expected).any() == (precision in ("bf16", "fp16")) and (got.argmax(1) == LABELS).all()
    assert sqnr(expected, got) >= REACHED.get(precision, 55)


@pytest.mark.parametrize("backend", BACKENDS)
def test_products_are_those_of_f16_and_softmaxes_stay_f32(aglow, tmp_path, rng, backend):
    weights = rng.standard_normal((96, 40)).astype(np.float32) / 8
    nodes = [helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node("Relu", ["p"], ["r"]),
             helper.make_node("Softmax", ["r"], ["y"], axis=1)]
    model = saved(tmp_path / "m.onnx", nodes, {"x": [5, 96]}, {"y": [5, 40]}, {"w": weights})
    x = rng.standard_normal((5, 96)).astype(np.float32)
    got = ran(aglow, model, x, tmp_path, "--backend", backend, "--precision", "fp16")
    narrow = np.maximum(x.astype(np.float16).astype(np.float64) @ weights.astype(np.float16).astype(np.float64), 0)
    powers = np.exp(narrow.astype(np.float16).astype(np.float64))
    assert np.allclose(got, powers / powers.sum(1, keepdims=True), rtol=4e-3, atol=0)
    assert (got.astype(np.float16) != got).any()


@pytest.mark.parametrize("precision", REACHED)
@pytest.mark.parametrize("rows, depth, columns", [(1, 96, 200), (3, 300, 64), (2, 541, 33), (7, 256, 70), (20, 205, 96)])
def test_products_are_the_same_on_both_backends(aglow, tmp_path, rng, precision, rows, depth, columns):
    weights = rng.standard_normal((depth, columns)).astype(np.float32) / 8
    weights[: depth // 2, 3] = 0  # a block of zeros
    model = saved(tmp_path / "m.onnx", [helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node("Relu", ["p"], ["y"])],
                  {"x": [rows, depth]}, {"y": [rows, columns]}, {"w": weights})
    x = rng.standard_normal((rows, depth)).astype(np.float32)
    results = {backend: ran(aglow, model, x, tmp_path, "--backend", backend, "--precision", precision)
               for backend in BACKENDS}
    assert np.allclose(results["cpu"], results["interpreter"], rtol=1e-5, atol=1e-7 * depth)
    assert sqnr(np.maximum(x @ weights, 0), results["cpu"]) >= REACHED[precision] - 3


def layers(rng, depth, width=192):
    """Relu after product, `depth` of them: inputs of all but the first are never negative."""
    weights = {f"w{i}": (rng.standard_normal((width, width)) * (2 / width) ** 0.5).astype(np.float32) for i in range(depth)}
    nodes = []
    for i in range(depth):
        nodes += [helper.make_node("MatMul", [f"r{i}" if i else "x", f"w{i}"], [f"p{i}"]),
                  helper.make_node("Relu", [f"p{i}"], [f"r{i + 1}"])]
    return nodes, weights


@pytest.mark.parametrize("precision, least", [("int8-weights", 38), ("int4-weights", 14.5)])
def test_errors_of_many_layers_stay_small(aglow, tmp_path, rng, precision, least):
    nodes, weights = layers(rng, 8)
    model = saved(tmp_path / "m.onnx", nodes, {"x": [20, 192]}, {"r8": [20, 192]}, weights)
    x = np.abs(rng.standard_normal((20, 192))).astype(np.float32)
    assert sqnr(ran(aglow, model, x, tmp_path), ran(aglow, model, x, tmp_path, "--precision", precision)) >= least


def test_products_of_a_few_numbers_stay_as_they_are(aglow, tmp_path, rng):
    nodes, weights = layers(rng, 2, 16)
    model = saved(tmp_path / "m.onnx", nodes, {"x": [1, 16]}, {"r2": [1, 16]}, weights)
    x = rng.standard_normal((1, 16)).astype(np.float32)
    for precision in REACHED:
        assert (ran(aglow, model, x, tmp_path, "--precision", precision) == ran(aglow, model, x, tmp_path)).all()


@pytest.mark.parametrize("channels, outputs_, group, stride", [(32, 40, 1, 1), (16, 64, 1, 2), (7, 32, 1, 1), (64, 64, 2, 1),
                                                               (32, 32, 32, 1), (3, 32, 1, 2)])
def test_convolutions_of_bf16_are_the_same_on_both_backends(aglow, tmp_path, rng, channels, outputs_, group, stride):
    filters = rng.standard_normal((outputs_, channels // group, 3, 3)).astype(np.float32) / 16
    conv = helper.make_node("Conv", ["x", "w"], ["y"], pads=[1, 1, 1, 1], group=group, strides=[stride, stride])
    side = 11 if stride == 1 else 6
    model = saved(tmp_path / "m.onnx", [conv], {"x": [2, channels, 11, 11]}, {"y": [2, outputs_, side, side]}, {"w": filters})
    x = rng.standard_normal((2, channels, 11, 11)).astype(np.float32)
    exact, cpu, interpreter = (ran(aglow, model, x, tmp_path, "--backend", backend, "--precision", precision)
                               for backend, precision in (("cpu", "float"), ("cpu", "bf16"), ("interpreter", "bf16")))
    assert np.allclose(cpu, interpreter, rtol=1e-4, atol=1e-5)
    assert 35 <= sqnr(exact, cpu) < 70


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("bits, block, zeros", [(4, 32, False), (4, 16, True), (8, 32, True), (8, 64, False), (2, 16, True)])
@pytest.mark.parametrize("rows", [1, 6])
def test_weights_packed_into_bytes(aglow, tmp_path, rng, backend, bits, block, zeros, rows):
    """MatMulNBits, with and without zero points, for few rows and for many."""
    depth, columns, each = 96, 48, 8 // bits
    blocks = -(-depth // block)
    levels = rng.integers(0, 1 << bits, (columns, blocks * block), dtype=np.uint8)
    scales = rng.uniform(0.01, 0.1, (columns, blocks)).astype(np.float32)
    offsets = rng.integers(0, 1 << bits, (columns, blocks), dtype=np.uint8) if zeros else np.full((columns, blocks), 1 << (bits - 1))

    def packed(values):
        filled = np.pad(values, ((0, 0), (0, -values.shape[1] % each))).reshape(columns, -1, each).astype(np.uint32)
        return sum(filled[:, :, i] << (bits * i) for i in range(each)).astype(np.uint8)

    weights = {"w": packed(levels).reshape(columns, blocks, -1), "s": scales.reshape(-1)}
    if zeros:
        weights["z"] = packed(offsets.astype(np.uint8)).reshape(-1)
    node = helper.make_node("MatMulNBits", ["x", *weights], ["y"], domain="com.microsoft", K=depth, N=columns, bits=bits,
                            block_size=block)
    model = saved(tmp_path / "m.onnx", [node], {"x": [rows, depth]}, {"y": [rows, columns]}, weights)
    x = rng.standard_normal((rows, depth)).astype(np.float32)
    real = ((levels - np.repeat(offsets, block, 1).astype(np.float64)) * np.repeat(scales, block, 1))[:, :depth]
    assert np.allclose(ran(aglow, model, x, tmp_path, "--backend", backend), x @ real.T, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("gemm", [False, True])
def test_weights_in_blocks_may_lie_the_other_way(aglow, tmp_path, rng, backend, gemm):
    """DequantizeLinear with blocks, before a Transpose or a Gemm that transposes."""
    depth, columns, block = 512, 96, 32
    levels = rng.integers(0, 16, (columns, depth)).astype(np.uint8)
    scales = rng.uniform(0.01, 0.1, (columns, depth // block)).astype(np.float32)
    zeros = rng.integers(0, 16, scales.shape).astype(np.uint8)
    nodes = [helper.make_node("DequantizeLinear", ["w", "s", "z"], ["d"], axis=1, block_size=block)]
    nodes += ([helper.make_node("Gemm", ["x", "d"], ["y"], transB=1)] if gemm else
              [helper.make_node("Transpose", ["d"], ["t"], perm=[1, 0]), helper.make_node("MatMul", ["x", "t"], ["y"])])
    model = saved(tmp_path / "m.onnx", nodes, {"x": [1, depth]}, {"y": [1, columns]},
                  {"w": levels.astype(ml_dtypes.uint4), "s": scales, "z": zeros.astype(ml_dtypes.uint4)})
    x = rng.standard_normal((1, depth)).astype(np.float32)
    real = (levels - np.repeat(zeros, block, 1).astype(np.float64)) * np.repeat(scales, block, 1)
    assert np.allclose(ran(aglow, model, x, tmp_path, "--backend", backend), x @ real.T, rtol=1e-4, atol=1e-4)
    if backend == "cpu":
        explained = aglow("inspect", model, "--explain", "--cpu", "x86-64-v3")
        assert "BlockMatMul" in explained.out, explained.out


def halves(path, node, weights):
    """A layer of f16 and a clip, as exporters write them."""
    shapes = {"Conv": [1, 32, 14, 14], "MatMul": [20, 32]}[node.op_type]
    bounds = [numpy_helper.from_array(np.float16(value), name) for name, value in (("low", 0), ("high", 6))]
    graph = helper.make_graph([node, helper.make_node("Clip", ["c", "low", "high"], ["y"])], "g",
                              [helper.make_tensor_value_info("x", TensorProto.FLOAT16, shapes)],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT16, shapes)],
                              [numpy_helper.from_array(weights, "w"), *bounds])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)
    return path, shapes


@pytest.mark.parametrize("kind, extra", [("Conv", (1, 1)), ("MatMul", ())])
def test_layers_of_f16_are_computed_in_f32(aglow, tmp_path, rng, kind, extra):
    weights = (rng.standard_normal((32, 32, *extra)) / 6).astype(np.float16)
    model, shape = halves(tmp_path / "m.onnx", helper.make_node(kind, ["x", "w"], ["c"]), weights)
    x = rng.standard_normal(shape).astype(np.float16)
    form = "bchw,oc->bohw" if kind == "Conv" else "bc,co->bo"
    expected = np.einsum(form, x.astype(np.float64), weights.reshape(32, 32).astype(np.float64)).clip(0, 6)
    assert np.allclose(ran(aglow, model, x, tmp_path), expected, rtol=2e-3, atol=1e-4)
    explained = aglow("inspect", model, "--explain", "--cpu", "x86-64-v3").out
    assert any(f"{kind}" in line and "tiles" in line for line in explained.splitlines()), explained
    done = aglow("compile", model, "-o", tmp_path / "b", "--emit", "asm", "--cpu", "x86-64-v3")
    assert done.code == 0, done.err
    # Comparisons of many elements at once, not one by one.
    assert "ucomiss" not in (tmp_path / "b" / "m.s").read_text()


def test_weights_take_fewer_bytes(aglow, tmp_path, rng):
    weights = rng.standard_normal((512, 512)).astype(np.float32)
    model = saved(tmp_path / "m.onnx", [helper.make_node("MatMul", ["x", "w"], ["y"])], {"x": [1, 512]}, {"y": [1, 512]},
                  {"w": weights})

    def size(*options):
        done = aglow("compile", model, "-o", tmp_path / "b", "--emit", "bundle", "--cpu", "x86-64-v4", "--features", "+avx512bf16", *options)
        assert done.code == 0, done.err
        return (tmp_path / "b" / "m.weights.bin").stat().st_size

    whole = size()
    assert size("--precision", "bf16") <= 0.51 * whole
    assert size("--precision", "int8-weights") <= 0.29 * whole
    assert size("--precision", "int4-weights") <= 0.17 * whole


@pytest.mark.parametrize("options, message", [
    (["--precision", "bf16", "--profile", "p.json"], "--profile, --calibration and --schema are for --precision int8"),
    (["--precision", "int4-weights", "--keep-float", "convv"], "nothing that could be quantized is named 'convv'"),
    (["--precision", "int3"], "int3"),
])
def test_what_does_not_go_together(aglow, options, message):
    done = aglow("run", DIGITS, "--input", f"image={DIGITS.parent / 'images' / '7.npy'}", *options)
    assert done.code == 1 and message in done.err


def test_layers_may_stay_floats(aglow, tmp_path):
    expected = outputs(aglow, tmp_path)
    assert (outputs(aglow, tmp_path, "--precision", "bf16", "--keep-float", "Conv,MatMul") == expected).all()


def test_from_python(tmp_path, rng):
    aglow = pytest.importorskip("aglow")
    nodes, weights = layers(rng, 1)
    model = saved(tmp_path / "m.onnx", nodes, {"x": [1, 192]}, {"r1": [1, 192]}, weights)
    x = rng.standard_normal((1, 192)).astype(np.float32)
    exact = aglow.compile(model)(x)
    for precision, reached in REACHED.items():
        assert reached <= sqnr(exact, aglow.compile(model, precision=precision)(x)) < np.inf
    with pytest.raises(aglow.UsageError, match="expected one of float, int8, bf16"):
        aglow.compile(DIGITS, precision="int3")
