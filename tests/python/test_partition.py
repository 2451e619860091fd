"""Models cut into parts and put on devices: aglow partition, aglow provision."""
import json
import re
import shlex

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from conftest import ROOT

CONV = ROOT / "docs" / "tour" / "conv.onnx"
DIGITS = ROOT / "examples" / "digits"
CARDS = "sim:cpu,name=card0 sim:cpu,name=card1 sim:cpu,name=card2"


def chain(path, widths):
    """Layers one after the other, each named after its place."""
    rng = np.random.default_rng(0)
    nodes, weights, before, columns = [], [], "x", 8
    for i, width in enumerate(widths):
        weights.append(numpy_helper.from_array(rng.normal(size=(columns, width)).astype(np.float32), f"w{i}"))
        nodes.append(helper.make_node("MatMul", [before, f"w{i}"], [f"m{i}"], name=f"product{i}"))
        nodes.append(helper.make_node("Tanh", [f"m{i}"], [f"t{i}"], name=f"bend{i}"))
        before, columns = f"t{i}", width
    graph = helper.make_graph(nodes, "chain", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 8])],
                              [helper.make_tensor_value_info(before, TensorProto.FLOAT, [2, columns])], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


@pytest.fixture
def layers(tmp_path):
    return chain(tmp_path / "layers.onnx", [32, 16, 48, 8])


@pytest.mark.parametrize("criterion", ["memory", "time", "communication", "pipeline"])
@pytest.mark.parametrize("parts", [2, 3])
def test_parts_give_the_same_bits(aglow, layers, criterion, parts):
    outcome = aglow("partition", layers, "--parts", str(parts), "--criterion", criterion, "--devices", CARDS, "--verify",
                    "--json")
    assert outcome.code == 0, outcome.err
    assert len(json.loads(outcome.out)["parts"]) == parts


@pytest.mark.parametrize("criterion", ["memory", "pipeline"])
@pytest.mark.parametrize("devices", [CARDS, "cpu:0,name=cores sim:cpu,name=card"])
def test_nothing_is_cut_that_runs_as_one(aglow, tmp_path, criterion, devices):
    """Narrow floats that stay wide in the loop of a product, and sums taken in the loop of a row."""
    rng = np.random.default_rng(0)
    nodes, weights, before = [], [], "x"
    for i in range(4):
        weights.append(numpy_helper.from_array(rng.normal(size=(24, 24)).astype(np.float16), f"w{i}"))
        nodes += [helper.make_node("MatMul", [before, f"w{i}"], [f"m{i}"]), helper.make_node("Add", [f"m{i}", before], [f"a{i}"]),
                  helper.make_node("Softmax", [f"a{i}"], [f"s{i}"]), helper.make_node("Add", [f"s{i}", f"a{i}"], [f"t{i}"])]
        before = f"t{i}"
    ports = [[helper.make_tensor_value_info(name, TensorProto.FLOAT16, [5, 24])] for name in ("x", before)]
    path = tmp_path / "narrow.onnx"
    onnx.save(helper.make_model(helper.make_graph(nodes, "g", *ports, weights), ir_version=8,
                                opset_imports=[helper.make_opsetid("", 17)]), path)
    for parts in (2, 3, 5):
        outcome = aglow("partition", path, "--parts", str(parts), "--criterion", criterion, "--devices", devices, "--verify")
        assert outcome.code == 0, outcome.err
        assert "same bits" in outcome.out


@pytest.mark.parametrize("device", ["interpreter@64K", "interpreter"])
def test_devices_with_a_bound_of_memory(aglow, layers, device):
    outcome = aglow("partition", layers, "--parts", "2", "--devices", f"{device},name=a {device},name=b", "--verify")
    assert outcome.code == 0 and "the same bits as whole" in outcome.out, outcome.err


def test_a_plan_says_where_nodes_go(aglow, layers, tmp_path):
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"product0": "card1", "product1": "card0", "product2": "card1"}))
    outcome = aglow("partition", layers, "--plan", plan, "--devices", CARDS, "--verify", "--json")
    assert outcome.code == 0, outcome.err
    found = json.loads(outcome.out)["parts"]
    assert [part["device"] for part in found] == ["card1", "card0", "card1"]
    assert any(name.startswith("product1") for name in found[1]["nodes"])
    for wrong, word in [({"product0": "card9"}, "card9"), ({"nothing": "card0"}, "names no node"), ([], "JSON object")]:
        plan.write_text(json.dumps(wrong))
        outcome = aglow("partition", layers, "--plan", plan, "--devices", CARDS)
        assert outcome.code == 1 and word in outcome.err


def test_what_a_device_lacks_is_called_out(aglow, layers):
    devices = "sim:cpu,name=card,without=Tanh cpu:0,name=host"
    outcome = aglow("partition", layers, "--criterion", "support", "--devices", devices, "--verify", "--json")
    assert outcome.code == 0, outcome.err
    found = json.loads(outcome.out)
    assert len(found["called_out"]) == 4 and all("goes to host" in line for line in found["called_out"])
    assert {part["device"] for part in found["parts"]} == {"card", "host"}


def test_measured_times_move_the_cut(aglow, layers, tmp_path):
    times = tmp_path / "times.json"
    times.write_text(json.dumps({"product0": 1e6}))
    outcome = aglow("partition", layers, "--parts", "2", "--criterion", "pipeline", "--measured", times, "--json")
    assert outcome.code == 0, outcome.err
    assert all(name.startswith(("product0", "bend0")) for name in json.loads(outcome.out)["parts"][0]["nodes"])


