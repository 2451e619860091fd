"""Models whose shapes or control flow depend on run-time values, against the standard's own evaluator."""
import numpy as np
import onnx
import pytest
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator

node, info = h.make_node, h.make_tensor_value_info
RNG = np.random.default_rng(7)
W = RNG.standard_normal((8, 8)).astype(np.float32)
I64 = np.int64


def constants(**values):
    return [numpy_helper.from_array(np.asarray(value), name) for name, value in values.items()]


def model(nodes, inputs, outputs, initializers=(), **more):
    graph = h.make_graph(nodes, "g", inputs, outputs, list(initializers))
    return h.make_model(graph, opset_imports=[h.make_opsetid("", 18)] + more.pop("opsets", []), ir_version=9, **more)


def floats(*dims):
    return RNG.standard_normal(dims).astype(np.float32)


@pytest.fixture(params=["interpreter", "cpu"])
def run(request, aglow, tmp_path):
    def call(made, inputs, *options):
        onnx.save(made, tmp_path / "m.onnx")
        arguments = []
        for name, value in inputs.items():
            np.save(tmp_path / f"{name}.npy", value)
            arguments += ["--input", f"{name}={tmp_path}/{name}.npy"]
        outcome = aglow("run", tmp_path / "m.onnx", *arguments, "--backend", request.param, "--output-dir",
                        tmp_path / "out", *options, timeout=300)
        assert outcome.code == 0, outcome.err
        return [np.load(tmp_path / "out" / f"{i}.npy") for i in range(len(made.graph.output))]

    return call


def check(run, made, inputs, *options):
    expected = ReferenceEvaluator(made).run(None, inputs)
    got = run(made, inputs, *options)
    for g, e in zip(got, expected, strict=True):
        e = np.asarray(e)
        assert g.shape == e.shape and g.dtype == e.dtype
        np.testing.assert_allclose(g, e, rtol=1e-4, atol=1e-5)


def picked():
    """The positive elements of a product, and how many there are, with work on both sides of the cut."""
    return model([node("MatMul", ["x", "W"], ["a"]), node("Relu", ["a"], ["r"]), node("NonZero", ["r"], ["nz"]),
                  node("Transpose", ["nz"], ["ix"], perm=[1, 0]), node("GatherND", ["r", "ix"], ["v"]),
                  node("Sigmoid", ["v"], ["y"]), node("Shape", ["v"], ["n"]), node("Exp", ["r"], ["e"])],
                 [info("x", T.FLOAT, ["b", 8])],
                 [info("y", T.FLOAT, ["k"]), info("n", T.INT64, [1]), info("e", T.FLOAT, ["b", 8])],
                 constants(W=W))


@pytest.mark.parametrize("batch", [0, 1, 5])
def test_nonzero_between_two_parts(run, batch):
    check(run, picked(), {"x": floats(batch, 8)})


def test_nonzero_of_nothing(run):
    made = picked()
    check(run, made, {"x": np.zeros((3, 8), np.float32)})


@pytest.mark.parametrize("kind", ["f4", "f8", "f2", "i8", "i4", "i2", "u1", "i1", "?"])
def test_nonzero_of_every_kind_and_rank(run, kind):
    shapes = [(), (1,), (7,), (3, 5), (2, 0, 3), (2, 3, 4), (1, 2, 1, 6)]
    inputs = {f"x{i}": RNG.integers(0, 2, shape).astype(kind) for i, shape in enumerate(shapes)}
    if kind[0] == "f":
        inputs["x3"][:, :3] = [-0.0, np.nan, np.finfo(kind).smallest_subnormal]
    kinds = [h.np_dtype_to_tensor_dtype(value.dtype) for value in inputs.values()]
    made = model([node("NonZero", [name], [f"y{name}"]) for name in inputs],
                 [info(name, elem, value.shape) for (name, value), elem in zip(inputs.items(), kinds)],
                 [info(f"y{name}", T.INT64, None) for name in inputs])
    for value, got in zip(inputs.values(), run(made, inputs), strict=True):
        expected = np.array(np.nonzero(value)) if value.ndim else np.zeros((0, int(value != 0)), I64)
        assert got.dtype == I64 and got.shape == expected.shape
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("sign", [1, -1])
def test_branch_on_a_computed_condition(run, sign):
    then = h.make_graph([node("MatMul", ["r", "W"], ["t"])], "t", [], [info("t", T.FLOAT, None)])
    otherwise = h.make_graph([node("Neg", ["r"], ["n"]), node("ReduceSum", ["n", "ax"], ["e"])], "e", [],
                             [info("e", T.FLOAT, None)])
    made = model([node("Relu", ["x"], ["r"]), node("ReduceSum", ["r"], ["s"], keepdims=0),
                  node("Greater", ["s", "limit"], ["c"]),
                  node("If", ["c"], ["o"], then_branch=then, else_branch=otherwise), node("Tanh", ["o"], ["y"])],
                 [info("x", T.FLOAT, ["b", 8])], [info("y", T.FLOAT, None)],
                 constants(W=W, limit=np.float32(3), ax=np.array([1], I64)))
    check(run, made, {"x": sign * np.abs(floats(3, 8))})


