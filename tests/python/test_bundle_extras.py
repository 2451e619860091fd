"""Around bundles: programs of their own, new weights for old code, weights behind links, macros of shapes."""
import json
import os

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from bundle_models import MODELS
from bundles import HERE_MACHINES, STRICT, Bundle, Machine, check, run
from test_c_source import Source

NATIVE = Machine("native", [])


def saved_inputs(bundle, inputs=None):
    words = []
    for name, value in (inputs or bundle.inputs).items():
        np.save(bundle.folder / f"{name}.npy", value)
        words.append(f"{name}={bundle.folder / name}.npy")
    return words


# ---- --emit exe

def test_a_program_reads_and_writes_arrays(program, tmp_path):
    bundle = Bundle(program, tmp_path, "convnet", NATIVE)
    check(program, "compile", bundle.path, "-o", tmp_path / "exe", "--emit", "exe")
    assert [path.name for path in (tmp_path / "exe").iterdir()] == ["convnet"]
    check(tmp_path / "exe" / "convnet", "-o", tmp_path / "answer", *saved_inputs(bundle))
    bundle.compare(np.load(tmp_path / "answer" / "0.npy").tobytes())
    # By order, and as `aglow run` takes them.
    check(tmp_path / "exe" / "convnet", "--input", tmp_path / "x.npy", "--output-dir", tmp_path / "again")
    assert (tmp_path / "again" / "0.npy").read_bytes() == (tmp_path / "answer" / "0.npy").read_bytes()
    assert "f32[1,3,13,11]" in check(tmp_path / "exe" / "convnet", "--help")


def test_a_program_takes_the_entry_that_fits(program, tmp_path):
    bundle = Bundle(program, tmp_path, "mlp", NATIVE)
    check(program, "compile", bundle.path, "-o", tmp_path / "exe", "--emit", "exe", "--batch", "1,4")
    inputs = MODELS["mlp"](4)[1]
    check(tmp_path / "exe" / "mlp", "-o", tmp_path / "answer", *saved_inputs(bundle, inputs))
    bundle.compare(np.load(tmp_path / "answer" / "0.npy").tobytes(), inputs)


@pytest.mark.parametrize("value,words,code", [
    (np.zeros((1, 3, 13, 12), np.float32), "has another shape", 2), (np.zeros((1, 3, 13, 11)), "another kind", 2),
    (np.asfortranarray(np.zeros((1, 3, 13, 11), np.float32)), "Fortran order", 2), (None, "No such file", 8)])
def test_a_program_says_what_is_wrong(program, tmp_path, value, words, code):
    bundle = Bundle(program, tmp_path, "convnet", NATIVE)
    check(program, "compile", bundle.path, "-o", tmp_path / "exe", "--emit", "exe")
    if value is not None:
        np.save(tmp_path / "bad.npy", value)
    done = run(tmp_path / "exe" / "convnet", "-o", tmp_path / "answer", tmp_path / "bad.npy")
    assert done.returncode == code and words in done.stderr, done
    assert not (tmp_path / "answer").exists()


# ---- pack-weights

def retrained(path, to, seed=5):
    """The same model with other weights."""
    model = onnx.load(path)
    random = np.random.default_rng(seed)
    for tensor in model.graph.initializer:
        value = numpy_helper.to_array(tensor)
        if value.dtype == np.float32:
            tensor.CopyFrom(numpy_helper.from_array((value + random.normal(size=value.shape) / 20).astype(np.float32), tensor.name))
    onnx.save(model, to)


@pytest.mark.parametrize("kind,machine", [(Bundle, HERE_MACHINES[0]), (Bundle, NATIVE), (Source, NATIVE)],
                         ids=["sse2", "native", "c"])
@pytest.mark.parametrize("name", ["convnet", "mlp"])
def test_old_code_takes_new_weights(program, tmp_path, name, kind, machine):
    bundle = kind(program, tmp_path, name, machine)
    bundle.link()
    before = bundle.run()[1]
    retrained(bundle.path, tmp_path / "retrained.onnx")
    check(program, "pack-weights", tmp_path / "retrained.onnx", "--for", tmp_path / "out" / name)
    bundle.path = tmp_path / "retrained.onnx"
    said, got = bundle.run()
    assert said["check"] == 0 and got != before
    bundle.compare(got)


def test_weights_of_another_shape_are_refused(program, tmp_path):
    bundle = Bundle(program, tmp_path, "mlp", NATIVE)
    weights = (tmp_path / "out" / "mlp.weights.bin").read_bytes()
    onnx.save(MODELS["convnet"]()[0], tmp_path / "convnet.onnx")
    done = run(program, "pack-weights", tmp_path / "convnet.onnx", "--for", tmp_path / "out" / "mlp")
    assert done.returncode != 0
    model = onnx.load(bundle.path)
    model.graph.node.append(onnx.helper.make_node("Neg", [model.graph.output[0].name], ["negative"]))
    model.graph.output[0].name = "negative"
    onnx.save(model, tmp_path / "other.onnx")
    done = run(program, "pack-weights", tmp_path / "other.onnx", "--for", tmp_path / "out" / "mlp")
    assert done.returncode == 3 and "other code would come out" in done.stderr
    assert (tmp_path / "out" / "mlp.weights.bin").read_bytes() == weights