def test_files_are_written(aglow, layers, tmp_path):
    dot, module = tmp_path / "parts.dot", tmp_path / "parts.graph"
    outcome = aglow("partition", layers, "--parts", "2", "--dot", dot, "-o", module)
    assert outcome.code == 0, outcome.err
    assert dot.read_text().startswith("digraph") and "cluster_1" in dot.read_text()
    assert "part0" in module.read_text() and "part1" in module.read_text()
    assert aglow("compile", module, "--emit", "graph", "-o", tmp_path / "again").code == 0


def test_what_does_not_fit_is_refused(aglow, layers):
    outcome = aglow("partition", layers, "--devices", "sim:cpu,name=card0,memory=1K sim:cpu,name=card1,memory=1K")
    assert outcome.code == 4 and "card0 has 1024 bytes" in outcome.err
    assert aglow("partition", layers, "--devices", "what").code == 1
    assert aglow("partition", layers, "--criterion", "taste").code == 1


def test_models_are_put_on_devices(aglow, layers, tmp_path):
    dot = tmp_path / "host.dot"
    devices = " ".join(f"sim:cpu,name=card{i},memory=1M" for i in range(5))
    outcome = aglow("provision", "-n", f"A={layers},parts=2", "-n", f"B={layers},parts=2,replicas=2", "-n", f"C={CONV}",
                    "-n", f"D={layers}", "--devices", devices, "--dot", dot, "--json")
    assert outcome.code == 0, outcome.err
    networks = {network["name"]: network["replicas"] for network in json.loads(outcome.out)["networks"]}
    assert [len(replica) for replica in networks["B"]] == [2, 2]
    assert not set(networks["B"][0]) & set(networks["B"][1])
    assert dot.read_text().count("cluster_") == 5
    outcome = aglow("provision", "-n", f"A={layers}", "--devices", "sim:cpu,name=card,memory=1K")
    assert outcome.code == 4 and "too few" in outcome.err
    assert aglow("provision", "-n", "A", "--devices", "sim").code == 1


@pytest.mark.parametrize("backend, memory", [("interpreter", "6K"), ("cpu", "8K")])
def test_what_does_not_fit_whole_is_cut(aglow, layers, backend, memory):
    outcome = aglow("provision", "-n", f"A={layers}", "--devices",
                    " ".join(f"sim:{backend},name=card{i},memory={memory}" for i in range(3)), "--json")
    assert outcome.code == 0, outcome.err
    assert len(json.loads(outcome.out)["networks"][0]["replicas"][0]) > 1


def test_the_figures_are_what_the_program_draws(aglow, tmp_path):
    """docs/figures has what the commands of docs/runtime.md write."""
    tour, figures = ROOT / "docs" / "tour", ROOT / "docs" / "figures"
    text = (ROOT / "docs" / "runtime.md").read_text(encoding="utf-8")
    drawn = 0
    for command in re.findall(r"^\$ aglow (.*--dot figure.*)$", text, re.M):
        words = [str(tmp_path / word) if word.startswith("figure") else word.replace("digits/", f"{DIGITS}/")
                 for word in shlex.split(command)]
        assert aglow(*words, cwd=tour).code == 0
        drawn += 1
    assert drawn == 2
    for name in ("figure9.dot", "figure10.dot"):
        assert (tmp_path / name).read_text() == (figures / name).read_text(), f"docs/figures/{name} has changed"
        assert (figures / name).with_suffix(".svg").exists()


def test_annotations_of_the_model(aglow, layers, tmp_path):
    """Pipeline stages that the model itself has, and tensors that are shared out, which are refused."""
    model = onnx.load(layers)
    if not hasattr(model, "configuration"):
        pytest.skip("this onnx knows no annotations for several devices")
    model.ir_version = 11
    model.configuration.add(name="two", num_devices=2)
    for node in model.graph.node:
        node.device_configurations.add(configuration_id="two", pipeline_stage=0 if node.name[-1] in "01" else 1)
    onnx.save(model, tmp_path / "staged.onnx")
    outcome = aglow("partition", tmp_path / "staged.onnx", "--annotated", "--devices", CARDS, "--verify", "--json")
    assert outcome.code == 0, outcome.err
    found = json.loads(outcome.out)["parts"]
    assert [part["device"] for part in found] == ["card0", "card1"]
    stages = [{re.sub(r"\.\d+$", "", name) for name in part["nodes"]} for part in found]
    assert "product1" in stages[0] and "product2" in stages[1]
    assert aglow("partition", tmp_path / "staged.onnx", "--configuration", "three", "--devices", CARDS).code == 1
    assert aglow("partition", tmp_path / "staged.onnx", "--annotated", "--devices", "sim").code == 1
    assert aglow("partition", layers, "--annotated", "--devices", CARDS).code == 1
    spec = model.graph.node[0].device_configurations[0]
    spec.ClearField("pipeline_stage")
    spec.sharding_spec.add(tensor_name="x", device=[0, 1])
    onnx.save(model, tmp_path / "sharded.onnx")
    outcome = aglow("partition", tmp_path / "sharded.onnx", "--annotated", "--devices", CARDS)
    assert outcome.code == 3 and "'x' is shared out" in outcome.err
