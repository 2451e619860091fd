"""Models with strings: they run part by part, and what moves, compares, looks up or spells strings agrees with numpy."""
import os

import numpy as np
import onnx
import pytest
from harness import tensors
from onnx import TensorProto, helper

ML = "ai.onnx.ml"
STRING, FLOAT, INT64, BOOL = TensorProto.STRING, TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
FRUIT = np.array([[b"pear", b"", b"apple"], [b"apple", b"\xc3\xa4", b"zoo"]], "S")


def element_of(array):
    return STRING if array.dtype.kind in "SUO" else helper.np_dtype_to_tensor_dtype(array.dtype)


def model(nodes, inputs, outputs, initializers=(), opset=20, ml=4, shapes=True):
    """Inputs are example arrays by name, outputs element types by name."""
    graph = helper.make_graph(
        nodes, "g",
        [helper.make_tensor_value_info(name, element_of(value), value.shape if shapes else [None] * value.ndim)
         for name, value in inputs.items()],
        [helper.make_tensor_value_info(name, kind, None) for name, kind in outputs.items()], list(initializers))
    return helper.make_model(graph, ir_version=10,
                             opset_imports=[helper.make_opsetid("", opset), helper.make_opsetid(ML, ml)])


@pytest.fixture
def run(aglow, tmp_path):
    """run(model, inputs, *options): the outputs; run.outcome is what the program said."""
    def call(proto, inputs, *options):
        path = tmp_path / "model.onnx"
        path.write_bytes(proto if isinstance(proto, bytes) else proto.SerializeToString())
        arguments = []
        for i, (name, value) in enumerate(inputs.items()):
            file = tensors.save(str(tmp_path / f"in_{i}"), value)
            arguments += ["--input", f"{name}={file}"]
        call.outcome = aglow("run", path, *arguments, "--output-dir", tmp_path / "out", *options)
        if call.outcome.code != 0:
            return None
        kinds = [tensors.element_type(value.type) for value in onnx.load_from_string(path.read_bytes()).graph.output]
        return [tensors.load(os.path.join(tmp_path, "out", str(i)), kind) for i, kind in enumerate(kinds)]
    return call


def words(array):
    """The strings of an array as bytes, in a list of lists."""
    return np.char.encode(array.astype("U"), "utf-8").tolist() if array.dtype.kind != "S" else array.tolist()


def ints(name, values):
    return helper.make_tensor(name, INT64, [len(values)] if isinstance(values, list) else [],
                              values if isinstance(values, list) else [values])


# ---- what moves elements

MOVES = {
    "identity": ("Identity", [], {}, lambda x: x),
    "transpose": ("Transpose", [], {"perm": [1, 0]}, lambda x: x.T),
    "reshape": ("Reshape", [ints("shape", [3, 2])], {}, lambda x: x.reshape(3, 2)),
    "gather": ("Gather", [ints("at", [2, 0])], {"axis": 1}, lambda x: x[:, [2, 0]]),
    "slice": ("Slice", [ints("from", [0]), ints("to", [2]), ints("axes", [1])], {}, lambda x: x[:, :2]),
    "concat": ("Concat", ["x"], {"axis": 0}, lambda x: np.concatenate([x, x])),
    "tile": ("Tile", [ints("times", [1, 2])], {}, lambda x: np.tile(x, (1, 2))),
    "expand": ("Expand", [ints("shape", [2, 2, 3])], {}, lambda x: np.broadcast_to(x, (2, 2, 3))),
    "flatten": ("Flatten", [], {"axis": 0}, lambda x: x.reshape(1, 6)),
    "unsqueeze": ("Unsqueeze", [ints("axes", [0])], {}, lambda x: x[None]),
    "pad": ("Pad", [ints("pads", [0, 1, 0, 0])], {}, lambda x: np.insert(x, 0, b"", 1)),
}


@pytest.mark.parametrize("name", MOVES)
def test_moves(run, name):
    operator, rest, attributes, expected = MOVES[name]
    names = [value if isinstance(value, str) else value.name for value in rest]
    proto = model([helper.make_node(operator, ["x", *names], ["y"], **attributes)], {"x": FRUIT}, {"y": STRING},
                  [value for value in rest if not isinstance(value, str)])
    (y,) = run(proto, {"x": FRUIT})
    np.testing.assert_array_equal(y, expected(FRUIT))


