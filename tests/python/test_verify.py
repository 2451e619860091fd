"""aglow verify: against files, onnxruntime and backends; faults put into references and models are found."""
import importlib.util
import json
import sys

import numpy as np
import pytest
from bad_models import FLOAT, model, node
from onnx import helper, numpy_helper

RUNTIME = pytest.mark.skipif(importlib.util.find_spec("onnxruntime") is None, reason="onnxruntime is not installed")
RNG = np.random.default_rng(7)
X = RNG.uniform(-1, 1, (2, 3)).astype(np.float32)
W = RNG.uniform(-1, 1, (3, 4)).astype(np.float32)


def chain(shift=0.0):
    """Five nodes; `shift` makes another model of the middle one."""
    nodes = [node("MatMul", ["x", "w"], ["a"], "first"), node("Relu", ["a"], ["b"], "second"),
             node("Add", ["b", "shift"], ["c"], "middle"), node("Tanh", ["c"], ["d"], "fourth"),
             node("ReduceSum", ["d"], ["y"], "last", keepdims=0)]
    return model(nodes, {"x": X}, {"w": W, "shift": np.array([shift], np.float32)}, outputs=["d", "y"])


def expected(shift=0.0):
    d = np.tanh(np.maximum(X @ W, 0) + np.float32(shift))
    return [d, d.sum(dtype=np.float32)]


def write(folder, name, content):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, np.ndarray) or np.isscalar(content):
        content = numpy_helper.from_array(np.asarray(content))
    path.write_bytes(content.SerializeToString())
    return path


@pytest.fixture
def files(tmp_path):
    """A model and a data set that fits it."""
    write(tmp_path, "model.onnx", chain())
    write(tmp_path, "data/test_data_set_0/input_0.pb", X)
    for index, value in enumerate(expected()):
        write(tmp_path, f"data/test_data_set_0/output_{index}.pb", value)
    return tmp_path


def test_stopped_compilation_has_no_outputs(aglow, files):
    outcome = aglow("verify", files / "model.onnx", "--stop-after", "share")
    assert outcome.code == 1 and "error[E101] --stop-after leaves nothing to compare" in outcome.err, outcome.err


def test_data_sets(aglow, files):
    write(files, "data/test_data_set_1/input_0.pb", 2 * X)
    d = np.tanh(np.maximum(2 * X @ W, 0))
    write(files, "data/test_data_set_1/output_0.pb", d)
    outcome = aglow("verify", files / "model.onnx", "--against", files / "data", "--backend", "cpu,interpreter", "--json")
    assert outcome.code == 0, outcome.err
    cases = json.loads(outcome.out)["cases"]
    assert [(c["name"], c["engine"], len(c["outputs"])) for c in cases] == [
        ("test_data_set_0", "cpu", 2), ("test_data_set_0", "interpreter", 2),
        ("test_data_set_1", "cpu", 1), ("test_data_set_1", "interpreter", 1)]
    outcome = aglow("verify", files / "model.onnx", "--against", files / "data" / "test_data_set_0")
    assert outcome.code == 0 and "agrees" in outcome.out, outcome.err


def test_one_wrong_value(aglow, files):
    wrong = expected()[0].copy()
    wrong[1, 2] += 0.5
    write(files, "data/test_data_set_0/output_0.pb", wrong)
    outcome = aglow("verify", files / "model.onnx", "--against", files / "data", "--json")
    assert outcome.code == 5 and "error[E501]" in outcome.err and "1 of 2" in outcome.err, outcome.err
    first, second = json.loads(outcome.out)["cases"][0]["outputs"]
    assert second["agrees"] and not first["agrees"] and first["beyond"] == 1
    assert first["worst"]["index"] == "[1,2]" and float(first["worst"]["expected"]) == pytest.approx(wrong[1, 2])
    assert first["max_abs"] == pytest.approx(0.5, rel=1e-5)
    assert aglow("verify", files / "model.onnx", "--against", files / "data", "--atol", "0.6").code == 0


def test_wrong_type_and_shape(aglow, files):
    write(files, "data/test_data_set_0/output_0.pb", expected()[0].astype(np.float64))
    write(files, "data/test_data_set_0/output_1.pb", np.zeros(3, np.float32))
    outcome = aglow("verify", files / "model.onnx", "--against", files / "data")
    assert outcome.code == 5 and "f32[2,4]; expected f64[2,4]" in outcome.out and "f32[]; expected f32[3]" in outcome.out


