"""The networks of the demo of training learn, and their curves are drawings."""
import sys
import xml.etree.ElementTree as xml

import numpy as np
import onnx
import pytest

from conftest import ROOT

sys.path.append(str(ROOT / "examples" / "training"))

import curves  # noqa: E402
import networks  # noqa: E402

aglow = pytest.importorskip("aglow", reason="the module is not built: ./dev test builds it")

LETTERS, LENGTH = 7, 6


def letters():
    """A text in which each letter follows from the one before it."""
    x = (np.arange(24)[:, None] * 5 + 3 * np.arange(LENGTH + 1)) % LETTERS
    return x[:, :-1], x[:, 1:]


def images():
    rng = np.random.default_rng(0)
    labels = np.arange(20) % 10
    x = 0.1 * rng.random((20, 1, 8, 8), np.float32)
    x[np.arange(20), 0, labels // 2, labels % 2 * 4] = 1
    return x, labels


@pytest.mark.parametrize("model, data, train, epochs, rate", [
    (networks.cnn(), images(), "all", 12, 5e-3), (networks.lstm(LETTERS, LENGTH, 8, 12), letters(), "all", 30, 3e-2),
    (networks.transformer(LETTERS, LENGTH, 16, 2, 1), letters(), ["all", "!*.later"], 30, 5e-3)])
def test_networks_learn(tmp_path, model, data, train, epochs, rate):
    onnx.checker.check_model(model, full_check=True)
    trainer = aglow.Trainer(model, "softmax-cross-entropy", "adamw", batch=8, clip_norm=1, train=train,
                            backend="interpreter")
    before = trainer.evaluate(*data)
    trainer.fit(*data, epochs=epochs, rate=rate, schedule="cosine,warmup=5")
    after = trainer.evaluate(*data)
    assert after.loss < 0.2 * before.loss and after.accuracy > 0.9
    trainer.export(tmp_path / "trained.onnx")
    assert aglow.compile(tmp_path / "trained.onnx", backend="interpreter")(data[0]).shape[0] == len(data[0])


def test_curves_are_drawings():
    text = curves.drawing("a < b", {"loss": [3, 2.5, float("nan"), 1], "validation loss": [3.5, 3, 2, 1.5]})
    root = xml.fromstring(text)
    lines = [element for element in root if element.tag.endswith("polyline")]
    assert len(lines) == 2 and [len(line.get("points").split()) for line in lines] == [3, 4]
    assert any(element.text == "a < b" for element in root.iter() if element.tag.endswith("text"))
    assert xml.fromstring(curves.drawing("one", {"loss": [0.0]})) is not None
