"""The digits example as an ONNX model after every phase: valid, and with the results of the model it came from."""
import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

PHASES = ["import", "optimize", "lower", "optimize-core", "layout", "schedule"]


@pytest.fixture
def digits(root):
    return root / "examples" / "digits"


def results(aglow, model, image, folder, *options):
    run = aglow("run", model, "--input", f"image={image}", "--output-dir", folder, "--backend", "interpreter", *options)
    assert run.code == 0, run.err
    return np.load(folder / "0.npy")


def exported(aglow, model, folder, *options):
    made = aglow("compile", model, "-o", folder, "--emit", "onnx", "--backend", "interpreter", *options)
    assert made.code == 0, made.err
    return folder / f"{model.stem}.onnx"


# The interpreter has a phase of layouts only where lanes ask for it.
@pytest.mark.parametrize("phase,lanes", [(p, lanes) for p in PHASES for lanes in (0, 4) if p != "layout" or lanes])
def test_every_phase_runs_the_same(aglow, digits, tmp_path, phase, lanes):
    image = digits / "images" / "3.npy"
    file = exported(aglow, digits / "digits.onnx", tmp_path / "out", "--stop-after", phase, "--lanes", str(lanes))
    model = onnx.load(file)
    domains = {node.domain for node in model.graph.node}
    assert domains <= {"", "ai.aglow"}
    onnx.checker.check_model(model, full_check="ai.aglow" not in domains)
    expected = results(aglow, digits / "digits.onnx", image, tmp_path / "expected", "--lanes", str(lanes))
    got = results(aglow, file, image, tmp_path / "again", "--lanes", str(lanes))
    np.testing.assert_array_equal(got, expected)
    assert [i.name for i in model.graph.input] == ["image"]
    if "ai.aglow" not in domains:
        [other] = ReferenceEvaluator(model).run(None, {"image": np.load(image)})
        np.testing.assert_allclose(other, expected, rtol=1e-4, atol=1e-6)


def test_operators_for_another_machine_are_refused(aglow, digits, tmp_path):
    file = exported(aglow, digits / "digits.onnx", tmp_path, "--stop-after", "layout", "--lanes", "3")
    refused = aglow("run", file, "--input", f"image={digits / 'images' / '3.npy'}", "--backend", "cpu")
    assert refused.code == 3 and "BlockedConv" in refused.err, refused.err


def test_phases_before_layout_are_standard(aglow, digits, tmp_path):
    for phase in ("import", "optimize", "lower", "optimize-core"):
        model = onnx.load(exported(aglow, digits / "digits.onnx", tmp_path / phase, "--stop-after", phase))
        assert {node.domain for node in model.graph.node} == {""}, phase


def test_external_data(aglow, digits, tmp_path):
    image = digits / "images" / "7.npy"
    file = exported(aglow, digits / "digits.onnx", tmp_path / "out", "--stop-after", "import", "--external-data")
    assert (tmp_path / "out" / "digits.onnx.data").stat().st_size > 1024
    onnx.checker.check_model(str(file))
    expected = results(aglow, digits / "digits.onnx", image, tmp_path / "expected")
    np.testing.assert_array_equal(results(aglow, file, image, tmp_path / "again"), expected)


def test_the_same_model_gives_the_same_bytes(aglow, digits, tmp_path):
    files = [exported(aglow, digits / "digits.onnx", tmp_path / name) for name in ("a", "b")]
    assert files[0].read_bytes() == files[1].read_bytes()


def test_a_model_is_not_for_the_screen(aglow, digits):
    refused = aglow("compile", digits / "digits.onnx", "--emit", "onnx")
    assert refused.code == 1
    assert "-o DIR" in refused.err


def test_instructions_have_no_graph(aglow, digits, tmp_path):
    made = aglow("compile", digits / "digits.onnx", "-o", tmp_path, "--emit", "ir")
    assert made.code == 0, made.err
    refused = aglow("compile", tmp_path / "digits.ir", "-o", tmp_path, "--emit", "onnx")
    assert refused.code == 1 and "there is no graph to write" in refused.err