def test_special_values(aglow, tmp_path):
    x = np.array([np.nan, np.inf, -np.inf, 1], np.float32)
    write(tmp_path, "model.onnx", model([node("Identity", ["x"])], {"x": x}))
    write(tmp_path, "d/input_0.pb", x)
    write(tmp_path, "d/output_0.pb", x)
    assert aglow("verify", tmp_path / "model.onnx", "--against", tmp_path / "d").code == 0
    write(tmp_path, "d/output_0.pb", np.array([0, np.inf, -np.inf, 1], np.float32))
    outcome = aglow("verify", tmp_path / "model.onnx", "--against", tmp_path / "d", "--atol", "1e30", "--json")
    row = json.loads(outcome.out)["cases"][0]["outputs"][0]
    assert outcome.code == 5 and row["max_abs"] == "inf" and row["worst"]["got"] == "nan"


def test_sequences_and_optionals(aglow, tmp_path):
    x = np.arange(6, dtype=np.float32)
    nodes = [node("SplitToSequence", ["x"], ["parts"], "split", axis=0, keepdims=1), node("Optional", [], ["nothing"], "none",
             type=helper.make_tensor_type_proto(FLOAT, None))]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", FLOAT, [6])], [
        helper.make_tensor_sequence_value_info("parts", FLOAT, None),
        helper.make_value_info("nothing", helper.make_optional_type_proto(helper.make_tensor_type_proto(FLOAT, None)))])
    write(tmp_path, "model.onnx", helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8))
    write(tmp_path, "d/input_0.pb", x)
    write(tmp_path, "d/output_0.pb", numpy_helper.from_list([x[i:i + 1] for i in range(6)], "parts"))
    write(tmp_path, "d/output_1.pb", numpy_helper.from_optional(None, "nothing"))
    verify = ["verify", tmp_path / "model.onnx", "--against", tmp_path / "d"]
    outcome = aglow(*verify)
    assert outcome.code == 0 and "parts[5]" in outcome.out and "nothing" in outcome.out, outcome.err + outcome.out
    write(tmp_path, "d/output_0.pb", numpy_helper.from_list([x[i:i + 1] for i in range(5)], "parts"))
    outcome = aglow(*verify)
    assert outcome.code == 5 and "a sequence of 6; expected a sequence of 5" in outcome.out
    # The files of `aglow run` hold the same.
    np.save(tmp_path / "x.npy", x)
    assert aglow("run", tmp_path / "model.onnx", "--input", f"x={tmp_path}/x.npy", "--output-dir", tmp_path / "out").code == 0
    outcome = aglow("verify", tmp_path / "model.onnx", "--against", tmp_path / "out", "--input", f"x={tmp_path}/x.npy")
    assert outcome.code == 0 and "parts[5]" in outcome.out, outcome.err


@pytest.mark.parametrize("damage", ["truncated", "another kind", "too many", "no folder"])
def test_bad_data(aglow, files, damage):
    folder = files / "data" / "test_data_set_0"
    if damage == "truncated":
        (folder / "output_0.pb").write_bytes((folder / "output_0.pb").read_bytes()[:-3])
    if damage == "another kind":
        (folder / "output_0.pb").write_bytes(b"not protobuf at all")
    if damage == "too many":
        write(folder, "output_7.pb", X)
    if damage == "no folder":
        folder = files / "nowhere"
    outcome = aglow("verify", files / "model.onnx", "--against", folder)
    assert outcome.code in (1, 2, 8) and outcome.err.startswith("error[E") and outcome.out == "", outcome.err


def test_random_inputs_follow_the_seed(aglow, tmp_path):
    write(tmp_path, "model.onnx", chain())
    outputs = [aglow("verify", tmp_path / "model.onnx", "--backend", "cpu", "--rtol", "0", "--atol", "0", "--seed", seed)
               for seed in ("1", "1", "2")]
    assert outputs[0].out == outputs[1].out
    assert all(o.code in (0, 5) for o in outputs)


def test_open_sizes(aglow, tmp_path):
    open_model = chain()
    open_model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "batch"
    write(tmp_path, "model.onnx", open_model)
    outcome = aglow("verify", tmp_path / "model.onnx", "--backend", "cpu")
    assert outcome.code == 1 and "batch" in outcome.err
    outcome = aglow("verify", tmp_path / "model.onnx", "--backend", "cpu", "--dim", "batch=5")
    assert outcome.code == 0 and "f32[5,4]" in outcome.out, outcome.err


