"""Values that only a run can tell, and that no operator allows: refused with the node's name, on every backend, without
a crash, a read outside, or memory by claim."""
import numpy as np
import pytest
from bad_models import model, node, zeros
from onnx import TensorProto, helper

pytestmark = pytest.mark.usefixtures("backend")
F32 = np.float32


def ints(*values):
    return np.array(values, np.int64)


def of(kind, inputs, outputs=("y",), **attributes):
    """One node named culprit whose inputs are all given at run time; what it computes need not be a float."""
    names = [f"i{number}" for number in range(len(inputs))]
    made = model([node(kind, names, outputs, **attributes)], dict(zip(names, inputs)), outputs=outputs)
    for output in made.graph.output:
        output.type.tensor_type.elem_type = 0
    return made, dict(zip(names, inputs))


IMAGE = zeros(1, 1, 4, 4)
# kind, inputs, attributes
REFUSED = {
    "reshape to another size": ("Reshape", [zeros(2, 3), ints(4, 2)], {}),
    "reshape with two open sizes": ("Reshape", [zeros(2, 3), ints(-1, -1)], {}),
    "reshape to a negative size": ("Reshape", [zeros(2, 3), ints(-2, -3)], {}),
    "expand to another size": ("Expand", [zeros(2, 3), ints(2, 4)], {}),
    "tile a negative number of times": ("Tile", [zeros(2, 3), ints(1, -1)], {}),
    "tile by another rank": ("Tile", [zeros(2, 3), ints(1)], {}),
    "constant of a negative shape": ("ConstantOfShape", [ints(2, -1)], {}),
    "top more than there are": ("TopK", [zeros(2, 3), ints(4)], {}),
    "top a negative number": ("TopK", [zeros(2, 3), ints(-1)], {}),
    "range of step 0": ("Range", [ints(0).reshape(()), ints(5).reshape(()), ints(0).reshape(())], {}),
    "slice of step 0": ("Slice", [zeros(2, 3), ints(0), ints(1), ints(0), ints(0)], {}),
    "slice along no axis": ("Slice", [zeros(2, 3), ints(0), ints(1), ints(7)], {}),
    "split into other sizes": ("Split", [zeros(6), ints(2, 3)], {}),
    "split into negative sizes": ("Split", [zeros(6), ints(7, -1)], {}),
    "unsqueeze at no axis": ("Unsqueeze", [zeros(2), ints(9)], {}),
    "sum along no axis": ("ReduceSum", [zeros(2, 3), ints(5)], {}),
    "cumulate along no axis": ("CumSum", [zeros(2, 3), ints(5).reshape(())], {}),
    "pad to a negative size": ("Pad", [zeros(2, 3), ints(-2, 0, -2, 0)], {}),
    "resize by 0": ("Resize", [IMAGE, zeros(0), np.array([1, 1, 0, 0], F32)], {}),
    "resize by NaN": ("Resize", [IMAGE, zeros(0), np.array([1, 1, np.nan, 1], F32)], {}),
    "resize by a negative number": ("Resize", [IMAGE, zeros(0), np.array([1, 1, -1, 1], F32)], {}),
    "one of a negative number": ("OneHot", [ints(0), ints(-3), zeros(2)], {}),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(refusal, name):
    kind, inputs, attributes = REFUSED[name]
    outputs = ("y", "z") if kind in ("TopK", "Split") else ("y",)
    content, given = of(kind, inputs, outputs, **attributes)
    refusal.check(refusal.run(content, given), {2}, "culprit")


# Sizes that are only known at run time, and that no machine has.
HUGE = {
    "constant": ("ConstantOfShape", [ints(10 ** 6, 10 ** 6)], {}),
    "expand": ("Expand", [zeros(1), ints(10 ** 6, 10 ** 6)], {}),
    "tile": ("Tile", [zeros(1), ints(10 ** 12)], {}),
    "range": ("Range", [ints(0).reshape(()), ints(1 << 60).reshape(()), ints(1).reshape(())], {}),
    "resize": ("Resize", [IMAGE, zeros(0), np.array([1, 1, 1e6, 1e6], F32)], {}),
    "one hot": ("OneHot", [ints(0), ints(1 << 45), zeros(2)], {}),
    "pad": ("Pad", [zeros(1), ints(0, 1 << 45)], {}),
}


@pytest.mark.parametrize("name", HUGE)
def test_huge(refusal, name):
    kind, inputs, attributes = HUGE[name]
    content, given = of(kind, inputs, **attributes)
    refusal.check(refusal.run(content, given), {2, 4})


def run_within(refusal, content, given, limit):
    """`aglow run` with a limit of memory."""
    arguments = []
    for number, (name, array) in enumerate(given.items()):
        np.save(refusal.folder / f"in{number}.npy", array)
        arguments += ["--input", f"{name}={refusal.folder}/in{number}.npy"]
    return refusal.aglow("run", refusal.write(content), *arguments, "--output-dir", refusal.out, "--memory-limit", limit,
                         timeout=60 * refusal.slow)


def test_gigapixel_under_a_memory_limit(refusal):
    content, given = of("Resize", [zeros(1, 1, 1000, 1000), zeros(0), np.array([1, 1, 32, 32], F32)])
    refusal.check(run_within(refusal, content, given, "512M"), {4})


# ---- arithmetic that processors trap or leave open

@pytest.mark.parametrize("kind", ["Div", "Mod"])
@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint64])
def test_integer_division(refusal, kind, dtype):
    """Division by zero, and the one quotient that does not fit, end in a result or a refusal."""
    low = np.iinfo(dtype).min
    x = np.array([7, low, 1, 0, low], dtype)
    y = np.array([2, 1, 1, 3, 1], dtype)
    if low < 0:
        y[1] = y[4] = -1
    content, given = of(kind, [x, y])
    outcome = refusal.run(content, given)
    assert outcome.code == 0, outcome.err
    got = np.load(refusal.out / "0.npy")
    with np.errstate(all="ignore"):
        assert got[0] == (3 if kind == "Div" else 1) and got[2] == (1 if kind == "Div" else 0) and got[3] == 0, got


