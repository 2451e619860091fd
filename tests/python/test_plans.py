"""Which kernel runs an instruction, and why: inspect --explain, bench --instructions, and the plans of text forms."""
import json
import re

import numpy as np
import onnx
import pytest

from conftest import ROOT

DIGITS = ROOT / "examples" / "digits" / "digits.onnx"
NET = ROOT / "tests" / "golden" / "plan" / "explain.graph"
COUNTER = ROOT / "examples" / "counter" / "counter.graph"
PRODUCT = """module {
  placeholder @x : f32[512,512]
  placeholder @y : f32[512,512]

  func @main {
    %product = MatMul(@x, @x)
    Save(%product, @y)
  }
}
"""
AVX2 = ["--backend", "cpu", "--target", "x86_64-linux-gnu", "--cpu", "x86-64-v3"]


def explained(aglow, model, *options):
    done = aglow("inspect", model, "--explain", "--json", *options)
    assert (done.code, done.err) == (0, "")
    return json.loads(done.out)


@pytest.mark.parametrize("model", [DIGITS, NET], ids=["digits", "net"])
def test_text_and_json_say_the_same(aglow, model):
    plans = explained(aglow, model, *AVX2)["plans"]
    text = aglow("inspect", model, "--explain", *AVX2).out
    lines = [line.split() for line in text.splitlines()[1:-1]]
    expected = []
    for plan in plans:
        if plan["kernel"] is None:
            expected.append([plan["node"], "+".join(plan["operators"]), "-", "-", "-", "-"])
            continue
        # A table cuts long names in front.
        expected.append([plan["node"][-36:], "+".join(plan["operators"])[-28:], plan["kernel"], str(plan["units"]),
                         str(plan["scratch_bytes"]), plan["epilogue"]])
        expected += [["not", refused["kernel"] + ":", *refused["reason"].split()] for refused in plan["refused"]]
    assert [[re.sub("^…", "", word) for word in line] for line in lines] == \
           [[re.sub("^…", "", word) for word in line] for line in expected]


def test_every_reason_says_what_is_needed_and_what_is_there(aglow):
    plans = explained(aglow, NET, *AVX2)["plans"]
    reasons = [refused["reason"] for plan in plans for refused in plan.get("refused", [])]
    assert len(reasons) == 3 and all(re.fullmatch("needs .+, has .+", reason) for reason in reasons)


def test_functions_have_plans_of_their_own(aglow):
    functions = explained(aglow, COUNTER, *AVX2)["functions"]
    assert functions.keys() == {"add", "reset"}
    assert [plan["kernel"] for plan in functions["add"]["plans"] if plan["kernel"]] == ["loops"]


def test_a_profile_names_the_kernels(aglow, tmp_path):
    trace = tmp_path / "trace.json"
    done = aglow("bench", DIGITS, "--backend", "cpu", "--runs", "1", "--instructions", "--trace", trace, "--json")
    assert done.code == 0
    kernels = {plan["kernel"] or "-" for plan in explained(aglow, DIGITS, "--backend", "cpu")["plans"]}
    assert {line["kernel"] for line in json.loads(done.out)["profile"]["instructions"]} == kernels
    events = json.loads(trace.read_text())["traceEvents"]
    assert {event["args"]["kernel"] for event in events if event["ph"] == "X"} <= kernels


