"""Every elementwise operator in every element kind that its record names: the interpreter and the CPU compute its
formula, and the formula is what ONNX's reference means by the operator. All is derived from the records, so a new row
is tested without a line here."""
import json
import os
import subprocess
import zlib

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from conftest import PROGRAM
from elementwise_problems import graph, is_derivable, nodes

OPERATORS = json.loads(subprocess.run([PROGRAM, "ops", "--json"], capture_output=True, check=True).stdout)["operators"]
DERIVED = [pytest.param(op, id=op["name"]) for op in OPERATORS if is_derivable(op)]
HOW = os.environ.get("AGLOW_PROBLEM_OPTIONS")  # see test_operators.py


def drawn(op, kinds=None):
    return nodes(op, np.random.default_rng(zlib.crc32(op["name"].encode())), kinds)


def run(aglow, folder, problem, options):
    """The results of all nodes, in order."""
    (folder / "all.graph").write_text(graph(problem))
    given = []
    for node in problem:
        for i, (kind, values) in enumerate(zip(node.kinds, node.operands)):
            kind.save(folder / f"{node.name}_{i}.npy", values)
            given.append(f"--input={node.name}_{i}={folder}/{node.name}_{i}.npy")
    outcome = aglow("run", folder / "all.graph", *options, *given, "--output-dir", folder / "out")
    assert outcome.code == 0, outcome.err
    return [node.result.load(folder / "out" / f"{i}.npy") for i, node in enumerate(problem)]


@pytest.mark.parametrize("options", [HOW.split()] if HOW else [["--backend", "interpreter"], ["--backend", "cpu"]],
                         ids=lambda options: options[-1])
@pytest.mark.parametrize("op", DERIVED)
def test_formula(aglow, tmp_path, op, options):
    problem = drawn(op)
    for node, got in zip(problem, run(aglow, tmp_path, problem, options)):
        with np.errstate(all="ignore"):
            wanted = node.result.wide(node.expected)
        finite = abs(wanted[np.isfinite(wanted)]) if node.result.is_float else np.zeros(0)
        # Formulas of several terms round more than once; the result in a narrow kind is rounded once.
        tolerance = node.result.tolerance() * (4 if node.result.name in ("f32", "f64") else 1)
        np.testing.assert_allclose(got, wanted, rtol=tolerance, atol=tolerance * (np.median(finite) if finite.size else 0),
                                   err_msg=f"{node.op} of {node.kind} {node.attributes}")


def standard_part(model):
    """The model without the nodes that are not ONNX's own, and without their results."""
    ours = {name for node in model.graph.node if node.domain for name in node.output}
    nodes = [node for node in model.graph.node if not node.domain]
    made = {name for node in nodes if not ours & set(node.input) for name in node.output}
    outputs = [output for output in model.graph.output if output.name in made]
    graph = onnx.helper.make_graph(nodes, "standard", model.graph.input, outputs, model.graph.initializer)
    return onnx.helper.make_model(graph, opset_imports=model.opset_import, ir_version=model.ir_version)


@pytest.mark.parametrize("op", DERIVED)
def test_meaning(aglow, tmp_path, op):
    problem = drawn(op, ["f32", "f64", "i64", "u64", "bool"])
    (tmp_path / "all.graph").write_text(graph(problem))
    made = aglow("compile", tmp_path / "all.graph", "--stop-after", "import", "--emit", "onnx", "-o", tmp_path / "out")
    assert made.code == 0, made.err
    model = standard_part(onnx.load(tmp_path / "out" / "all.onnx"))
    given = {f"{node.name}_{i}": values.astype(kind.dtype) for node in problem
             for i, (kind, values) in enumerate(zip(node.kinds, node.operands))}
    with np.errstate(all="ignore"):
        results = dict(zip((o.name for o in model.graph.output), ReferenceEvaluator(model).run(None, given)))
    # Bounds that broadcast are not ONNX's.
    assert results or "onnx" not in op or op["name"] == "Clip", f"nothing became {op.get('onnx')}"
    for node in problem:
        if node.name in results:
            wanted = node.result.wide(node.expected)
            np.testing.assert_allclose(node.result.wide(results[node.name]), wanted, rtol=1e-4, atol=1e-7,
                                       err_msg=f"{node.op} of {node.kind} {node.attributes}")