def test_unique_equal_where_shape(run):
    nodes = [helper.make_node("Unique", ["x"], ["u", "", "", "counts"], sorted=1),
             helper.make_node("Equal", ["x", "word"], ["same"]),
             helper.make_node("Where", ["same", "other", "x"], ["w"]),
             helper.make_node("Shape", ["u"], ["s"])]
    initializers = [helper.make_tensor("word", STRING, [], [b"apple"]), helper.make_tensor("other", STRING, [1], [b"fig"])]
    proto = model(nodes, {"x": FRUIT}, {"u": STRING, "counts": INT64, "same": BOOL, "w": STRING, "s": INT64}, initializers)
    u, counts, same, w, s = run(proto, {"x": FRUIT})
    expected, times = np.unique(FRUIT, return_counts=True)
    np.testing.assert_array_equal(u, expected)
    np.testing.assert_array_equal(counts, times)
    np.testing.assert_array_equal(same, FRUIT == b"apple")
    np.testing.assert_array_equal(w, np.where(FRUIT == b"apple", b"fig", FRUIT))
    assert s.tolist() == [5]


def test_sequences(run):
    nodes = [helper.make_node("SequenceEmpty", [], ["e"], dtype=STRING),
             helper.make_node("SequenceInsert", ["e", "x"], ["one"]),
             helper.make_node("SequenceInsert", ["one", "x"], ["two"]),
             helper.make_node("SequenceLength", ["two"], ["n"]),
             helper.make_node("ConcatFromSequence", ["two"], ["y"], axis=1),
             helper.make_node("SplitToSequence", ["x"], ["parts"], axis=0, keepdims=0)]
    proto = model(nodes, {"x": FRUIT}, {"n": INT64, "y": STRING})
    proto.graph.output.append(helper.make_tensor_sequence_value_info("parts", STRING, None))
    n, y, parts = run(proto, {"x": FRUIT})
    assert n == 2
    np.testing.assert_array_equal(y, np.concatenate([FRUIT, FRUIT], 1))
    assert [part.tolist() for part in parts] == FRUIT.tolist()


def test_sequence_input(run):
    info = helper.make_tensor_sequence_value_info("s", STRING, None)
    graph = helper.make_graph([helper.make_node("SequenceAt", ["s", "i"], ["y"])], "g", [info],
                              [helper.make_tensor_value_info("y", STRING, None)], [ints("i", -1)])
    proto = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 20)])
    (y,) = run(proto, {"s": [FRUIT, FRUIT[0]]})
    assert y.tolist() == FRUIT[0].tolist()


# ---- control flow

def test_branches(run):
    def branch(text):
        return helper.make_graph([helper.make_node("Constant", [], ["t"], value_string=text),
                                  helper.make_node("StringConcat", ["x", "t"], ["b"])], "b", [],
                                 [helper.make_tensor_value_info("b", STRING, None)])
    nodes = [helper.make_node("If", ["c"], ["y"], then_branch=branch("+"), else_branch=branch("-"))]
    for condition, sign in ((True, b"+"), (False, b"-")):
        inputs = {"c": np.array(condition), "x": FRUIT[0]}
        (y,) = run(model(nodes, inputs, {"y": STRING}), inputs)
        assert y.tolist() == [word + sign for word in FRUIT[0].tolist()]


@pytest.mark.parametrize("steps", [3, 0])
def test_loop(run, steps):
    body = helper.make_graph(
        [helper.make_node("StringConcat", ["state", "x"], ["next"]), helper.make_node("Identity", ["next"], ["seen"]),
         helper.make_node("Identity", ["go"], ["go_on"])], "body",
        [helper.make_tensor_value_info("i", INT64, []), helper.make_tensor_value_info("go", BOOL, []),
         helper.make_tensor_value_info("state", STRING, [3])],
        [helper.make_tensor_value_info("go_on", BOOL, []), helper.make_tensor_value_info("next", STRING, [3]),
         helper.make_tensor_value_info("seen", STRING, [3])])
    inputs = {"n": np.array(steps, np.int64), "x": FRUIT[0]}
    proto = model([helper.make_node("Loop", ["n", "", "x"], ["last", "all"], body=body)], inputs,
                  {"last": STRING, "all": STRING})
    last, seen = run(proto, inputs)
    rows = [[word * (k + 2) for word in FRUIT[0].tolist()] for k in range(steps)]
    assert last.tolist() == ([FRUIT[0].tolist()] + rows)[-1]
    assert seen.shape == (steps, 3) and seen.tolist() == rows


