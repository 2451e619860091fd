"""Every operator of the graph, alone in a program, against numpy. operator_problems.py has the table; of elementwise
operators it has special values only, since test_elementwise.py derives their problems."""
import json
import os
import re
import subprocess
import zlib

import numpy as np
import pytest

from element_kinds import FLOATS, Kind
from elementwise_problems import is_derivable
from operator_problems import PROBLEMS

def parsed(operand, kind):
    """(type text, kind, draw), where draw(random) gives the elements."""
    text, elements = operand if isinstance(operand, tuple) else (operand, None)
    name, dims, scales, span = re.fullmatch(r"(\w+)\[([\d,]*)\](<.*>)?(?: in (.*))?", text).groups()
    name = kind if name == "T" else name
    shape = tuple(int(d) for d in dims.split(",") if d)
    low, high = (float(v) for v in (span or "-4..4").split(".."))
    if name not in FLOATS:
        low, high = int(low), int(high)
    draw = lambda random: (Kind(name).draw(random, shape, low, high) if elements is None else
                           Kind(name).wide(np.reshape(elements, shape)))
    return f"{name}[{dims}]{scales or ''}", Kind(name), draw


def cases():
    for name, problems in PROBLEMS.items():
        for number, problem in enumerate(problems):
            kinds = problem.kinds if "T[" in str(problem.operands) else [None]
            for kind in kinds:
                yield pytest.param(name, problem, kind, id=f"{name}-{number}" + (f"-{kind}" if kind else ""))


def graph(name, attrs, operands, results):
    """The text of a program that is one node. Operands and results are types, or None for an absent operand."""
    inputs = [f"placeholder @in{i} : {type}" for i, type in enumerate(operands) if type]
    outputs = [f"placeholder @out{i} : {type}" for i, type in enumerate(results)]
    values = ", ".join(f"@in{i}" if type else "_" for i, type in enumerate(operands))
    node = f"%y = {name}({values})" + (f" {{{attrs}}}" if attrs else "")
    saves = [f"Save(%y:{i}, @out{i})" for i in range(len(results))]
    return "\n".join(["module {", *inputs, *outputs, "func @main {", node, *saves, "}", "}", ""])


# Backend, target and threads to run on, beside the defaults: "--backend cpu -O 0".
HOW = os.environ.get("AGLOW_PROBLEM_OPTIONS", "").split()


@pytest.mark.parametrize("name, problem, kind", list(cases()))
def test_operator(aglow, tmp_path, name, problem, kind):
    random = np.random.default_rng(zlib.crc32(f"{name} {problem.operands} {kind}".encode()))
    operands = [None if o == "_" else parsed(o, kind) for o in problem.operands]
    values, given = [], []
    for i, (_, element, draw) in ((i, operand) for i, operand in enumerate(operands) if operand):
        values.append(draw(random))
        element.save(tmp_path / f"{i}.npy", values[-1])
        given.append(f"--input=in{i}={tmp_path}/{i}.npy")
    with np.errstate(all="ignore"):
        expected = problem.oracle(*values)
    expected = [np.asarray(e) for e in (expected if isinstance(expected, tuple) else [expected])]

    # The result's shape is numpy's, so the verifier compares it with the one that is inferred.
    results = [r.replace("T", kind or "") for r in problem.results or [operands[0][1].name]]
    kinds = [Kind(r.partition("<")[0]) for r in results]
    types = [f"{element.name}[{','.join(map(str, array.shape))}]{result[len(element.name):]}"
             for result, element, array in zip(results, kinds, expected, strict=True)]
    text = graph(name, problem.attrs, [operand and operand[0] for operand in operands], types)
    (tmp_path / "one.graph").write_text(text)
    outcome = aglow("run", tmp_path / "one.graph", *HOW, *given, "--output-dir", tmp_path / "out")
    assert outcome.code == 0, outcome.err + text

    for i, (element, array) in enumerate(zip(kinds, expected)):
        with np.errstate(all="ignore"):
            wanted = element.wide(array)
        finite = abs(wanted[np.isfinite(wanted)]) if element.is_float else np.zeros(0)
        tolerance = element.tolerance() * problem.tolerance
        np.testing.assert_allclose(element.load(tmp_path / "out" / f"{i}.npy"), wanted, rtol=tolerance,
                                   atol=tolerance * (np.median(finite) if finite.size else 0), err_msg=text)


def test_every_operator_has_a_problem(program):
    listed = json.loads(subprocess.run([program, "ops", "--json"], capture_output=True, check=True).stdout)["operators"]
    names = {op["name"] for op in listed if op["kind"] not in ("storage", "target")}
    derived = {op["name"] for op in listed if is_derivable(op)}
    assert sorted(names - derived - PROBLEMS.keys()) == [], "operators without a problem in operator_problems.py"
    assert sorted(PROBLEMS.keys() - names) == [], "problems of operators that do not exist"
