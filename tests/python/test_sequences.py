"""Recurrent layers leave out what sequences that have ended would compute, and nothing else changes."""
import numpy as np
import pytest
from onnx import TensorProto, helper

import module_models as models

aglow = pytest.importorskip("aglow", reason="the module is not built: ./dev test builds it")

STEPS, WIDTH, HIDDEN = 9, 20, 24
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
LENGTHS = [STEPS, 1, 4, 0, STEPS, 2, 7, 3, 1, 5, 8, 0, 6]


def layer(cell, batch, lengths, direction, **attributes):
    """The layer compiled, and its inputs. Without lengths all sequences are whole."""
    random = np.random.default_rng(7)
    directions, rows = (2 if direction == "bidirectional" else 1), GATES[cell] * HIDDEN
    shapes = {"w": (directions, rows, WIDTH), "r": (directions, rows, HIDDEN), "b": (directions, 2 * rows)}
    weights = {name: random.normal(size=shape).astype(np.float32) * 0.3 for name, shape in shapes.items()}
    values = {"x": random.normal(size=(STEPS, batch, WIDTH)), "h": random.normal(size=(directions, batch, HIDDEN))}
    inputs = {name: value.astype(np.float32) for name, value in values.items()}
    taken = [models.value(name, list(value.shape)) for name, value in inputs.items()]
    if lengths is not None:
        inputs["n"] = np.array(lengths, np.int32)
        taken.append(models.value("n", [batch], TensorProto.INT32))
    given = "y yh yc" if cell == "LSTM" else "y yh"
    given = given.split()
    node = helper.make_node(cell, ["x", "w", "r", "b", "n" if lengths is not None else "", "h"], given,
                            hidden_size=HIDDEN, direction=direction, **attributes)
    return models.model([node], taken, [models.value(name) for name in given], weights), inputs


def run(made, **options):
    proto, inputs = made
    return aglow.compile(proto, **options).run(inputs)


@pytest.mark.parametrize("cell, batch, attributes", [
    ("RNN", 13, {}), ("GRU", 13, {}), ("GRU", 13, {"linear_before_reset": 1}), ("LSTM", 13, {}), ("LSTM", 1, {})])
def test_ended_sequences_change_nothing(cell, batch, attributes, tmp_path):
    lengths = [4] if batch == 1 else LENGTHS[:batch]
    whole = run(layer(cell, batch, None, "forward", **attributes), threads=1, cache=tmp_path)
    for threads in (1, 3):
        some = run(layer(cell, batch, lengths, "forward", **attributes), threads=threads, cache=tmp_path)
        for i, length in enumerate(lengths):
            assert some["y"][:length, 0, i].tobytes() == whole["y"][:length, 0, i].tobytes()
            assert not some["y"][length:, 0, i].any()
            if length > 0:
                assert some["yh"][0, i].tobytes() == whole["y"][length - 1, 0, i].tobytes()


@pytest.mark.parametrize("cell, direction", [("RNN", "reverse"), ("GRU", "bidirectional"), ("LSTM", "bidirectional")])
def test_other_directions_agree_with_the_interpreter(cell, direction):
    made = layer(cell, 13, LENGTHS, direction)
    want, got = run(made, backend="interpreter"), run(made, threads=2)
    for name, value in want.items():
        np.testing.assert_allclose(got[name], value, atol=2e-6)