def test_shapes_that_depend_on_values(aglow, tmp_path):
    x = np.array([[1, 0, 2], [0, 0, 3]], np.float32)
    found = model([node("NonZero", ["x"], ["i"], "where"), node("Cast", ["i"], ["y"], "cast", to=FLOAT)], {"x": x})
    write(tmp_path, "model.onnx", found)
    write(tmp_path, "d/input_0.pb", x)
    write(tmp_path, "d/output_0.pb", np.array(np.nonzero(x), np.float32))
    outcome = aglow("verify", tmp_path / "model.onnx", "--against", tmp_path / "d", "--backend", "cpu,interpreter")
    assert outcome.code == 0 and "f32[2,3]" in outcome.out, outcome.err


# ---- onnxruntime

@RUNTIME
def test_onnxruntime(aglow, tmp_path):
    write(tmp_path, "model.onnx", chain())
    env = {"AGLOW_PYTHON": sys.executable}
    outcome = aglow("verify", tmp_path / "model.onnx", "--against", "onnxruntime", env=env)
    assert outcome.code == 0 and "against onnxruntime" in outcome.out, outcome.err
    # Nothing but the tolerance keeps the two together: without any, and with much rounding, they may part.
    outcome = aglow("verify", tmp_path / "model.onnx", "--against", "onnxruntime", "--atol", "0", "--rtol", "0", "--bisect", env=env)
    assert outcome.code in (0, 5), outcome.err


@RUNTIME
def test_onnxruntime_refuses(aglow, tmp_path):
    write(tmp_path, "model.onnx", model([node("Foo", ["x"])], {"x": X}))
    outcome = aglow("verify", tmp_path / "model.onnx", "--against", "onnxruntime", env={"AGLOW_PYTHON": sys.executable})
    assert outcome.code == 3 and "onnxruntime does not run the model" in outcome.err, outcome.err


def test_onnxruntime_missing(aglow, tmp_path):
    """A Python without the package."""
    write(tmp_path, "model.onnx", chain())
    lonely = tmp_path / "python"
    lonely.write_text(f'#!/bin/sh\nexec {sys.executable} -S -E "$@"\n')
    lonely.chmod(0o755)
    outcome = aglow("verify", tmp_path / "model.onnx", "--against", "onnxruntime", env={"AGLOW_PYTHON": str(lonely)})
    assert outcome.code == 1 and "pip install onnxruntime" in outcome.err, outcome.err


# ---- bisection: the reference is another model, whose middle node differs

def test_bisect_against_another_model(aglow, files):
    """The files are those of a model with another constant: both backends agree, so the files are to blame."""
    for index, value in enumerate(expected(0.25)):
        write(files, f"data/test_data_set_0/output_{index}.pb", value)
    outcome = aglow("verify", files / "model.onnx", "--against", files / "data", "--backend", "cpu", "--bisect")
    assert outcome.code == 5 and "cpu agrees with interpreter in all of 5 values" in outcome.out, outcome.out + outcome.err


FAKE = """
import sys
import numpy as np
import onnxruntime as ort
real = ort.InferenceSession
class Session(real):
    def run(self, names, feeds, *rest):
        values = super().run(names, feeds, *rest)
        bad = set(WRONG)
        return [v + np.asarray(0.25, v.dtype) if n in bad else v for n, v in zip(names, values)]
ort.InferenceSession = Session
sys.argv.pop(0)
exec(open(sys.argv[0]).read())
"""


@pytest.fixture
def faulty_runtime(tmp_path):
    """A Python whose onnxruntime computes some values wrongly."""
    def make(names):
        script = tmp_path / "fake.py"
        script.write_text(FAKE.replace("WRONG", repr(list(names))))
        program = tmp_path / "faulty"
        program.write_text(f'#!/bin/sh\nexec {sys.executable} {script} "$@"\n')
        program.chmod(0o755)
        return {"AGLOW_PYTHON": str(program)}
    return make