def test_scan(run):
    body = helper.make_graph([helper.make_node("StringConcat", ["s", "e"], ["t"]), helper.make_node("Identity", ["t"], ["o"])],
                             "body", [helper.make_tensor_value_info("s", STRING, []),
                                      helper.make_tensor_value_info("e", STRING, [])],
                             [helper.make_tensor_value_info("t", STRING, []), helper.make_tensor_value_info("o", STRING, [])])
    inputs = {"s0": np.array(b">", "S"), "x": np.array([b"a", b"b", b"c"])}
    proto = model([helper.make_node("Scan", ["s0", "x"], ["last", "all"], body=body, num_scan_inputs=1)], inputs,
                  {"last": STRING, "all": STRING})
    last, seen = run(proto, inputs)
    assert last.tolist() == b">abc" and seen.tolist() == [b">a", b">ab", b">abc"]


def test_function(run):
    proto = model([helper.make_node("Greet", ["x"], ["y"], domain="local")], {"x": FRUIT[0]}, {"y": STRING})
    proto.opset_import.append(helper.make_opsetid("local", 1))
    proto.functions.append(helper.make_function(
        "local", "Greet", ["a"], ["b"], [helper.make_node("Constant", [], ["t"], value_string="hi "),
                                         helper.make_node("StringConcat", ["t", "a"], ["b"])],
        [helper.make_opsetid("", 20)]))
    (y,) = run(proto, {"x": FRUIT[0]})
    assert y.tolist() == [b"hi " + word for word in FRUIT[0].tolist()]


# ---- tables and labels

