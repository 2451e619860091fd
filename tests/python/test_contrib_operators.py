"""Operators of com.microsoft, alone in a model, against numpy on both backends; and numpy against onnxruntime, where it
is installed."""
import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from contrib_problems import DOMAIN, PROBLEMS


def model_of(problem):
    names = [f"in{i}" if value is not None else "" for i, value in enumerate(problem.operands)]
    while names and not names[-1]:
        names.pop()
    outputs = [f"out{i}" for i in range(problem.outputs)]
    node = helper.make_node(problem.name, names, outputs, domain=problem.domain, **problem.attrs)
    given = {name: value for name, value in zip(names, problem.operands) if name}
    kinds = {name: helper.np_dtype_to_tensor_dtype(value.dtype) for name, value in given.items()}
    inputs = [helper.make_tensor_value_info(name, kinds[name], value.shape) for name, value in given.items()
              if int(name[2:]) not in problem.fixed]
    fixed = [numpy_helper.from_array(value, name) for name, value in given.items() if int(name[2:]) in problem.fixed]
    results = [onnx.ValueInfoProto(name=name) for name in outputs]
    graph = helper.make_graph([node], "one", inputs, results, fixed)
    imports = [helper.make_opsetid("", 16), helper.make_opsetid(DOMAIN, 1)]
    model = helper.make_model(graph, opset_imports=imports, ir_version=8)
    return model, {name: value for name, value in given.items() if int(name[2:]) not in problem.fixed}


def expected_of(problem):
    given = list(problem.operands)
    while given and given[-1] is None:
        given.pop()
    with np.errstate(all="ignore"):
        results = problem.oracle(*given)
    return list(results if isinstance(results, tuple) else (results,))[:problem.outputs]


def compare(problem, got, expected, what):
    for i, (actual, wanted) in enumerate(zip(got, expected)):
        if wanted is None or actual is None:
            continue
        wanted = np.asarray(wanted)
        assert actual.shape == wanted.shape, f"{what}, output {i}: {actual.shape}, expected {wanted.shape}"
        if actual.dtype.kind in "iu":
            distance = abs(actual.astype(np.int64) - wanted.astype(np.int64))
            assert distance.max(initial=0) <= problem.steps, f"{what}, output {i}: {actual}, expected {wanted}"
        else:
            size = abs(wanted[np.isfinite(wanted)]).max(initial=0) if wanted.dtype.kind == "f" else 0
            wanted = np.where(np.isnan(wanted), actual, wanted)
            np.testing.assert_allclose(actual, wanted, rtol=problem.tolerance, atol=problem.tolerance * size,
                                       err_msg=f"{what}, output {i}")


def cases(runtime=False):
    count = {}
    for problem in PROBLEMS:
        number = count[problem.name] = count.get(problem.name, -1) + 1
        if problem.runtime or not runtime:
            yield pytest.param(problem, id=f"{problem.name}-{number}")


@pytest.mark.parametrize("backend", ["interpreter", "cpu"])
@pytest.mark.parametrize("problem", list(cases()))
def test_contrib_operator(aglow, tmp_path, problem, backend):
    model, given = model_of(problem)
    onnx.save(model, tmp_path / "one.onnx")
    options = []
    for name, value in given.items():
        np.save(tmp_path / f"{name}.npy", value)
        options.append(f"--input={name}={tmp_path}/{name}.npy")
    outcome = aglow("run", tmp_path / "one.onnx", "--backend", backend, *options, "--output-dir", tmp_path / "out")
    assert outcome.code == 0, outcome.err
    got = [np.load(tmp_path / "out" / f"{i}.npy") for i in range(problem.outputs)]
    compare(problem, got, expected_of(problem), backend)


@pytest.mark.parametrize("problem", list(cases(runtime=True)))
def test_oracle_agrees_with_onnxruntime(problem):
    onnxruntime = pytest.importorskip("onnxruntime")
    model, given = model_of(problem)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    compare(problem, session.run(None, given), expected_of(problem), "onnxruntime")