@RUNTIME
def test_bisect_names_the_first_node(aglow, tmp_path, faulty_runtime):
    write(tmp_path, "model.onnx", chain())
    outcome = aglow("verify", tmp_path / "model.onnx", "--against", "onnxruntime", "--backend", "cpu", "--bisect", "--json",
                    env=faulty_runtime(["c", "d", "y"]))
    assert outcome.code == 5, outcome.err
    found = json.loads(outcome.out)["cases"][0]["bisect"]
    assert found["place"] == "node 'middle' (Add)" and found["number"] == 3 and found["value"]["name"] == "c"
    assert found["value"]["max_abs"] == pytest.approx(0.25, rel=1e-4)
    assert {o["name"]: (o["kind"], o["agrees"]) for o in found["operands"]} == {"b": ("value", True), "shift": ("constant", True)}
    text = aglow("verify", tmp_path / "model.onnx", "--against", "onnxruntime", "--backend", "cpu", "--bisect",
                 env=faulty_runtime(["c", "d", "y"])).out
    assert "cpu first differs from onnxruntime at node 'middle' (Add), number 3 of 5 nodes" in text
    assert "worst at [" in text and "cpu has" in text and "onnxruntime has" in text and "value 'b' : f32[2,4]" in text


@pytest.mark.parametrize("scope", ["graph", "function", "branch"])
def test_bisect_goes_into_scopes(aglow, tmp_path, scope):
    """Backends part where rounding differs: without a tolerance the first node that rounds is named, with its place."""
    x = RNG.uniform(-8, 8, (4096,)).astype(np.float32)  # enough for some of them to be rounded differently
    body = [node("Relu", ["a"], ["r"], "exact"), node("Exp", ["r"], ["e"], "rounds"), node("Sin", ["e"], ["s"], "later")]
    if scope == "function":
        function = helper.make_function("local", "F", ["a"], ["s"], body, [helper.make_opsetid("", 17)])
        nodes, more = [node("F", ["x"], ["y"], "call", domain="local")], {"functions": [function], "opsets": [("", 17), ("local", 1)]}
        place = "node 'call' (local::F): node 'rounds' (Exp)"
    elif scope == "branch":
        def graph(nodes, output):
            return helper.make_graph(nodes, "g", [], [helper.make_tensor_value_info(output, FLOAT, None)])
        inner = [node("Identity", ["x"], ["a"], "copy"), *body]
        nodes = [node("If", ["c"], ["y"], "choice", then_branch=graph(inner, "s"),
                      else_branch=graph([node("Neg", ["x"], ["n"])], "n"))]
        more, place = {"constants": {"c": np.array(True)}}, "node 'choice' (If): then_branch: node 'rounds' (Exp)"
    else:
        nodes = [node("Identity", ["x"], ["a"], "copy"), *body, node("Identity", ["s"], ["y"], "end")]
        more, place = {}, "node 'rounds' (Exp)"
    write(tmp_path, "model.onnx", model(nodes, {"x": x}, **more))
    np.save(tmp_path / "x.npy", x)
    outcome = aglow("verify", tmp_path / "model.onnx", "--backend", "cpu,interpreter", "--input", f"x={tmp_path}/x.npy",
                    "--atol", "0", "--rtol", "0", "--bisect", "--json")
    assert outcome.code == 5, outcome.err
    found = json.loads(outcome.out)["cases"][0]["bisect"]
    assert found["place"] == place, found
    assert found["differs_alone"] is True


def test_rounded_values_may_be_a_step_away(aglow, tmp_path):
    """What bf16 rounds is no fault, unless a tolerance is named; a result that is wrong is one."""
    x, w = (RNG.uniform(-1, 1, shape).astype(np.float32) for shape in [(16, 64), (64, 64)])
    path = write(tmp_path, "m.onnx", model([node("MatMul", ["x", "w"], ["y"], "product")], {"x": x}, {"w": w}, outputs=["y"]))
    write(tmp_path, "right/input_0.pb", x)
    write(tmp_path, "right/output_0.pb", x @ w)
    write(tmp_path, "wrong/input_0.pb", x)
    write(tmp_path, "wrong/output_0.pb", x @ w + 0.1 * np.abs(x @ w).max())
    assert aglow("verify", path, "--against", tmp_path / "right", "--precision", "bf16").code == 0
    assert aglow("verify", path, "--against", tmp_path / "right", "--precision", "bf16", "--atol", "1e-5").code == 5
    assert aglow("verify", path, "--against", tmp_path / "wrong", "--precision", "bf16").code == 5
