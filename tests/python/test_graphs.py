"""Graphs built in Python: the generated methods, several functions, state, both texts, pictures, pickles."""
import inspect
import pickle
import re
import xml.etree.ElementTree

import numpy as np
import pytest

from conftest import ROOT

aglow = pytest.importorskip("aglow", reason="the module is not built: ./dev test builds it")

W = np.arange(6, dtype=np.float32).reshape(3, 2)
X = np.arange(12, dtype=np.float32).reshape(4, 3)


def affine():
    graph = aglow.Graph()
    main = graph.function()
    x = main.input("x", "f32", (4, 3))
    main.output("y", main.relu(x @ W - 5.0))
    return graph


def test_a_graph_runs():
    model = aglow.compile(affine())
    np.testing.assert_array_equal(model(X), np.maximum(X @ W - 5, 0))
    assert [spec.type for spec in model.inputs] == ["f32[4,3]"] and model.functions == ("main",)


def test_every_operator_has_a_method():
    def name_of(op):
        name = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", op).lower()
        return f"logical_{name}" if name in ("and", "or", "xor", "not") else name

    rows = re.findall(r"^\| (\w+) \|", (ROOT / "docs" / "ops.md").read_text(), re.M)
    operators = [row for row in rows if row not in ("operator", "Constant", "Placeholder", "Save")]
    assert len(operators) > 100
    for operator in operators:
        method = getattr(aglow.Builder, name_of(operator))
        assert method.__doc__ and inspect.signature(method).return_annotation.startswith(("Value", "tuple")), operator


def test_several_functions_share_constants_and_state():
    graph = aglow.Graph()
    count = graph.state("count", np.float32(0))
    with graph.function("add") as add:
        total = add.add(count, add.input("step", np.float32, ()))
        add.save(total, count)
        add.output("total", total)
    with graph.function("reset") as reset:
        reset.save(0.0, count)
    model = aglow.compile(graph)
    assert model.functions == ("add", "reset") and list(model.state) == ["count"]
    assert [float(model["add"](2)), float(model["add"](2))] == [2, 4]
    model["reset"]()
    assert model.state["count"] == 0


def test_numbers_take_the_kind_of_what_they_meet():
    graph = aglow.Graph()
    main = graph.function()
    x = main.input("x", "i64", (3,))
    main.output("y", main.where(main.less(x, 2), x * 10, -1))
    np.testing.assert_array_equal(aglow.compile(graph)(np.array([0, 1, 5])), [0, 10, -1])


def test_several_results_and_attributes():
    graph = aglow.Graph()
    main = graph.function()
    values, indices = main.top_k(main.input("x", "f32", (4,)), k=2)
    main.output("values", values)
    main.output("indices", indices)
    values, indices = aglow.compile(graph)(np.float32([3, 9, 1, 4]))
    assert values.tolist() == [9, 4] and indices.tolist() == [1, 3]


@pytest.mark.parametrize("build, words", [
    (lambda f, x: f.conv(x, x), "expected"),
    (lambda f, x: f.reduce(x, kind="most"), "expected one of sum"),
    (lambda f, x: f.reduce(x, axes="two"), "'axes'"),
    (lambda f, x: f.input("x", "f32", (9,)), "is f32[4,3] already"),
    (lambda f, x: f.input("z", "f33", (9,)), "kind of elements"),
    (lambda f, x: f.output("x", x) or f.output("x", x), "given twice"),
    (lambda f, x: f.add(x, aglow.Graph().function().input("x", "f32", (1,))), "another graph"),
    (lambda f, x: f.save(x, x), "into state"),
])
def test_faults_name_what_is_wrong(build, words):
    graph = aglow.Graph()
    main = graph.function()
    with pytest.raises(aglow.Error) as fault:
        build(main, main.input("x", "f32", (4, 3)))
    assert words in fault.value.message


def test_a_function_twice():
    graph = affine()
    with pytest.raises(aglow.UsageError, match="already"):
        graph.function("main")


def test_both_texts_go_and_come_back(tmp_path):
    graph = affine()
    again = aglow.Graph.parse(str(graph))
    assert str(again) == str(graph) and "func @main" in str(graph)
    np.testing.assert_array_equal(aglow.parse(str(graph))(X), aglow.compile(graph)(X))
    model = aglow.compile(graph)
    program = model.program()
    assert program.startswith("declare {")
    np.testing.assert_array_equal(aglow.parse(program)(X), model(X))
    with pytest.raises(aglow.BadModelError, match="1:28: expected an operator"):
        aglow.parse("module { func @main { %y = Nothing() } }")
    graph.save(tmp_path / "affine.graph")
    assert str(aglow.Graph.load(tmp_path / "affine.graph")) == str(graph)
    graph.verify()


def test_what_is_built_later_is_another_model():
    graph = affine()
    model = aglow.compile(graph)
    other = graph.function("other")
    other.output("z", other.neg(other.input("x", "f32", (4, 3))))
    assert model.functions == ("main",) and aglow.compile(graph).functions == ("main", "other")


def test_constants_are_not_copied():
    weights = np.random.default_rng(1).standard_normal((64, 64)).astype(np.float32)
    graph = aglow.Graph()
    main = graph.function()
    main.output("y", main.add(main.input("x", "f32", (64, 64)), main.constant(weights)))
    model = aglow.compile(graph, cache=False)
    assert model.memory().shared_bytes == weights.nbytes
    weights[0, 0] = 7  # which nobody should do; it shows where they lie
    assert model(np.zeros((64, 64), np.float32))[0, 0] == 7


def test_graphs_and_models_pickle(tmp_path):
    big = np.random.default_rng(1).standard_normal((3, 500)).astype(np.float32)
    graph = aglow.Graph()
    main = graph.function()
    main.output("y", main.input("x", "f32", (4, 3)) @ big)
    again = pickle.loads(pickle.dumps(graph))
    np.testing.assert_array_equal(aglow.compile(again)(X), aglow.compile(graph)(X))
    model = aglow.compile(graph, threads=1)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model))(X), model(X))


def test_pictures():
    graph = affine()
    for picture in (graph.draw(), aglow.compile(graph).draw(), aglow.compile(graph).memory().draw()):
        root = xml.etree.ElementTree.fromstring(picture)
        assert root.tag.endswith("svg") and picture._repr_svg_() == picture
    words = [text.text for text in xml.etree.ElementTree.fromstring(graph._repr_svg_()).iter() if text.tag.endswith("text")]
    assert {"x", "y", "MatMul", "Relu"} <= set(words) and "f32[4,2]" in words
    assert "more nodes" in graph.draw(limit=2)


def test_predicates_and_names():
    graph = aglow.Graph()
    main = graph.function()
    x = main.input("x", "f32", (2, 2))
    rows = main.input("rows", "bool", (2,))
    with main.named("half"), main.when(rows):
        main.output("y", x * 0.5)
    assert re.search(r"%half = Mul\(.*\) if @rows", str(graph))
