"""Outputs are the same bytes for any number of threads, and for several runs at once (conformance/run_bits.py)."""
import pathlib
import sys

import numpy as np
import pytest

import module_models as models

pytest.importorskip("aglow", reason="the module is not built: ./dev test builds it")
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests" / "conformance"))

import run_bits  # noqa: E402


def conv(random, taken, given, channels, out, size):
    weights = {f"{given}.w": random.normal(size=(out, channels, size, size)).astype(np.float32) * 0.1}
    return [models.node("Conv", f"{taken} {given}.w", f"{given}.c", pads=[size // 2] * 4),
            models.node("Relu", f"{given}.c", given)], weights


def inception():
    """Four branches that are joined, twice; the first is large enough for several threads, others are not."""
    random = np.random.default_rng(3)
    nodes, weights, taken, channels = [], {}, "x", 16

    def add(made):
        nodes.extend(made[0])
        weights.update(made[1])

    for block in ("a", "b"):
        add(conv(random, taken, f"{block}1", channels, 24, 1))
        add(conv(random, taken, f"{block}2r", channels, 16, 1))
        add(conv(random, f"{block}2r", f"{block}2", 16, 32, 3))
        add(conv(random, taken, f"{block}3r", channels, 8, 1))
        add(conv(random, f"{block}3r", f"{block}3", 8, 16, 5))
        nodes.append(models.node("MaxPool", taken, f"{block}4p", kernel_shape=[3, 3], pads=[1] * 4))
        add(conv(random, f"{block}4p", f"{block}4", channels, 16, 1))
        nodes.append(models.node("Concat", f"{block}1 {block}2 {block}3 {block}4", block, axis=1))
        taken, channels = block, 88
    nodes += [models.node("Softmax", "b", "y", axis=1), models.node("ReduceSum", "b", "z", keepdims=0)]
    proto = models.model(nodes, [models.value("x", [1, 16, 28, 28])], [models.value("y"), models.value("z")], weights)
    return proto, [{"x": random.normal(size=(1, 16, 28, 28)).astype(np.float32)}]


def both_directions():
    random = np.random.default_rng(4)
    weights = {name: random.normal(size=shape).astype(np.float32) * 0.2
               for name, shape in {"w": (2, 256, 40), "r": (2, 256, 64), "b": (2, 512)}.items()}
    proto = models.model([models.node("LSTM", "x w r b", "y h c", hidden_size=64, direction="bidirectional")],
                         [models.value("x", [12, 3, 40])], [models.value(name) for name in "yhc"], weights)
    return proto, [{"x": random.normal(size=(12, 3, 40)).astype(np.float32)}]


def sorts():
    random = np.random.default_rng(5)
    nodes = [models.node("TopK", "x k", "v i", axis=1), models.node("CumSum", "x one", "s"),
             models.node("LogSoftmax", "x", "l"), models.node("ReduceL2", "x", "n", keepdims=0)]
    proto = models.model(nodes, [models.value("x", [64, 500])], [models.value(name) for name in "visln" if name != "i"],
                         {"k": np.array([20]), "one": np.array(1)})
    return proto, [{"x": random.normal(size=(64, 500)).astype(np.float32)}]


@pytest.mark.parametrize("made", [inception, both_directions, sorts])
def test_small_models(made):
    bad, runs = run_bits.differences(made())
    assert not bad and runs == 45


def test_models_of_the_tree():
    for path in (ROOT / "examples" / "digits" / "digits.onnx", ROOT / "docs" / "tour" / "conv.onnx"):
        bad, runs = run_bits.differences(path, sets=2)
        assert not bad and runs == 50


def test_what_differs_is_found(monkeypatch):
    """A comparison that cannot fail would show nothing."""
    calls = iter(range(1000))
    kept = run_bits.flat
    monkeypatch.setattr(run_bits, "flat", lambda value: kept(value) + (b"!" if next(calls) == 7 else b""))
    bad, _ = run_bits.differences((models.affine(), [{"x": np.ones((2, 3), np.float32)}]), threads=(1, 2))
    assert bad == ["1 threads, 8 runs at once: output 'y' differs"]
