"""Models that depart from the standard as other engines accept it: they run, with a warning, unless --strict refuses."""
import numpy as np
import pytest
from bad_models import model, node
from onnx import TensorProto, helper, numpy_helper

X = np.array([[-1, 2, -3], [4, -5, 6]], np.float32)


def value(name, shape, kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def open_size():
    made = model([node("Relu", ["x"])], {"x": X})
    made.graph.input[0].type.tensor_type.shape.dim[0].dim_value = -1
    return made


def out_of_order():
    return model([node("Neg", ["r"], ["y"], "last"), node("Relu", ["x"], ["r"], "first")], {"x": X})


def nested_out_of_order():
    """A branch that reads what the graph around it computes later, with its own nodes the wrong way round."""
    branch = helper.make_graph([node("Neg", ["r"], ["b"], "last"), node("Relu", ["later"], ["r"], "first")], "branch", [],
                               [value("b", None)])
    choice = node("If", ["c"], ["y"], "choice", then_branch=branch, else_branch=branch)
    return model([choice, node("Identity", ["x"], ["later"], "late")], {"x": X}, {"c": np.array(True)})


def function_out_of_order():
    body = helper.make_function("local", "F", ["a"], ["b"], [node("Neg", ["r"], ["b"]), node("Relu", ["a"], ["r"])],
                                [helper.make_opsetid("", 17)])
    return model([node("F", ["x"], domain="local")], {"x": X}, opsets=[("", 17), ("local", 1)], functions=[body])


def undeclared(kind, domain, **attributes):
    return lambda: model([node(kind, ["x"], domain=domain, **attributes)], {"x": X})


def equal_constants():
    twice = [node("Constant", [], ["two"], "c", value=numpy_helper.from_array(np.float32(2))) for _ in range(2)]
    return model([*twice, node("Mul", ["x", "two"])], {"x": X})


def equal_number_constants():
    twice = [node("Constant", [], ["two"], "c", value_float=2.0) for _ in range(2)]
    return model([*twice, node("Mul", ["x", "two"])], {"x": X})


def equal_initializers():
    made = model([node("Mul", ["x", "two"])], {"x": X}, {"two": np.float32(2)})
    made.graph.initializer.append(made.graph.initializer[0])
    return made


def constant_and_initializer():
    return model([node("Constant", [], ["two"], "c", value=numpy_helper.from_array(np.float32(2))),
                  node("Mul", ["x", "two"])], {"x": X}, {"two": np.float32(2)})


def scalar_input():
    made = model([node("Relu", ["x"])], {"x": X})
    made.graph.input[0].CopyFrom(value("x", []))
    return made


def counting_loop(trips, counter=(1,), condition=()):
    """Adds the counter to x in every step; [1] is joined with the state's row as only a vector can be."""
    body = helper.make_graph(
        [node("Cast", ["i"], ["f"], to=TensorProto.FLOAT), node("Add", ["s", "f"], ["t"]),
         node("Identity", ["c"], ["d"]), node("Identity", ["i"], ["seen"])],
        "body", [value("i", counter, TensorProto.INT64), value("c", condition, TensorProto.BOOL), value("s", [2, 3])],
        [value("d", condition, TensorProto.BOOL), value("t", [2, 3]), value("seen", counter, TensorProto.INT64)])
    made = model([node("Loop", ["n", "", "x"], ["y", "counters"], body=body)], {"x": X},
                 {"n": np.array(trips, np.int64)}, outputs=["y"])
    made.graph.output.append(value("counters", None, TensorProto.INT64))
    return made


def empty_axes(opset):
    made = model([node("Unsqueeze", ["x", "one"], ["u"]) if opset >= 13 else node("Unsqueeze", ["x"], ["u"], axes=[1]),
                  node("Squeeze", ["u", "none"]) if opset >= 13 else node("Squeeze", ["u"])],
                 {"x": X}, {"one": np.array([1], np.int64), "none": np.zeros(0, np.int64)} if opset >= 13 else {},
                 opsets=[("", opset)])
    if opset < 13:  # the helper leaves empty lists without their type
        made.graph.node[1].attribute.add(name="axes", type=7)
    return made


def repeated_axes():
    return model([node("Unsqueeze", ["x", "one"], ["u"]), node("Squeeze", ["u", "twice"])], {"x": X},
                 {"one": np.array([1], np.int64), "twice": np.array([1, -2], np.int64)})


def without(*fields):
    made = model([node("Relu", ["x"])], {"x": X})
    for name in fields:
        made.ClearField(name)
    return made


RELU, TWICE = np.maximum(X, 0), 2 * X
# name: model, output, words of the warning, exit code when strict
MODELS = {
    "no ir_version": (lambda: without("ir_version"), RELU, "the model does not name its ir_version", 2),
    "a size of -1": (open_size, RELU, "a size of -1 is declared: 'x' as f32[-1,3]", 2),
    "domain com.microsoft": (undeclared("QuickGelu", "com.microsoft", alpha=1.0), X / (1 + np.exp(-X)),
                             "domain 'com.microsoft' is used, but not imported by the model; version 1 is taken", 2),
    "domain ai.onnx.ml": (undeclared("Binarizer", "ai.onnx.ml", threshold=0.0), (X > 0).astype(np.float32),
                          "domain 'ai.onnx.ml' is used", 2),
    "equal constants": (equal_constants, TWICE, "value 'two' is defined twice, by equal constants", 2),
    "equal constants that are numbers": (equal_number_constants, TWICE, "value 'two' is defined twice", 2),
    "equal initializers": (equal_initializers, TWICE, "value 'two' is defined twice", 2),
    "a constant like an initializer": (constant_and_initializer, TWICE, "value 'two' is defined twice", 2),
    "an input without dimensions": (scalar_input, RELU, "input 'x' has shape [2,3]; expected f32[], a scalar", 1),
    "the counter of a loop": (lambda: counting_loop(3), X + 3, "the body declares its counter as i64[1]", 2),
    "the counter of a long loop": (lambda: counting_loop(2000), X + 1999000, "the body declares its counter as i64[1]",
                                   2),
    "the condition of a loop": (lambda: counting_loop(3, (), (1,)), X + 3, "the body declares its condition as bool[1]",
                                2),
    "empty axes": (lambda: empty_axes(17), X, "expected an axis in 'axes', got none", 2),
    "axes twice": (repeated_axes, X, "expected every axis once in 'axes', got [1,1]", 2),
    "empty axes as an attribute": (lambda: empty_axes(11), X, "expected an axis in 'axes', got none", 2),
}
SORTED = {"nodes out of order": out_of_order, "a branch out of order": nested_out_of_order,
          "a function out of order": function_out_of_order}


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("name", MODELS)
def test_accepted_with_a_warning(refusal, name):
    make, expected, words, code = MODELS[name]
    outcome = refusal.run(make(), {"x": X})
    assert outcome.code == 0, outcome.err
    np.testing.assert_allclose(np.load(refusal.out / "0.npy"), expected, rtol=1e-6)
    said = [line for line in outcome.err.splitlines() if line.startswith("warning[E")]
    assert len(said) == 1 and words in said[0], outcome.err


@pytest.mark.parametrize("name", MODELS)
def test_refused_when_strict(refusal, name):
    make, _, words, code = MODELS[name]
    refusal.refuse(make(), {code}, words.split(";")[0], inputs={"x": X}, options=["--strict"])


@pytest.mark.parametrize("name", SORTED)
def test_nodes_are_sorted(refusal, name):
    outcome = refusal.run(SORTED[name](), {"x": X})
    assert (outcome.code, outcome.err) == (0, "")
    np.testing.assert_array_equal(np.load(refusal.out / "0.npy"), -RELU)
    done = refusal.run(SORTED[name](), {"x": X}, options=["-v"])
    assert done.code == 0 and "the nodes are not in order" in done.err and "they are sorted" in done.err, done.err
    for path in refusal.out.iterdir():
        path.unlink()
    refusal.refuse(SORTED[name](), {2}, "the nodes are not in order", inputs={"x": X}, options=["--strict"])


@pytest.mark.parametrize("command, more", [("inspect", []), ("compile", ["--emit", "graph"]),
                                           ("bench", ["--runs", "1"]), ("verify", []), ("run", [])])
def test_every_command(aglow, refusal, tmp_path, command, more):
    path = refusal.write(MODELS["equal constants"][0]())
    np.save(tmp_path / "x.npy", X)
    given = ["--input", f"x={tmp_path}/x.npy"] if command in ("run", "verify", "bench") else []
    accepted = aglow(command, path, *given, *more)
    assert accepted.code == 0 and accepted.err.count("warning[E204]") == 1, accepted.err
    refused = aglow(command, path, *given, *more, "--strict")
    assert refused.code == 2 and "error[E204]" in refused.err and "warning[" not in refused.err, refused.err


def test_shape_for_an_input_without_dimensions(aglow, refusal):
    path = refusal.write(scalar_input())
    accepted = aglow("compile", path, "--shape", "x=2x3", "--emit", "graph")
    assert accepted.code == 0 and "a scalar" in accepted.err and "f32[2,3]" in accepted.out, accepted.err
    assert aglow("compile", path, "--shape", "x=2x3", "--strict").code == 1
    scalar = aglow("compile", path, "--strict", "--emit", "graph")
    assert scalar.code == 0 and scalar.err == "", scalar.err


# ---- what no engine accepts

def unlike_constants():
    return model([node("Constant", [], ["c"], "one", value_float=1.0), node("Constant", [], ["c"], "two", value_float=2.0),
                  node("Mul", ["x", "c"])], {"x": X})


def negative_size():
    made = open_size()
    made.graph.input[0].type.tensor_type.shape.dim[0].dim_value = -2
    return made


def ring():
    return model([node("Add", ["x", "b"], ["a"]), node("Relu", ["a"], ["b"]), node("Relu", ["b"])], {"x": X})


@pytest.mark.parametrize("make, codes, words", [
    (unlike_constants, {2}, "value 'c' is defined twice"), (negative_size, {1, 2}, "'x'"), (ring, {2}, "'b'"),
    (undeclared("Relu", "com.nowhere"), {3}, "com.nowhere"),
])
def test_still_refused(refusal, make, codes, words):
    refusal.refuse(make(), codes, words, inputs={"x": X})


# ---- one exit code for one fault, whichever command meets it

def untyped(change):
    made = model([node("Relu", ["x"])], {"x": X})
    change(made.graph.input[0].type.tensor_type)
    return made


def set_kind(kind):
    return lambda tensor: setattr(tensor, "elem_type", kind)


@pytest.mark.parametrize("make, code, words", [
    (lambda: without("opset_import"), 2, "opset"), (lambda: without("ir_version", "opset_import"), 2, "opset"),
    (lambda: untyped(lambda tensor: tensor.ClearField("elem_type")), 2, "element type 0"),
    (lambda: untyped(set_kind(99)), 2, "element type 99"),
    (lambda: untyped(set_kind(TensorProto.COMPLEX64)), 3, "complex64"),
    (lambda: model([node("Relu", ["x"])], {"x": X}, opsets=[("com.microsoft", 1)]), 2, "opset"),
])
def test_exit_code_of_every_command(aglow, refusal, tmp_path, make, code, words):
    path = refusal.write(make())
    np.save(tmp_path / "x.npy", X)
    for command in ["run", "compile", "bench", "verify"]:
        given = ["--input", f"x={tmp_path}/x.npy"] if command == "run" else []
        outcome = aglow(command, path, *given)
        assert (outcome.code, words in outcome.err) == (code, True), (command, outcome.code, outcome.err)


def test_models_before_opsets(refusal):
    """IR versions 1 and 2 have no opset_import; opset 1 is what they are written for."""
    old = without("opset_import")
    old.ir_version = 2
    outcome = refusal.run(old, {"x": X})
    assert (outcome.code, outcome.err) == (0, "")
    np.testing.assert_array_equal(np.load(refusal.out / "0.npy"), RELU)


# ---- the Python module

def compiled(make, **options):
    aglow = pytest.importorskip("aglow", reason="the module is not built: ./dev test builds it")
    return aglow, lambda: aglow.compile(make(), **options)


def test_module_warns(recwarn):
    aglow, compile_ = compiled(MODELS["equal constants"][0])
    with pytest.warns(aglow.ModelWarning, match="value 'two' is defined twice"):
        made = compile_()
    recwarn.clear()
    np.testing.assert_array_equal(made(X), TWICE)
    assert not recwarn.list
    aglow, strict = compiled(MODELS["equal constants"][0], strict=True)
    with pytest.raises(aglow.BadModelError, match="value 'two' is defined twice"):
        strict()


def test_module_warns_when_arrays_come(recwarn):
    aglow, compile_ = compiled(scalar_input)
    made = compile_()
    assert not recwarn.list
    with pytest.warns(aglow.ModelWarning, match="a scalar") as warned:
        np.testing.assert_array_equal(made(X), RELU)
    assert warned[0].filename == __file__
    recwarn.clear()
    made(X)
    assert not recwarn.list
    aglow, strict = compiled(scalar_input, strict=True)
    with pytest.raises(aglow.UsageError, match="a scalar"):
        strict()(X)
