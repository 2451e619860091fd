"""The machinery of tests/mutation: it draws the same cases again, notices faults, and makes them smaller."""
import pathlib
import random
import sys

import numpy as np
import onnx
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "mutation"))

import byte_mutations  # noqa: E402
import checks  # noqa: E402
import commands  # noqa: E402
import minimize  # noqa: E402
import module_models  # noqa: E402
import seeds  # noqa: E402

AFFINE = seeds.Seed("onnx", "affine", {"m.onnx": module_models.affine().SerializeToString()})
SUM = seeds.Seed("onnx", "sum", {"m.onnx": module_models.two_outputs().SerializeToString()})
ENDED = {"code": 0, "late": False, "cpu_s": 0.1, "wall_s": 0.1, "peak_mb": 10}
RUN = commands.Execution("aglow", ["run", "m.onnx", "--backend", "cpu"])


def test_the_same_seed_gives_the_same_case():
    kinds = {"onnx": [AFFINE, SUM]}
    for index in range(50):
        assert commands.make(random.Random(f"1/{index}"), kinds) == commands.make(random.Random(f"1/{index}"), kinds)
    assert len({commands.make(random.Random(f"1/{index}"), kinds).files["m.onnx"] for index in range(50)}) > 30


def test_wire_format_reads_back():
    data = AFFINE.files["m.onnx"]
    assert byte_mutations.serialize(byte_mutations.parse(data)) == data


@pytest.mark.parametrize("code, errors, kind", [
    (0, "", None),
    (2, "error[E201] m.onnx: bad\n", None),
    (-11, "", "signal"),
    (-24, "", "hang"),
    (7, "error[E700] a check failed\n", "exit"),
    (9, "error[E101] what\n", "exit"),
    (2, "", "silent"),
    (2, "error[E301] not supported\n", "silent"),
])
def test_endings(tmp_path, code, errors, kind):
    (tmp_path / "stderr.txt").write_text(errors)
    finding = checks.check(RUN, {**ENDED, "code": code}, tmp_path, {"m.onnx"})
    assert (finding and finding.kind) == kind


def test_files_that_are_left(tmp_path):
    (tmp_path / "stderr.txt").write_text("error[E201] bad\n")
    (tmp_path / "out").mkdir()
    failed = {**ENDED, "code": 2}
    assert checks.check(RUN, failed, tmp_path, set()) is None
    (tmp_path / "out" / "0.npy").write_bytes(b"")
    assert checks.check(RUN, ENDED, tmp_path, set()) is None
    assert checks.check(RUN, failed, tmp_path, set()).kind == "left-over"
    (tmp_path / "out" / ".aglow-1.tmp").write_bytes(b"")
    assert checks.check(RUN, ENDED, tmp_path, set()).kind == "left-over"


@pytest.mark.parametrize("other, odd, differs", [
    ([1.0, 2.0], False, False), ([1.0, 2.00001], False, False), ([1.0, 2.1], False, True),
    ([np.nan, 2.0], False, True), ([np.nan, 2.0], True, False), ([np.nan, 2.1], True, True), ([1.0], False, True),
])
def test_two_backends(tmp_path, other, odd, differs):
    for name, values in (("a", [1.0, 2.0]), ("b", other)):
        (tmp_path / name).mkdir()
        np.save(tmp_path / name / "0.npy", np.array(values, np.float32))
    assert (checks.compare(tmp_path, "a", "b", odd) is not None) == differs


def test_findings_become_small():
    def shows(files, execution):
        model = seeds.proto_of(files["m.onnx"])
        operators = [node.op_type for node in model.graph.node] if model is not None else []
        return "Add" in operators and "--pad" in execution.args

    execution = commands.Execution("aglow", RUN.args + ["--pad", "--timing"])
    files, execution = minimize.minimize(AFFINE.files, execution, shows, 10)
    model = onnx.load_from_string(files["m.onnx"])
    assert [node.op_type for node in model.graph.node] == ["Add"] and not model.graph.initializer
    assert execution.args == ["run", "m.onnx", "--pad"]