def test_numbers_inside_of_code_cannot_be_exchanged(program, tmp_path):
    """A single number, as of a scale, stands in the code itself."""
    def model(factor):
        x = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [4])
        y = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [4])
        graph = onnx.helper.make_graph([onnx.helper.make_node("Mul", ["x", "c"], ["y"])], "g", [x], [y],
                                       [numpy_helper.from_array(np.float32(factor), "c")])
        return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model(3), tmp_path / "scale.onnx")
    onnx.save(model(4), tmp_path / "other.onnx")
    check(program, "compile", tmp_path / "scale.onnx", "-o", tmp_path / "out", "--emit", "bundle")
    assert run(program, "pack-weights", tmp_path / "scale.onnx", "--for", tmp_path / "out" / "scale").returncode == 0
    assert run(program, "pack-weights", tmp_path / "other.onnx", "--for", tmp_path / "out" / "scale").returncode == 3


def test_pack_weights_knows_how_the_bundle_was_compiled(program, tmp_path):
    bundle = Bundle(program, tmp_path, "mlp", Machine("sse2", ["--target", "x86_64-linux-gnu"]))
    bundle.compile("out", ["--disable", "fuse", "--opt-size"], ["--batch", "1,4"])
    done = json.loads(check(program, "pack-weights", bundle.path, "--for", tmp_path / "out" / "mlp.h", "-o", tmp_path / "new",
                            "--json"))
    assert [file["path"] for file in done["files"]] == [str(tmp_path / "new" / "mlp.weights.bin")]
    assert (tmp_path / "new" / "mlp.weights.bin").read_bytes() == (tmp_path / "out" / "mlp.weights.bin").read_bytes()


def test_what_is_no_bundle_is_told(program, tmp_path):
    bundle = Bundle(program, tmp_path, "mlp", NATIVE)
    (tmp_path / "other.h").write_text("#define NOTHING 1\n")
    done = run(program, "pack-weights", bundle.path, "--for", tmp_path / "other")
    assert done.returncode == 1 and "not the header of a bundle" in done.stderr


# ---- --follow-links

def linked_model(folder, link):
    """As the cache of a hub has it: the model and its weights are links to blobs elsewhere."""
    model, inputs = MODELS["convnet"]()
    blobs = folder / "blobs"
    blobs.mkdir()
    onnx.save(model, blobs / "model.onnx", save_as_external_data=True, location="weights", size_threshold=0)
    (blobs / "weights").rename(blobs / "b2")
    snapshot = folder / "snapshot"
    snapshot.mkdir()
    (snapshot / "model.onnx").write_bytes((blobs / "model.onnx").read_bytes())
    link(blobs / "b2", snapshot / "weights")
    np.save(folder / "x.npy", inputs["x"])
    return snapshot / "model.onnx"


@pytest.mark.parametrize("link", [lambda to, at: at.symlink_to(to), lambda to, at: os.link(to, at)], ids=["symbolic", "hard"])
def test_links_are_followed_on_request_alone(program, tmp_path, link):
    path = linked_model(tmp_path, link)
    words = [program, "run", path, "--input", f"x={tmp_path / 'x.npy'}", "--output-dir", tmp_path / "out"]
    done = run(*words)
    assert done.returncode == 2 and "--follow-links" in done.stderr
    check(*words, "--follow-links")
    assert np.load(tmp_path / "out" / "0.npy").shape == (1, 7)
    for command in (["inspect"], ["compile", "-o", tmp_path / "bundle", "--emit", "bundle"]):
        check(program, *command[:1], path, *command[1:], "--follow-links")


def test_links_lead_to_regular_files_only(program, tmp_path):
    path = linked_model(tmp_path, lambda to, at: at.symlink_to("/dev/zero"))
    done = run(program, "inspect", path, "--memory", "--follow-links", timeout=60)
    assert done.returncode == 2 and "not a regular file" in done.stderr


# ---- the header

def test_shapes_are_macros(program, tmp_path):
    Bundle(program, tmp_path, "convnet", NATIVE)
    (tmp_path / "user.c").write_text(
        '#include "convnet.h"\nstatic const int shape[CONVNET_X_RANK] = CONVNET_X_SHAPE;\n'
        "int main(void) {\n  return shape[2] != CONVNET_X_DIM2 || CONVNET_X_DIM2 != 13 || CONVNET_Y_RANK != 2;\n}\n")
    check("cc", "-std=c99", *STRICT, f"-I{tmp_path / 'out'}", tmp_path / "user.c", "-o", tmp_path / "user")
    check(tmp_path / "user")