def early_exit():
    """Sure answers come from the first layer; others take two more, and are rounded by a function of their own."""
    sure = h.make_graph([node("Identity", ["a"], ["t"]), node("Neg", ["m"], ["u"])], "sure", [],
                        [info("t", T.FLOAT, None), info("u", T.FLOAT, None)])
    more = h.make_graph([node("MatMul", ["a", "V"], ["b"]), node("Tanh", ["b"], ["c"]), node("MatMul", ["c", "V"], ["d"]),
                         node("Abs", ["m"], ["e"])], "more", [], [info("d", T.FLOAT, None), info("e", T.FLOAT, None)])
    weights = RNG.standard_normal((192, 192)).astype(np.float32) / 14
    return model([node("MatMul", ["x", "V"], ["p"]), node("Relu", ["p"], ["a"]),
                  node("ReduceMax", ["a"], ["m"], keepdims=0), node("Greater", ["m", "limit"], ["c"]),
                  node("If", ["c"], ["o", "q"], then_branch=sure, else_branch=more), node("Exp", ["o"], ["y"])],
                 [info("x", T.FLOAT, [24, 192])], [info("y", T.FLOAT, None), info("q", T.FLOAT, None)],
                 constants(V=weights, limit=np.float32(2)))


@pytest.mark.parametrize("size", [0.1, 10])
def test_an_early_exit_is_one_program(run, aglow, tmp_path, size):
    made = early_exit()
    check(run, made, {"x": np.float32(size) * floats(24, 192)})
    # Without a runtime that chooses: what only one branch needs is skipped by a predicate.
    outcome = aglow("compile", tmp_path / "m.onnx", "--stop-after", "predicate", "--emit", "graph")
    assert outcome.code == 0, outcome.err
    products = [line for line in outcome.out.splitlines() if "MatMul(" in line]
    assert [" if %" in line for line in products] == [False, True, True], outcome.out


def rows_until_a_limit():
    """Adds rows, picked by a Slice at the step's number, until their sum is over a limit; collects them too."""
    body = h.make_graph(
        [node("Unsqueeze", ["i", "zero"], ["i1"]), node("Add", ["i1", "one"], ["i2"]),
         node("Slice", ["r", "i1", "i2", "zero"], ["row"]), node("Add", ["state", "row"], ["state_out"]),
         node("ReduceSum", ["state_out"], ["sum"], keepdims=0), node("Less", ["sum", "limit"], ["go_out"]),
         node("Identity", ["row"], ["scanned"])], "body",
        [info("i", T.INT64, []), info("go", T.BOOL, []), info("state", T.FLOAT, [1, 8])],
        [info("go_out", T.BOOL, []), info("state_out", T.FLOAT, [1, 8]), info("scanned", T.FLOAT, [1, 8])])
    return model([node("Abs", ["x"], ["r"]), node("Loop", ["m", "true", "s0"], ["last", "rows"], body=body),
                  node("MatMul", ["last", "W"], ["y"])],
                 [info("x", T.FLOAT, ["b", 8]), info("m", T.INT64, [])],
                 [info("y", T.FLOAT, None), info("rows", T.FLOAT, None)],
                 constants(W=W, zero=np.array([0], I64), one=np.array([1], I64), limit=np.float32(30), true=True,
                           s0=np.zeros((1, 8), np.float32)))


