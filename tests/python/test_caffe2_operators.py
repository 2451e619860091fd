"""Caffe2's operators, alone in a net, against numpy on both backends."""
import numpy as np
import pytest

from caffe2_nets import Net, Op, fill
from caffe2_problems import PROBLEMS


def cases():
    count = {}
    for problem in PROBLEMS:
        number = count[problem.type] = count.get(problem.type, -1) + 1
        yield pytest.param(problem, id=f"{problem.type}-{number}")


@pytest.mark.parametrize("backend", ["interpreter", "cpu"])
@pytest.mark.parametrize("problem", list(cases()))
def test_operator(aglow, tmp_path, problem, backend):
    inputs = [f"in{i}" for i in range(len(problem.operands))]
    outputs = [f"out{i}" for i in range(problem.outputs)]
    init = [fill(name, value) for i, (name, value) in enumerate(zip(inputs, problem.operands)) if i in problem.fixed]
    net = Net("one", [Op(problem.type, inputs, outputs, problem.args)], inputs, outputs)
    (tmp_path / "predict_net.pb").write_bytes(net.binary())
    (tmp_path / "init_net.pb").write_bytes(Net("init", init).binary())
    options = []
    for i, (name, value) in enumerate(zip(inputs, problem.operands)):
        if i not in problem.fixed:
            np.save(tmp_path / f"{name}.npy", value)
            options.append(f"--input={name}={tmp_path}/{name}.npy")
    outcome = aglow("run", tmp_path / "predict_net.pb", "--init", tmp_path / "init_net.pb", "--backend", backend, *options,
                    "--output-dir", tmp_path / "out")
    assert outcome.code == 0, outcome.err
    with np.errstate(all="ignore"):
        expected = problem.oracle(*problem.operands)
    for i, wanted in enumerate(expected if isinstance(expected, tuple) else (expected,)):
        got, wanted = np.load(tmp_path / "out" / f"{i}.npy"), np.asarray(wanted)
        assert got.shape == wanted.shape
        if wanted.dtype.kind in "ib":
            np.testing.assert_array_equal(got, wanted)
            assert got.dtype.kind == wanted.dtype.kind
        else:
            size = abs(wanted[np.isfinite(wanted)]).max(initial=0)
            np.testing.assert_allclose(got, wanted, rtol=problem.tolerance, atol=problem.tolerance * size)