@pytest.mark.parametrize("backend", ["interpreter", "cpu"])
def test_labels_to_embedding(run, backend):
    rng = np.random.default_rng(1)
    table, weights = rng.standard_normal((4, 5), np.float32), rng.standard_normal((5, 2), np.float32)
    nodes = [helper.make_node("StringNormalizer", ["x"], ["lower"], case_change_action="LOWER"),
             helper.make_node("LabelEncoder", ["lower"], ["i"], domain=ML, keys_strings=["red", "green", "blau", "grün"],
                              values_int64s=[0, 1, 2, 3], default_int64=0),
             helper.make_node("Gather", ["table", "i"], ["e"]), helper.make_node("MatMul", ["e", "w"], ["y"])]
    x = np.array(["GRÜN".encode(), b"Red", b"none", b"green"])
    proto = model(nodes, {"x": x}, {"y": FLOAT}, [onnx.numpy_helper.from_array(table, "table"),
                                                  onnx.numpy_helper.from_array(weights, "w")], shapes=False)
    (y,) = run(proto, {"x": x}, "--backend", backend)
    np.testing.assert_allclose(y, table[[3, 0, 0, 1]] @ weights, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("attributes, x, expected", [
    ({"keys_strings": ["a", "b"], "values_strings": ["x", "y"], "default_string": "?"}, [b"b", b"c", b"a"], [b"y", b"?", b"x"]),
    ({"keys_strings": ["a"], "values_strings": ["x"]}, [b"b", b""], [b"_Unused", b"_Unused"]),
    ({"keys_int64s": [7, 9], "values_strings": ["x", ""], "default_string": "d"}, [9, 7, 1], [b"", b"x", b"d"]),
    ({"keys_floats": [0.5, float("nan")], "values_strings": ["half", "nan"]}, np.float32([np.nan, 0.5]), [b"nan", b"half"]),
    ({"keys_strings": ["a", "a"], "values_floats": [1.0, 2.0], "default_float": -3.0, "default_string": "unused"},
     [b"a", b"z"], np.float32([2, -3])),
    ({"keys_tensor": helper.make_tensor("k", STRING, [2], [b"a", b"b"]),
      "values_tensor": helper.make_tensor("v", TensorProto.INT16, [2], [5, 6]),
      "default_tensor": helper.make_tensor("d", TensorProto.INT16, [1], [-1])}, [b"b", b"q"], np.int16([6, -1])),
])
def test_label_encoder(run, attributes, x, expected):
    x, expected = np.array(x), np.array(expected)
    proto = model([helper.make_node("LabelEncoder", ["x"], ["y"], domain=ML, **attributes)], {"x": x},
                  {"y": element_of(expected)})
    (y,) = run(proto, {"x": x})
    assert y.tolist() == expected.tolist()


@pytest.mark.parametrize("operator, attributes", [
    ("LabelEncoder", {"classes_strings": ["a", "b"], "default_int64": -1, "default_string": "none"}),
    ("CategoryMapper", {"cats_strings": ["a", "b"], "cats_int64s": [0, 1], "default_int64": -1, "default_string": "none"}),
])
def test_tables_of_both_directions(run, operator, attributes):
    for x, expected in (([b"b", b"z", b"a"], [1, -1, 0]), ([1, 5, 0], [b"b", b"none", b"a"])):
        x, expected = np.array(x), np.array(expected)
        proto = model([helper.make_node(operator, ["x"], ["y"], domain=ML, **attributes)], {"x": x},
                      {"y": element_of(expected)}, ml=1)
        (y,) = run(proto, {"x": x})
        assert y.tolist() == expected.tolist()


def test_one_hot_and_ngrams(run):
    x = np.array([[b"b", b"a", b"z"]])
    nodes = [helper.make_node("OneHotEncoder", ["x"], ["h"], domain=ML, cats_strings=["a", "b"], zeros=1),
             helper.make_node("TfIdfVectorizer", ["x"], ["t"], mode="TF", min_gram_length=1, max_gram_length=2,
                              max_skip_count=0, ngram_counts=[0, 2], ngram_indexes=[0, 1, 2], pool_strings=["a", "z", "b", "a"])]
    h, t = run(model(nodes, {"x": x}, {"h": FLOAT, "t": FLOAT}), {"x": x})
    assert h.tolist() == [[[0, 1], [1, 0], [0, 0]]]
    assert t.tolist() == [[1, 1, 1]]


@pytest.mark.parametrize("backend", ["interpreter", "cpu"])
def test_classifiers(run, backend):
    x = np.float32([[1, 0], [-2, 1], [0, 3]])
    coefficients = [1.0, 0.0, -1.0, 0.0, 0.0, 1.0]
    tree = {"nodes_treeids": [0, 0, 0], "nodes_nodeids": [0, 1, 2], "nodes_featureids": [0, 0, 0],
            "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"], "nodes_values": [-1.0, 0.0, 0.0],
            "nodes_truenodeids": [1, 0, 0], "nodes_falsenodeids": [2, 0, 0], "class_treeids": [0] * 3,
            "class_nodeids": [1, 2, 2], "class_ids": [0, 1, 2], "class_weights": [1.0, 0.5, 0.75]}
    nodes = [helper.make_node("LinearClassifier", ["x"], ["label", "scores"], domain=ML, coefficients=coefficients,
                              classlabels_strings=["right", "left", "up"]),
             helper.make_node("TreeEnsembleClassifier", ["x"], ["leaf", "votes"], domain=ML,
                              classlabels_strings=["p", "q", "r"], **tree)]
    proto = model(nodes, {"x": x}, {"label": STRING, "scores": FLOAT, "leaf": STRING, "votes": FLOAT}, ml=3)
    label, scores, leaf, votes = run(proto, {"x": x}, "--backend", backend)
    assert label.tolist() == [b"right", b"left", b"up"]
    np.testing.assert_allclose(scores, x @ np.float32(coefficients).reshape(3, 2).T)
    assert leaf.tolist() == [b"r", b"p", b"r"]
    np.testing.assert_allclose(votes, [[0, 0.5, 0.75], [1, 0, 0], [0, 0.5, 0.75]])


# ---- spelling

