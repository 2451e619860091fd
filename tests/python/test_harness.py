"""The harness of the conformance tests: files, comparison, and verdicts on programs that misbehave."""
import json
import sys

import ml_dtypes
import numpy as np
import pytest
from harness import case, process, tensors
from onnx import TensorProto, helper


@pytest.mark.parametrize("dtype, stored", [
    (np.float32, "<f4"), (np.bool_, "|b1"), (ml_dtypes.bfloat16, "<u2"), (ml_dtypes.float8_e4m3fn, "|u1"),
    (ml_dtypes.int4, "|i1"), (ml_dtypes.uint4, "|u1"), (ml_dtypes.float4_e2m1fn, "|u1"), (ml_dtypes.uint2, "|u1")])
def test_files_keep_every_bit(tmp_path, dtype, stored):
    value = np.array([[0, 1], [1, 3]]).astype(dtype)
    assert tensors.save(str(tmp_path / "x"), value) == str(tmp_path / "x.npy")
    assert np.load(tmp_path / "x.npy").dtype.str == stored
    back = tensors.load(str(tmp_path / "x"), helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))
    assert back.dtype == value.dtype and (back == value).all()


def test_strings_sequences_and_none(tmp_path):
    words = np.array([["a", ""], ["größer", "x"]], object)
    tensors.save(str(tmp_path / "s"), [words, words[:0]])
    back = tensors.load(str(tmp_path / "s"), TensorProto.STRING)
    tensors.compare([words, words[:0]], back, 0, 0)
    assert tensors.save(str(tmp_path / "n"), None) == "@none"


@pytest.mark.parametrize("got", [
    None, [np.zeros(3, np.float32)], np.zeros(4, np.float32), np.zeros(3, np.float64), np.full(3, 0.1, np.float32),
    np.full(3, np.nan, np.float32)])
def test_compare_finds_differences(got):
    with pytest.raises(tensors.Mismatch):
        tensors.compare(np.zeros(3, np.float32), got, 1e-3, 1e-7)


def test_compare_accepts_equal_values():
    value = np.array([0, np.nan, np.inf, 1], np.float32)
    tensors.compare(value, value * np.float32(1.0005), 1e-3, 1e-7)


@pytest.fixture
def run(tmp_path):
    """run(python code): the verdict on a program that is this code, for a model x -> x with x = [1, 2]."""
    def call(code, timeout=20):
        value = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])
        model = helper.make_model(helper.make_graph([], "g", [value], [value]))
        data = np.array([1, 2], np.float32)
        record = case.write_case(str(tmp_path / "case"), model, [([data], [data])], 1e-3, 1e-7)
        record = json.loads(json.dumps(record))
        script = tmp_path / "program.py"
        script.write_text("import os, sys, shutil, time\n"
                          "file = sys.argv[sys.argv.index('--input') + 1].rsplit('=', 1)[1]\n"
                          "out = sys.argv[sys.argv.index('--output-dir') + 1]\n" + code)
        return case.run_case(f"{sys.executable} {script}", "model.onnx", str(tmp_path / "case"), record,
                             timeout=timeout, memory_mb=None)
    return call


@pytest.mark.parametrize("code, kind", [
    ("shutil.copy(file, out + '/0.npy')", case.PASS),
    ("sys.exit(0)", case.WRONG),
    ("open(out + '/0.npy', 'w').close()", case.WRONG),
    ("sys.exit('error[E301] no such operator' and 3)", case.UNSUPPORTED),
    ("sys.exit(2)", case.ERROR),
    ("sys.exit(7)", case.ERROR),
    ("os.kill(os.getpid(), 11)", case.CRASH),
    ("os.abort()", case.CRASH)])
def test_verdicts(run, code, kind):
    assert run(code).kind == kind


def test_hang(run):
    assert run("time.sleep(60)", timeout=0.5).kind == case.HANG


def test_memory_limit():
    greedy = [sys.executable, "-c", "x = bytearray(1 << 30)"]
    assert process.run(greedy, memory_mb=512).code == 1
    assert process.run([sys.executable, "-c", "pass"], memory_mb=512).code == 0
