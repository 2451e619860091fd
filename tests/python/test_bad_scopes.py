"""Faults are all listed at once, wherever they lie: in nested graphs, in branches not taken, in functions, after
other faults; each with its place in scope."""
import re

import numpy as np
import pytest
from bad_models import FLOAT, model, node, zeros
from onnx import TensorProto, helper

X = {"x": zeros(2, 3)}


def graph(nodes, outputs, inputs=(), tensors=()):
    return helper.make_graph(list(nodes), "nested", list(inputs),
                             [helper.make_tensor_value_info(name, FLOAT, None) for name in outputs], list(tensors))


def lines(outcome):
    """The error lines without the code and the model's path."""
    return [re.sub(r"^error\[E\d+\] (\S*model\.onnx: )?", "", line) for line in outcome.err.splitlines()
            if line.startswith("error[")]


def refused(refusal, content, codes, inputs=X):
    outcome = refusal.run(content, inputs)
    refusal.check(outcome, codes)
    return lines(outcome)


def branches(condition):
    """An If whose branches hold an unknown operator each."""
    then = graph([node("Foo", ["x"], ["t"], "then_node")], ["t"])
    otherwise = graph([node("Bar", ["x"], ["e"], "else_node")], ["e"])
    return node("If", [condition], ["y"], "choice", then_branch=then, else_branch=otherwise)


def test_both_branches(refusal):
    found = refused(refusal, model([branches("c")], X, {"c": np.array(True)}), {3})
    assert any(f.startswith("node 'choice' (If): then_branch: node 'then_node' (Foo): ") for f in found), found
    assert any(f.startswith("node 'choice' (If): else_branch: node 'else_node' (Bar): ") for f in found), found
    assert len(found) == 2, found


def test_a_branch_not_taken_may_hold_anything(refusal):
    good = node("If", ["c"], ["y"], "choice", then_branch=graph([node("Relu", ["x"], ["t"])], ["t"]),
                else_branch=graph([node("Bar", ["x"], ["e"])], ["e"]))
    outcome = refusal.run(model([good], X, {"c": np.array(True)}), X)
    assert outcome.code == 0, outcome.err


def test_body_of_a_loop_is_named_once(refusal):
    step = [helper.make_tensor_value_info("i", TensorProto.INT64, []), helper.make_tensor_value_info("k", TensorProto.BOOL, []),
            helper.make_tensor_value_info("s", FLOAT, None)]
    body = graph([node("Identity", ["k"], ["more"], "keep"), node("Softmax", ["s"], ["unused"], "bad_axis", axis=9),
                  node("Foo", ["s"], ["also_unused"], "alien"), node("Relu", ["s"], ["next"], "fine")], ["more", "next"], step)
    loop = node("Loop", ["trips", "", "x"], ["y"], "rounds", body=body)
    found = refused(refusal, model([loop], X, {"trips": np.array(50, np.int64)}), {2})
    assert [f.split(": ")[:3] for f in found] == [["node 'rounds' (Loop)", "body", "node 'bad_axis' (Softmax)"],
                                                 ["node 'rounds' (Loop)", "body", "node 'alien' (Foo)"]], found


def test_tensors_of_both_branches(refusal):
    def branch(name):
        tensor = helper.make_tensor(name, FLOAT, [4], [1.0, 2.0, 3.0, 4.0])
        del tensor.float_data[2:]
        return graph([node("Add", ["x", name], ["t"])], ["t"], tensors=[tensor])
    choice = node("If", ["c"], ["y"], "choice", then_branch=branch("short1"), else_branch=branch("short2"))
    found = refused(refusal, model([choice], X, {"c": np.array(True)}), {2})
    assert [f.split(": ")[1] for f in found] == ["then_branch", "else_branch"], found


def test_nested_twice(refusal):
    inner = branches("c")
    outer = node("If", ["c"], ["y"], "outer", then_branch=graph([inner], ["y"]), else_branch=graph([inner], ["y"]))
    found = refused(refusal, model([outer], X, {"c": np.array(True)}), {3})
    places = [f"node 'outer' (If): {a}: node 'choice' (If): {b}: " for a in ("then_branch", "else_branch")
              for b in ("then_branch", "else_branch")]
    for place in places:
        assert any(f.startswith(place) for f in found), (place, found)
    assert len(found) == 4, found