def test_a_profile_shows_how_threads_share(aglow, tmp_path):
    """A busy machine may keep the second thread away for a while."""
    (tmp_path / "product.graph").write_text(PRODUCT)
    trace = tmp_path / "trace.json"
    for _ in range(10):
        done = aglow("bench", tmp_path / "product.graph", "--backend", "cpu", "--threads", "2", "--runs", "20", "--instructions",
                     "--trace", trace, "--json")
        assert done.code == 0, done.err
        lines = json.loads(done.out)["profile"]["instructions"]
        assert all(line["threads"] in (1, 2) and 0 < line["balance"] <= 1 for line in lines)
        if any(line["threads"] == 2 for line in lines):
            break
    else:
        raise AssertionError("two threads never shared an instruction")
    events = json.loads(trace.read_text())["traceEvents"]
    names = {event["tid"]: event["args"]["name"] for event in events if event["ph"] == "M"}
    assert names == {0: "instructions", 1: "thread 0", 2: "thread 1"}
    assert {event["tid"] for event in events if event["ph"] == "X"} == {0, 1, 2}
    table = aglow("bench", tmp_path / "product.graph", "--backend", "cpu", "--threads", "2", "--runs", "1", "--instructions")
    assert re.search("kernel +ms +share +threads +even +beside +chain +GFLOP/s", table.out)


def test_a_profile_shows_what_runs_side_by_side(aglow, tmp_path):
    from bundle_models import MODELS
    onnx.save(MODELS["branches"]()[0], tmp_path / "branches.onnx")
    words = ["bench", tmp_path / "branches.onnx", "--backend", "cpu", "--runs", "20", "--instructions", "--json"]
    np.save(tmp_path / "i.npy", np.zeros(4, np.int64))
    words += ["--input", f"i={tmp_path / 'i.npy'}"]
    for threads in ("1", "2"):
        done = aglow(*words, "--threads", threads)
        assert done.code == 0, done.err
        lines = json.loads(done.out)["profile"]["instructions"]
        groups = [line["beside"] for line in lines if line["beside"] > 0]
        assert groups and all(groups.count(group) > 1 for group in groups)
        assert all(line["ms"] > 0 for line in lines)
    done = aglow(*words, "--threads", "2", "--disable", "beside")
    assert all(line["beside"] == 0 for line in json.loads(done.out)["profile"]["instructions"])


def test_a_profile_shows_what_is_chained(aglow, tmp_path):
    (tmp_path / "block.graph").write_text("""module {
  placeholder @x : f32[1,32,56,56]
  constant @wide : f32[192,32,1,1] = splat 0.0625
  constant @narrow : f32[32,192,1,1] = splat 0.03125
  placeholder @y : f32[1,192,56,56]
  func @main {
    %a = Conv(@x, @wide)
    %b = Conv(%a, @narrow)
    %c = Add(%b, @x)
    %d = Conv(%c, @wide)
    Save(%d, @y)
  }
}
""")
    words = ["bench", tmp_path / "block.graph", "--backend", "cpu", "--runs", "20", "--instructions", "--json"]
    for threads in ("1", "2"):
        done = aglow(*words, "--threads", threads)
        assert done.code == 0, done.err
        lines = json.loads(done.out)["profile"]["instructions"]
        assert [line["chain"] for line in lines if line["chain"] > 0] == [1, 1]
        assert all(line["ms"] > 0 for line in lines)
    done = aglow(*words, "--threads", "2", "--disable", "chain")
    assert all(line["chain"] == 0 for line in json.loads(done.out)["profile"]["instructions"])


def test_a_text_form_with_plans_runs(aglow, tmp_path):
    image = f"image={ROOT / 'examples' / 'digits' / 'images' / '3.npy'}"
    assert aglow("compile", DIGITS, "-o", tmp_path, "--backend", "cpu", "--emit", "ir").code == 0
    text = (tmp_path / "digits.ir").read_text()
    assert " by tiles" in text
    for change in (lambda t: t, lambda t: re.sub(r" by \w+", " by another", t),
                   lambda t: re.sub(r" units \d+", "", t), lambda t: re.sub(r' not \w+ "[^"]*"', "", t)):
        (tmp_path / "digits.ir").write_text(change(text))
        done = aglow("run", tmp_path / "digits.ir", "--input", image, "--backend", "cpu", "-o", tmp_path / "out")
        assert (done.code, done.err) == (0, "")
        assert int(np.argmax(np.load(tmp_path / "out" / "0.npy"))) == 3
