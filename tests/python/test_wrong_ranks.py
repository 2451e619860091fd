"""Operands with other numbers of axes than an operator works on: right, or refused; never a crash."""
import os
import subprocess
import sys

import pytest

# In a process of its own, which says what it tries before it does.
SCRIPT = """
import copy, sys
import aglow
from contrib_problems import PROBLEMS
from test_contrib_operators import model_of

tried, refused = 0, 0
for problem in PROBLEMS:
    model = model_of(problem)[0]
    for i, operand in enumerate(model.graph.input):
        rank = len(operand.type.tensor_type.shape.dim)
        for axes in sorted({0, 1, rank - 1, rank + 1} - {rank, -1}):
            changed = copy.deepcopy(model)
            dims = changed.graph.input[i].type.tensor_type.shape.dim
            while len(dims) > axes:
                del dims[0]
            while len(dims) < axes:
                dims.add().dim_value = 2
            print(problem.name, operand.name, "with", axes, "axes", file=sys.stderr, flush=True)
            tried += 1
            try:
                aglow.compile(changed.SerializeToString(), backend="interpreter")
            except aglow.Error as error:
                assert error.exit in (2, 3), error
                refused += 1
print(tried, refused)
"""


def test_operands_of_other_ranks():
    aglow = pytest.importorskip("aglow", reason="the module is not built: ./dev test builds it")
    paths = [os.path.dirname(os.path.dirname(aglow.__file__)), os.path.dirname(__file__)]
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=600,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "AGLOW_CACHE_DIR": "off"})
    assert done.returncode == 0, done.stderr[-2000:]
    tried, refused = map(int, done.stdout.split())
    assert tried > 1000 and refused > tried / 2