@pytest.mark.parametrize("trips", [1, 3, 50])
def test_loop_that_ends_on_a_computed_condition(run, trips):
    x = floats(50, 8)
    y, rows = run(rows_until_a_limit(), {"x": x, "m": np.array(trips, I64)})
    steps = min(trips, 1 + np.argmax(np.abs(x).sum(1).cumsum() >= 30))
    np.testing.assert_array_equal(rows, np.abs(x)[:steps, np.newaxis])
    np.testing.assert_allclose(y, np.abs(x)[:steps].sum(0, keepdims=True) @ W, rtol=1e-4, atol=1e-4)


def test_loop_without_steps(run):
    y, rows = run(rows_until_a_limit(), {"x": floats(5, 8), "m": np.array(0, I64)})
    assert (y == 0).all() and rows.shape == (0, 1, 8)


def test_state_that_grows(run):
    body = h.make_graph([node("Concat", ["s", "a"], ["s_out"], axis=0), node("Identity", ["c"], ["c_out"])], "body",
                        [info("i", T.INT64, []), info("c", T.BOOL, []), info("s", T.FLOAT, None)],
                        [info("c_out", T.BOOL, []), info("s_out", T.FLOAT, None)])
    made = model([node("Abs", ["x"], ["a"]), node("ReduceSum", ["k"], ["k1"], keepdims=0),
                  node("Loop", ["k1", "true", "x"], ["y"], body=body)],
                 [info("x", T.FLOAT, ["b", 4]), info("k", T.INT64, ["n"])], [info("y", T.FLOAT, None)],
                 constants(true=True))
    check(run, made, {"x": floats(1, 4), "k": np.full(9, 1, I64)})