@pytest.mark.parametrize("kind", ["Div", "Mod"])
def test_division_by_zero(refusal, kind):
    content, given = of(kind, [np.array([7, -7, 0], np.int32), zeros(3, dtype=np.int32)])
    outcome = refusal.run(content, given)
    assert outcome.code == 0 or (outcome.code == 2 and "culprit" in outcome.err), outcome.err


def test_casts_of_what_does_not_fit(refusal):
    x = np.array([np.nan, np.inf, -np.inf, 3e38, -3e38, 1.9], F32)
    for kind in (TensorProto.INT8, TensorProto.INT32, TensorProto.INT64, TensorProto.UINT8, TensorProto.UINT64):
        content, given = of("Cast", [x], to=kind)
        outcome = refusal.run(content, given)
        assert outcome.code == 0, outcome.err
        assert np.load(refusal.out / "0.npy")[5] == 1


@pytest.mark.parametrize("direction", ["LEFT", "RIGHT"])
def test_shifts_beyond_the_width(refusal, direction):
    x, y = np.array([1, 255, 3], np.uint32), np.array([32, 200, 1], np.uint32)
    content, given = of("BitShift", [x, y], direction=direction)
    outcome = refusal.run(content, given)
    assert outcome.code == 0, outcome.err
    assert np.load(refusal.out / "0.npy")[2] == (6 if direction == "LEFT" else 1)


DENORMAL = np.array([1e-40, -1e-40, 1e-45, np.nan, np.inf, -np.inf, -0.0, 3e38], F32)