def test_casts(run):
    x = np.array([b"3.5", b" 1e2 ", b"-INF", b"nan"])
    nodes = [helper.make_node("Cast", ["x"], ["f"], to=FLOAT), helper.make_node("Cast", ["f"], ["s"], to=STRING),
             helper.make_node("CastLike", ["f", "x"], ["t"]), helper.make_node("Cast", ["whole"], ["i"], to=TensorProto.INT8),
             helper.make_node("Cast", ["whole"], ["h"], to=TensorProto.FLOAT16)]
    proto = model(nodes, {"x": x}, {"f": FLOAT, "s": STRING, "t": STRING, "i": TensorProto.INT8, "h": TensorProto.FLOAT16},
                  [helper.make_tensor("whole", STRING, [2], [b"12.9", b"-3"])])
    f, s, t, i, h = run(proto, {"x": x})
    np.testing.assert_array_equal(f, np.float32([3.5, 100, -np.inf, np.nan]))
    assert s.tolist() == t.tolist() == [b"3.5", b"100", b"-INF", b"NaN"]
    assert i.tolist() == [12, -3] and h.tolist() == np.float16([12.9, -3]).tolist()


def test_split_follows_computed_strings(run):
    nodes = [helper.make_node("StringConcat", ["x", "x"], ["xx"]),
             helper.make_node("StringSplit", ["xx"], ["y", "n"], delimiter=","),
             helper.make_node("Slice", ["y", "one", "two", "axes"], ["second"])]
    x = np.array([b"a,b,", b"", b"c"])
    proto = model(nodes, {"x": x}, {"y": STRING, "n": INT64, "second": STRING},
                  [ints("one", [1]), ints("two", [2]), ints("axes", [1])])
    y, n, second = run(proto, {"x": x})
    assert y.tolist() == [[b"a", b"b", b"a", b"b", b""], [b""] * 5, [b"cc", b"", b"", b"", b""]]
    assert n.tolist() == [5, 1, 1] and second.tolist() == [[b"b"], [b""], [b""]]


def test_bytes_that_are_no_text(run):
    x = np.array([b"\xff\xfe", b"a\x00b", b"\xed\xa0\x80"])
    nodes = [helper.make_node("StringNormalizer", ["x"], ["y"], case_change_action="UPPER"),
             helper.make_node("StringSplit", ["x"], ["z", "n"]), helper.make_node("RegexFullMatch", ["x"], ["m"], pattern=".*"),
             helper.make_node("StringConcat", ["x", "x"], ["xx"])]
    y, z, n, m, xx = run(model(nodes, {"x": x}, {"y": STRING, "z": STRING, "n": INT64, "m": BOOL, "xx": STRING}), {"x": x})
    assert y.tolist() == [b"\xff\xfe", b"A\x00B", b"\xed\xa0\x80"]
    assert z.tolist() == [[b"\xff\xfe"], [b"a\x00b"], [b"\xed\xa0\x80"]] and m.tolist()[1]
    assert xx.tolist() == [word + word for word in x.tolist()]


def test_code_points_as_input(aglow, tmp_path):
    x = np.array(["ä", "b€"])
    (tmp_path / "m.onnx").write_bytes(
        model([helper.make_node("Identity", ["x"], ["y"])], {"x": x}, {"y": STRING}).SerializeToString())
    np.save(tmp_path / "x.npy", x)
    outcome = aglow("run", tmp_path / "m.onnx", "--input", f"x={tmp_path}/x.npy")
    assert outcome.code == 0 and "y : string[2] = ['ä', 'b€']" in outcome.out


# ---- what is refused