def test_long_scan_is_run_step_by_step(run):
    body = h.make_graph([node("Mul", ["s", "half"], ["a"]), node("Add", ["a", "xt"], ["b"]),
                         node("Tanh", ["b"], ["s_out"]), node("Neg", ["s_out"], ["y"])], "body",
                        [info("s", T.FLOAT, [2, 3]), info("xt", T.FLOAT, [2, 3])],
                        [info("s_out", T.FLOAT, [2, 3]), info("y", T.FLOAT, [2, 3])])
    made = model([node("Scan", ["s0", "x"], ["last", "ys"], body=body, num_scan_inputs=1, scan_input_axes=[1],
                       scan_input_directions=[1], scan_output_axes=[2], scan_output_directions=[1])],
                 [info("s0", T.FLOAT, [2, 3]), info("x", T.FLOAT, [2, "t", 3])],
                 [info("last", T.FLOAT, [2, 3]), info("ys", T.FLOAT, None)], constants(half=np.float32(0.5)))
    s, x = np.zeros((2, 3), np.float32), floats(2, 700, 3)
    last, ys = run(made, {"s0": s, "x": x})
    collected = []
    for t in reversed(range(700)):
        s = np.tanh(s * np.float32(0.5) + x[:, t])
        collected.append(-s)
    np.testing.assert_allclose(last, s, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(ys, np.stack(collected[::-1], axis=2), rtol=1e-4, atol=1e-5)


def test_loops_in_loops_with_shapes_from_values(run):
    inner = h.make_graph([node("Add", ["s", "one"], ["s1"]), node("NonZero", ["s1"], ["nz"]),
                          node("Shape", ["nz"], ["sh"]), node("Cast", ["sh"], ["f"], to=T.FLOAT),
                          node("ReduceSum", ["f"], ["n"], keepdims=0), node("Add", ["s1", "n"], ["s2"]),
                          node("Identity", ["c"], ["c2"])], "inner",
                         [info("j", T.INT64, []), info("c", T.BOOL, []), info("s", T.FLOAT, [4])],
                         [info("c2", T.BOOL, []), info("s2", T.FLOAT, [4])])
    outer = h.make_graph([node("Loop", ["i", "true", "so"], ["s3"], body=inner), node("Mul", ["s3", "half"], ["s4"]),
                          node("Identity", ["c0"], ["c1"])], "outer",
                         [info("i", T.INT64, []), info("c0", T.BOOL, []), info("so", T.FLOAT, [4])],
                         [info("c1", T.BOOL, []), info("s4", T.FLOAT, [4])])
    made = model([node("Loop", ["n0", "true", "x"], ["y"], body=outer)],
                 [info("x", T.FLOAT, [4]), info("n0", T.INT64, [])], [info("y", T.FLOAT, [4])],
                 constants(one=np.float32(1), half=np.float32(0.5), true=True))
    check(run, made, {"x": np.array([0, 1, -1, 2], np.float32), "n0": np.array(4, I64)})


def test_sequence_as_the_state_of_a_loop(run):
    def sequence(name):
        return h.make_tensor_sequence_value_info(name, T.FLOAT, None)

    then = h.make_graph([node("SequenceInsert", ["seq", "row"], ["t"])], "t", [], [sequence("t")])
    otherwise = h.make_graph([node("Identity", ["seq"], ["e"])], "e", [], [sequence("e")])
    body = h.make_graph([node("Gather", ["x", "i"], ["row"], axis=0), node("ReduceSum", ["row"], ["sum"], keepdims=0),
                         node("Greater", ["sum", "zero"], ["g"]),
                         node("If", ["g"], ["seq_out"], then_branch=then, else_branch=otherwise),
                         node("Identity", ["c"], ["c_out"])], "body",
                        [info("i", T.INT64, []), info("c", T.BOOL, []), sequence("seq")],
                        [info("c_out", T.BOOL, []), sequence("seq_out")])
    made = model([node("SequenceEmpty", [], ["s0"], dtype=T.FLOAT), node("Loop", ["n", "", "s0"], ["s"], body=body),
                  node("ConcatFromSequence", ["s"], ["y"], axis=0, new_axis=1)],
                 [info("x", T.FLOAT, ["r", 4]), info("n", T.INT64, [])], [info("y", T.FLOAT, None)],
                 constants(zero=np.float32(0)))
    x = floats(9, 4)
    y, = run(made, {"x": x, "n": np.array(9, I64)})
    np.testing.assert_array_equal(y, x[x.sum(1) > 0])


def test_function_with_shapes_from_values(run):
    function = h.make_function("local", "Places", ["a"], ["b"],
                               [node("NonZero", ["a"], ["nz"]), node("Cast", ["nz"], ["b"], to=T.FLOAT)],
                               [h.make_opsetid("", 18)], [])
    made = model([node("Relu", ["x"], ["r"]), node("Places", ["r"], ["z"], domain="local"), node("Exp", ["z"], ["y"])],
                 [info("x", T.FLOAT, [3, 4])], [info("y", T.FLOAT, None)], functions=[function],
                 opsets=[h.make_opsetid("local", 1)])
    check(run, made, {"x": floats(3, 4)})


def test_shape_from_the_longest_of_many_lengths(run):
    made = model([node("Relu", ["x"], ["r"]), node("ReduceMax", ["lengths"], ["most"], keepdims=0),
                  node("Range", ["zero", "most", "one"], ["steps"]), node("Unsqueeze", ["most", "axis"], ["m"]),
                  node("Concat", ["m", "four"], ["shape"], axis=0), node("Expand", ["r", "shape"], ["wide"]),
                  node("Cast", ["steps"], ["f"], to=T.FLOAT), node("Unsqueeze", ["f", "last"], ["column"]),
                  node("Add", ["wide", "column"], ["y"])],
                 [info("x", T.FLOAT, [1, 4]), info("lengths", T.INT64, ["n"])], [info("y", T.FLOAT, None)],
                 constants(zero=np.array(0, I64), one=np.array(1, I64), axis=np.array([0], I64),
                           four=np.array([4], I64), last=np.array([1], I64)))
    check(run, made, {"x": floats(1, 4), "lengths": np.arange(1, 20, dtype=I64)})


def test_selected_boxes(run):
    made = model([node("Sigmoid", ["s"], ["scores"]),
                  node("NonMaxSuppression", ["boxes", "scores", "most", "overlap", "least"], ["selected"]),
                  node("Gather", ["selected", "column"], ["ids"], axis=1), node("Squeeze", ["boxes", "axis"], ["flat"]),
                  node("Gather", ["flat", "ids"], ["y"], axis=0)],
                 [info("boxes", T.FLOAT, [1, "n", 4]), info("s", T.FLOAT, [1, 2, "n"])],
                 [info("y", T.FLOAT, None), info("selected", T.INT64, None)],
                 constants(most=np.array([10], I64), overlap=np.array([0.5], np.float32),
                           least=np.array([0.3], np.float32), column=np.array(2, I64), axis=np.array([0], I64)))
    boxes = RNG.random((1, 40, 4)).astype(np.float32)
    boxes[..., 2:] += boxes[..., :2]
    check(run, made, {"boxes": boxes, "s": floats(1, 2, 40)})


def test_selected_boxes_after_many_that_overlap(run):
    """The best by far lie on each other, and many scores are equal: of those, the first counts."""
    made = model([node("NonMaxSuppression", ["boxes", "scores", "most", "overlap", "least"], ["selected"])],
                 [info("boxes", T.FLOAT, [1, "n", 4]), info("scores", T.FLOAT, [1, 3, "n"])],
                 [info("selected", T.INT64, None)],
                 constants(most=np.array([20], I64), overlap=np.array([0.5], np.float32),
                           least=np.array([-0.5], np.float32)))
    corner = RNG.random((1, 600, 2)).astype(np.float32) * 30
    corner[:, 200:500] = corner[:, :1] + RNG.random((1, 300, 2)).astype(np.float32) * 0.1
    scores = np.round(RNG.random((1, 3, 600)) * 40 - 20).astype(np.float32) / 32
    scores[..., 200:500] += 2
    check(run, made, {"boxes": np.concatenate([corner, corner + 1], axis=2), "scores": scores})


# ---- sizes prepared, padded, and contradicting

def batched():
    return model([node("MatMul", ["x", "W"], ["a"]), node("Add", ["a", "z"], ["y"])],
                 [info("x", T.FLOAT, ["batch", 8]), info("z", T.FLOAT, ["batch", 8])],
                 [info("y", T.FLOAT, ["batch", 8])], constants(W=W))


@pytest.mark.parametrize("batch", [1, 3, 4, 9])
def test_padding_to_the_next_prepared_size(run, batch):
    check(run, batched(), {"x": floats(batch, 8), "z": floats(batch, 8)}, "--dim", "batch=1,4", "--pad")


def test_padding_needs_sizes(refusal):
    refusal.refuse(batched(), {1}, "--pad", "--dim", inputs={"x": floats(1, 8), "z": floats(1, 8)},
                   options=["--pad"])


def test_padding_of_unknown_outputs(refusal):
    made = batched()
    made.graph.output[0].type.tensor_type.ClearField("shape")
    refusal.refuse(made, {3}, "'y'", "padding", inputs={"x": floats(3, 8), "z": floats(3, 8)},
                   options=["--pad", "--dim", "batch=1,4"])


def test_sizes_that_contradict_each_other(refusal):
    refusal.refuse(batched(), {2}, "batch", "3", "4", "'x'", "'z'", inputs={"x": floats(3, 8), "z": floats(4, 8)})


# ---- faults

def test_endless_loop_is_bounded(refusal, sanitized):
    if sanitized:
        pytest.skip("a million steps take minutes in a sanitized build")
    body = h.make_graph([node("Identity", ["c"], ["c_out"]), node("Neg", ["s"], ["s_out"])], "body",
                        [info("i", T.INT64, []), info("c", T.BOOL, []), info("s", T.FLOAT, [2])],
                        [info("c_out", T.BOOL, []), info("s_out", T.FLOAT, [2])])
    made = model([node("Loop", ["", "go", "x"], ["y"], body=body)], [info("x", T.FLOAT, [2]), info("go", T.BOOL, [])],
                 [info("y", T.FLOAT, [2])])
    refusal.refuse(made, {4}, "'y'", "Loop", "steps", inputs={"x": floats(2), "go": np.array(True)}, timeout=120)


def test_a_bundle_needs_every_shape(aglow, tmp_path):
    onnx.save(picked(), tmp_path / "m.onnx")
    outcome = aglow("compile", tmp_path / "m.onnx", "--dim", "b=2", "-o", tmp_path / "out")
    assert outcome.code == 3
    assert "E303" in outcome.err and "'nz' (NonZero)" in outcome.err and "aglow run" in outcome.err
    assert not (tmp_path / "out").exists() or not list((tmp_path / "out").iterdir())