@pytest.mark.parametrize("kind, reference", [
    ("Neg", np.negative), ("Abs", np.abs), ("Floor", np.floor), ("Sqrt", np.sqrt), ("Exp", np.exp), ("Sign", np.sign),
    ("Relu", lambda x: np.maximum(x, 0)), ("IsNaN", np.isnan), ("IsInf", np.isinf), ("Ceil", np.ceil)])
def test_special_values(refusal, kind, reference):
    content, given = of(kind, [DENORMAL])
    outcome = refusal.run(content, given)
    assert outcome.code == 0, outcome.err
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(np.load(refusal.out / "0.npy"), reference(DENORMAL), rtol=1e-6, atol=0)


@pytest.mark.parametrize("kind", ["ReduceMax", "ReduceMin", "ReduceSum", "ReduceMean"])
def test_reductions_keep_nan(refusal, kind):
    x = np.array([[1, np.nan, 3, 4, 5, 6, 7, 8, 9], [1, 2, 3, 4, 5, 6, 7, 8, np.inf]], F32)
    content, given = of(kind, [x], **({} if kind == "ReduceSum" else {"axes": [1]}))
    outcome = refusal.run(content, given)
    assert outcome.code == 0, outcome.err
    got = np.load(refusal.out / "0.npy")
    assert np.isnan(got.ravel()[0]), got


# ---- quantization parameters known only at run time

@pytest.mark.parametrize("scale", [0.0, np.nan, -1.0, np.inf])
def test_scale_at_run_time(refusal, scale):
    content, given = of("QuantizeLinear", [zeros(2, 3), np.array(scale, F32), np.array(0, np.uint8)])
    outcome = refusal.run(content, given)
    assert outcome.code in (0, 2), outcome.err
    constant = model([node("QuantizeLinear", ["x", "s", "z"])], {"x": zeros(2, 3)},
                     {"s": np.array(scale, F32), "z": np.array(0, np.uint8)})
    refusal.out = refusal.folder / "constant"
    refusal.refuse(constant, {2}, "culprit", inputs={"x": zeros(2, 3)})


# ---- loops

def loop(trips, keeps_going, collects):
    """Counts on while the condition, known only at run time, holds."""
    def info(name, kind, shape=()):
        return helper.make_tensor_value_info(name, kind, shape)
    nodes = [node("Identity", ["go"], ["more"], "keep"), node("Add", ["s", "one"], ["next"], "count")]
    outputs = [info("more", TensorProto.BOOL), info("next", TensorProto.FLOAT, [256])]
    if collects:
        nodes.append(node("Identity", ["next"], ["each"], "collect"))
        outputs.append(info("each", TensorProto.FLOAT, [256]))
    body = helper.make_graph(nodes, "body", [info("i", TensorProto.INT64), info("k", TensorProto.BOOL),
                                             info("s", TensorProto.FLOAT, [256])], outputs)
    inputs = {"trips": np.array(trips, np.int64), "go": np.array(keeps_going), "start": zeros(256)}
    made = node("Loop", ["trips", "go", "start"], ["y", "all"] if collects else ["y"], "culprit", body=body)
    return model([made], inputs, {"one": np.ones(1, F32)}, outputs=["y"]), inputs


def test_loop_ends(refusal):
    content, inputs = loop(1000, True, True)
    outcome = refusal.run(content, inputs)
    assert outcome.code == 0, outcome.err
    assert (np.load(refusal.out / "0.npy") == 1000).all()


def test_loop_that_never_ends(refusal, sanitized):
    if sanitized:
        pytest.skip("a million steps take minutes in a sanitized build")
    content, inputs = loop((1 << 63) - 1, True, False)
    refusal.check(refusal.run(content, inputs, timeout=240), {4}, "steps", "culprit")


def test_loop_that_collects_without_end(refusal):
    content, inputs = loop((1 << 63) - 1, True, True)
    refusal.check(run_within(refusal, content, inputs, "16M"), {4}, "collects", "culprit")
