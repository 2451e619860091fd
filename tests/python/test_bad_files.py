"""Files that are not ONNX models, or hostile ones: refused with code 2 (3, 4 where stated), without crash or hang."""
import json
import os
import pathlib
import random
import shutil

import pytest
from bad_models import field, model, node, raw_model, raw_node, raw_subgraph, varint, zeros

X = {"x": zeros(2, 3)}


def small_model():
    return model([node("MatMul", ["x", "w"], ["h"]), node("Relu", ["h"])], X, {"w": zeros(3, 2)}).SerializeToString()


def test_the_small_model_itself_runs(refusal):
    outcome = refusal.run(small_model(), X)
    assert outcome.code == 0, outcome.err
    assert sorted(path.name for path in refusal.out.iterdir()) == ["0.npy"]


def test_empty(refusal):
    refusal.refuse(b"", {2}, inputs=X)
    refusal.check(refusal.inspect(b""), {2})


def test_random(refusal):
    for seed in range(40):
        data = random.Random(seed).randbytes(1 + seed * seed * 3)
        outcome = refusal.run(data, X)
        refusal.check(outcome, {2, 3})


def test_truncated_anywhere(refusal):
    data = small_model()
    # A cut just before the opset leaves a complete message.
    complete = len(data) - len(field(8, field(2, 17))) - 2
    for length in range(len(data)):
        if length % 2 == 0 and abs(length - complete) > 4:
            refusal.check(refusal.run(data[:length], X), {2, 3})


def test_flipped_bits(refusal):
    data, chance = small_model(), random.Random(1)
    for _ in range(150):
        flipped = bytearray(data)
        flipped[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        outcome = refusal.run(bytes(flipped), X)
        assert outcome.code in (0, 1, 2, 3, 4), (outcome.code, outcome.err, flipped.hex())


def test_nested_10000_deep(refusal):
    graph = b""
    for _ in range(10_000):
        graph = field(1, field(5, field(6, graph)))
    refusal.check(refusal.run(raw_model(graph)), {2, 4})
    refusal.check(refusal.inspect(raw_model(graph)), {2, 4})


@pytest.mark.parametrize("number", [1 << 31, 1 << 32, 1 << 62, (1 << 64) - 1])
def test_length_prefix(refusal, number):
    for key in (7, 8, 25):
        refusal.refuse(varint(key << 3 | 2) + varint(number) + b"abc", {2})
    raw_data = varint(9 << 3 | 2) + varint(number) + b"abc"
    refusal.refuse(raw_model(field(5, field(1, 4) + field(2, 1) + field(8, "w") + raw_data)), {2})


def test_varint_without_end(refusal):
    refusal.refuse(b"\x08" + b"\xff" * 20, {2})
    refusal.refuse(b"\xff" * 64, {2})


def test_million_empty_nodes(refusal):
    refusal.check(refusal.run(raw_model(b"\x0a\x00" * 1_000_000), timeout=60 * refusal.slow), {2, 4}, peak_mb=1200)


def nested_if(depth):
    graph = raw_node("Relu", ["x"], ["r0"]) + field(12, field(1, "r0"))
    for level in range(depth):
        branches = raw_subgraph("then_branch", graph) + raw_subgraph("else_branch", field(12, field(1, "x")))
        graph = raw_node("If", ["c"], [f"r{level + 1}"], branches) + field(12, field(1, f"r{level + 1}"))
    return graph


def nested_loop(depth):
    graph = raw_node("Relu", ["x"], ["r0"]) + field(12, field(1, "c")) + field(12, field(1, "r0"))
    for level in range(depth):
        graph = (raw_node("Loop", ["", "c"], [f"r{level + 1}"], raw_subgraph("body", graph)) +
                 field(12, field(1, "c")) + field(12, field(1, f"r{level + 1}")))
    return graph


@pytest.mark.parametrize("make", [nested_if, nested_loop])
def test_control_flow_nested_1000_deep(refusal, make):
    refusal.check(refusal.run(raw_model(make(1000))), {2, 4})


@pytest.mark.parametrize("place", ["missing", "folder", "fifo", "/dev/zero", "/dev/null"])
def test_what_is_no_file(refusal, tmp_path, place):
    path = tmp_path / place
    if place == "folder":
        path.mkdir()
    if place == "fifo":
        os.mkfifo(path)
    refusal.check(refusal.run(path, X), {2, 8})


@pytest.mark.usefixtures("backend")
def test_collected_bad_models(refusal, root):
    folder = pathlib.Path(os.environ.get("AGLOW_BAD_MODELS", root.parent / "shared" / "bad-models"))
    if not folder.is_dir():
        pytest.skip("no collection of bad models beside the checkout")
    wrong = []
    for entry in json.loads((folder / "manifest.json").read_text()):
        codes = {"reject": {2, 3}, "load": {0}, "either": {0, 2, 3}}[entry["expected"]]
        outcome = refusal.aglow("compile", folder / entry["file"], "-o", refusal.out, timeout=30 * refusal.slow,
                                memory_mb=2048)
        left = list(refusal.out.rglob("*.ir*")) if outcome.code else []
        shutil.rmtree(refusal.out, ignore_errors=True)
        if outcome.code not in codes or left:
            wrong.append((entry["file"], entry["defect"], outcome.code, outcome.err[:200]))
    assert wrong == []
