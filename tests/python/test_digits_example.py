"""The example that the demo shows: every image is recognised, and the probabilities are the reference's."""
import subprocess
import sys

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

LABELS = [0, 1, 2, 3, 4, 5, 7, 9]


@pytest.mark.parametrize("label", LABELS)
def test_probabilities(aglow, root, tmp_path, label):
    folder = root / "examples" / "digits"
    image = folder / "images" / f"{label}.npy"
    result = aglow("run", folder / "digits.onnx", "--input", f"image={image}", "--output-dir", tmp_path / "out")
    assert result.code == 0, result.err
    got = np.load(tmp_path / "out" / "0.npy")
    [expected] = ReferenceEvaluator(onnx.load(folder / "digits.onnx")).run(None, {"image": np.load(image)})
    assert got.dtype == np.float32 and got.shape == (1, 10)
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-6)
    assert got.argmax() == label


def test_show(program, root):
    shown = subprocess.run([sys.executable, root / "examples" / "digits" / "show.py", program],
                           capture_output=True, text=True, timeout=120)
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.endswith("8 of 8 digits recognised\n")