def local(name, nodes, inputs=("a",), outputs=("b",)):
    return helper.make_function("local", name, list(inputs), list(outputs), nodes,
                                [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)])


def test_function_is_named_once_for_all_calls(refusal):
    f = local("F", [node("Foo", ["a"], ["b"], "inside")])
    calls = [node("F", ["x"], ["one"], "call1", domain="local"), node("F", ["x"], ["two"], "call2", domain="local"),
             node("Add", ["one", "two"])]
    found = refused(refusal, model(calls, X, opsets=[("", 17), ("local", 1)], functions=[f]), {3})
    assert len(found) == 1 and found[0].startswith("function 'local::F': node 'inside' (Foo): "), found


def test_faults_of_a_call_name_the_caller(refusal):
    f = local("F", [node("Softmax", ["a"], ["b"], "inside", axis=1)])
    calls = [node("Flatten", ["x"], ["flat"], "flatten"), node("ReduceSum", ["x"], ["all"], "sum", keepdims=0),
             node("F", ["flat"], ["one"], "good", domain="local"), node("F", ["all"], ["two"], "bad", domain="local"),
             node("Add", ["one", "two"])]
    found = refused(refusal, model(calls, X, opsets=[("", 17), ("local", 1)], functions=[f]), {2})
    assert len(found) == 1 and found[0].startswith("node 'bad' (local::F): node 'inside' (Softmax): "), found


def test_faults_behind_faults(refusal):
    """A node whose input could not be made is not computed, but what it holds is still looked at."""
    f = local("F", [node("Qux", ["a"], ["b"], "in_function")])
    nodes = [node("Foo", ["x"], ["c"], "first"), branches("c"), node("F", ["y"], ["z"], "call", domain="local")]
    found = refused(refusal, model(nodes, X, outputs=["z"], opsets=[("", 17), ("local", 1)], functions=[f]), {3})
    for word in ("Foo", "then_node", "else_node", "Qux"):
        assert any(word in line for line in found), (word, found)


def test_faults_of_all_kinds_in_one_list(refusal):
    tensor = helper.make_tensor("short", FLOAT, [4], [1.0, 2.0, 3.0, 4.0])
    del tensor.float_data[2:]
    nodes = [node("Foo", ["x"], ["a"], "unknown"), node("Softmax", ["x"], ["b"], "bad_attribute", axis=9),
             node("Add", ["x", "ghost"], ["c"], "bad_input"), node("Add", ["x", "short"], ["d"], "uses_bad_tensor"),
             node("And", ["x", "x"], ["e"], "bad_type"), node("Relu", ["x"], ["f"], "fine"), node("Neg", ["x"], ["f"], "again")]
    bad = model(nodes, X, [tensor], outputs=["f", "nowhere"])
    bad.graph.output[0].type.tensor_type.elem_type = TensorProto.INT64
    found = refused(refusal, bad, {2})
    for word in ("short", "unknown", "bad_attribute", "ghost", "bad_type", "'f' is defined twice", "nowhere",
                 "output 'f' is declared as i64"):
        assert any(word in line for line in found), (word, found)
    assert not any("uses_bad_tensor" in line for line in found), found


def test_inputs_without_sizes_do_not_hide_the_rest(refusal):
    bad = model([node("Foo", ["x"], ["a"], "unknown"), node("Softmax", ["w"], ["y"], "bad_axis", axis=9)],
                X, {"w": zeros(2, 3)}, outputs=["a", "y"])
    bad.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "batch"
    outcome = refusal.aglow("compile", refusal.write(bad), "--emit", "graph", "--backend", "interpreter")
    found = lines(outcome)
    for word in ("'batch' has no size", "unknown", "bad_axis"):
        assert any(word in line for line in found), (word, found)


@pytest.mark.parametrize("count", [150, 20_000])
def test_very_many_are_counted(refusal, count):
    nodes = [node("Foo", ["x"], [f"v{i}"], f"n{i}") for i in range(count)]
    outcome = refusal.run(model(nodes, X, outputs=["v0"]), X)
    refusal.check(outcome, {3}, f"{count} errors")
    assert len(lines(outcome)) == 100