@pytest.mark.parametrize("nodes, x, code, said", [
    ([helper.make_node("RegexFullMatch", ["x"], ["y"], pattern="(a")], [b"a"], 2, "regular expression"),
    ([helper.make_node("RegexFullMatch", ["x"], ["y"])], [b"a"], 2, "pattern"),
    ([helper.make_node("Constant", [], ["y"], value_string="a", value=1.5)], [b"a"], 2, "one attribute"),
    ([helper.make_node("Cast", ["x"], ["y"], to=FLOAT)], [b"one"], 2, "'one'"),
    ([helper.make_node("Cast", ["x"], ["y"], to=TensorProto.COMPLEX64)], [b"1"], 3, "complex64"),
    ([helper.make_node("Add", ["x", "x"], ["y"])], [b"a"], 3, "strings"),
    ([helper.make_node("StringConcat", ["x", "f"], ["y"])], [b"a"], 2, "input 1"),
    ([helper.make_node("StringConcat", ["f", "f"], ["y"])], [b"a"], 2, "input 0"),
    ([helper.make_node("StringNormalizer", ["x"], ["y"], case_change_action="TITLE")], [b"a"], 2, "TITLE"),
    ([helper.make_node("StringNormalizer", ["x"], ["y"])], [[b"a"], [b"b"]], 2, "[2,1]"),
    ([helper.make_node("ScatterElements", ["x", "i", "x"], ["y"], reduction="add")], [b"a"], 2, "arithmetic"),
    ([helper.make_node("Gather", ["x", "far"], ["y"])], [b"a"], 2, "Gather"),
    ([helper.make_node("CategoryMapper", ["x"], ["y"], domain=ML, cats_strings=["a"], cats_int64s=[1, 2])], [b"a"], 2, "table"),
    ([helper.make_node("LabelEncoder", ["x"], ["y"], domain=ML, keys_strings=["a"], values_int64s=[1, 2])], [b"a"], 2, "keys"),
    ([helper.make_node("Constant", [], ["y"], value=helper.make_tensor("v", STRING, [1], [b"a"])),
      helper.make_node("Sigmoid", ["y"], ["z"])], [b"a"], 3, "strings"),
])
def test_refused(run, nodes, x, code, said):
    x = np.array(x)
    proto = model(nodes, {"x": x}, {nodes[-1].output[0]: FLOAT},
                  [helper.make_tensor("f", FLOAT, [1], [0.0]), ints("i", [0]), ints("far", [9])])
    proto.graph.output[0].type.tensor_type.elem_type = 0
    assert run(proto, {"x": x}) is None
    assert run.outcome.code == code and said in run.outcome.err, run.outcome.err


def test_too_many_pieces(run):
    x = np.array([b"," * 20_000] + [b""] * 20_000)
    proto = model([helper.make_node("StringSplit", ["x"], ["y", "n"], delimiter=",")], {"x": x}, {"y": STRING, "n": INT64},
                  shapes=False)
    proto.graph.input[0].type.tensor_type.shape.dim[0].Clear()
    path_inputs = {"x": x}
    assert run(proto, path_inputs) is None and run.outcome.code == 4, run.outcome.err


def test_slow_patterns_are_not(run):
    x = np.array([b"a" * 5000 + b"!"])
    (y,) = run(model([helper.make_node("RegexFullMatch", ["x"], ["y"], pattern="(a*)*b")], {"x": x}, {"y": BOOL}), {"x": x})
    assert y.tolist() == [False]


def test_missing_and_wrong_inputs(run):
    proto = model([helper.make_node("Identity", ["x"], ["y"])], {"x": FRUIT}, {"y": STRING})
    assert run(proto, {}) is None and run.outcome.code == 1 and "'x'" in run.outcome.err
    assert run(proto, {"x": np.float32([1])}) is None and run.outcome.code == 1
    assert run(proto, {"x": FRUIT[0]}) is None and run.outcome.code == 1 and "[2,3]" in run.outcome.err


def test_malformed_initializers(run):
    proto = model([helper.make_node("StringConcat", ["x", "w"], ["y"])], {"x": FRUIT[0]}, {"y": STRING},
                  [helper.make_tensor("w", STRING, [1], [b"a"])])
    proto.graph.initializer[0].dims[0] = 2**40
    assert run(proto, {"x": FRUIT[0]}) is None and run.outcome.code == 2 and "'w'" in run.outcome.err


def test_compiling_says_why_not(aglow, tmp_path):
    path = tmp_path / "m.onnx"
    for nodes in ([helper.make_node("Identity", ["x"], ["y"])],
                  [helper.make_node("StringConcat", ["w", "w"], ["y"])],
                  [helper.make_node("Cast", ["f"], ["y"], to=STRING)]):
        proto = model(nodes, {"x": FRUIT} if "x" in nodes[0].input else {}, {"y": STRING},
                      [helper.make_tensor("w", STRING, [1], [b"a"]), helper.make_tensor("f", FLOAT, [1], [1.0])])
        path.write_bytes(proto.SerializeToString())
        outcome = aglow("compile", path, "-o", tmp_path / "out")
        assert outcome.code == 3 and "aglow run" in outcome.err, outcome.err
