"""aglow train: what it prints and writes, and that nothing it can meet leaves half a file."""
import json
import os
import signal
import subprocess
import time

import numpy as np
import onnx
import pytest

import training_models as training
from onnx import numpy_helper


@pytest.fixture
def folder(tmp_path):
    onnx.save(training.classifier(), tmp_path / "m.onnx")
    x, labels = training.clusters()
    np.savez(tmp_path / "data.npz", x=x, target=labels)
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "y.npy", labels.astype(np.int32))
    return tmp_path


@pytest.fixture
def train(aglow, folder, monkeypatch):
    """Runs the command, on the interpreter unless the test is for each backend."""
    if "AGLOW_BACKEND" not in os.environ:
        monkeypatch.setenv("AGLOW_BACKEND", "interpreter")

    def call(*arguments, **limits):
        return aglow("train", "m.onnx", *arguments, cwd=folder, **limits)

    return call


def weights(path):
    return {t.name: numpy_helper.to_array(t) for t in onnx.load(path).graph.initializer}


def test_prints_epochs_and_writes_the_model(backend, train, folder):
    outcome = train("--data", "x=x.npy", "--data", "target=y.npy", "--validation", "data.npz", "--epochs", "3",
                    "--rate", "0.02", "--batch", "16", "-o", "out.onnx")
    assert outcome.code == 0 and outcome.err == "", outcome.err
    lines = outcome.out.splitlines()
    assert [line.split(":")[0] for line in lines] == ["epoch 1/3", "epoch 2/3", "epoch 3/3"]
    assert all("validation loss" in line and "accuracy" in line for line in lines)
    onnx.checker.check_model(onnx.load(folder / "out.onnx"), full_check=True)
    before, after = weights(folder / "m.onnx"), weights(folder / "out.onnx")
    assert all(not np.array_equal(before[name], after[name]) for name in before)


def test_a_bar_on_a_screen(program, folder):
    """Lines go to stdout as always; the bar is on the screen alone, and is gone in the end."""
    screen, end = os.openpty()
    done = subprocess.run([str(program), "train", "m.onnx", "--data", "data.npz", "--epochs", "2", "--batch", "16"],
                          cwd=folder, stdout=subprocess.PIPE, stderr=end, text=True, timeout=60)
    os.close(end)
    shown = os.read(screen, 1 << 16).decode()
    os.close(screen)
    assert done.returncode == 0 and len(done.stdout.splitlines()) == 2
    assert "epoch 2/2 [====" in shown and "6/6 loss" in shown and "samples/s" in shown and shown.endswith("\r\x1b[K")


def test_json_is_one_document(train):
    outcome = train("--data", "data.npz", "--epochs", "2", "--json")
    report = json.loads(outcome.out)
    assert report["epochs"] == 2 and len(report["history"]) == 2 and report["history"][1]["loss"] > 0


def test_memory_and_precision(backend, train):
    outcome = train("--data", "data.npz", "--recompute", "1K")
    assert outcome.code == 4 and "[E401]" in outcome.err and "1024 were asked for" in outcome.err, outcome.err
    lines = [train("--data", "data.npz", *options).out for options in ([], ["--recompute", "1M"], ["--precision", "bf16"])]
    assert lines[0] == lines[1] and lines[2].startswith("epoch 1/1: loss ")
    outcome = train("--data", "data.npz", "--precision", "int4-weights")
    assert outcome.code == 1 and "a model is trained in float or bf16" in outcome.err


def test_quiet_says_nothing(train):
    outcome = train("--data", "data.npz", "-q")
    assert (outcome.code, outcome.out, outcome.err) == (0, "", "")


@pytest.mark.parametrize("arguments, code, says", [
    (["--data", "data.npz", "--loss", "softmax"], 1, "no loss 'softmax'"),
    (["--data", "data.npz", "--train", "last.wieght"], 1, "did you mean 'last.weight'?"),
    (["--data", "data.npz", "--initialize", "last.weight"], 1, "not of the form NAME=INITIALIZER"),
    (["--data", "data.npz", "--initialize", "last.weight=xavir"], 1, "did you mean 'xavier'?"),
    (["--data", "data.npz", "--initialize", "last.weight=missing.npy"], 8, "missing.npy"),
    (["--data", "data.npz", "--initialize", "last.bias=y.npy"], 1, "last.bias"),
    (["--data", "data.npz", "--sample-axis", "x=one"], 1, "expected the number of an axis"),
    (["--data", "data.npz", "--sample-axis", "x=3"], 1, "cannot lie along axis 3"),
    (["--data", "data.npz", "--setting", "decay=x"], 1, "expected a number"),
    (["--data", "data.npz", "--schedule", "cosin"], 1, "is not a schedule"),
    (["--data", "x=x.npy"], 1, "--data names no targets"),
    (["--data", "z=x.npy", "--data", "target=y.npy"], 1, "no input 'z'"),
    (["--data", "x=y.npy", "--data", "target=y.npy"], 1, "x"),
    (["--data", "missing.npz"], 8, "missing.npz"),
    (["--data", "data.npz", "--resume"], 1, "needs the checkpoint"),
    (["--data", "data.npz", "--precision", "int8-weights"], 1, "in float or bf16"),
    (["--data", "data.npz", "-o", "missing/out.onnx"], 8, "missing"),
    ([], 1, "nothing to learn from"),
])
def test_wrong_uses(train, folder, arguments, code, says):
    before = set(os.listdir(folder))
    outcome = train(*arguments)
    assert outcome.code == code and says in outcome.err, outcome.err
    assert set(os.listdir(folder)) - {"cwd"} == before - {"cwd"}


def test_labels_out_of_range(train, folder):
    np.save(folder / "bad.npy", np.where(np.arange(96) == 5, 7, np.load(folder / "y.npy")))
    outcome = train("--data", "x=x.npy", "--data", "target=bad.npy", "-o", "out.onnx")
    assert outcome.code == 1 and "label 7 of sample 5 is out of range: expected 0 to 2" in outcome.err, outcome.err
    assert not (folder / "out.onnx").exists()


@pytest.mark.parametrize("rows, says", [(np.nan, "input 'x' holds NaN"), (np.inf, "input 'x' holds infinity"),
                                        (3e38, "'Gemm_node' (MatMul) made the first infinity of finite values")])
def test_losses_that_are_not_finite(backend, train, folder, rows, says):
    """The program ends with the operator that made the first such number, and writes no model."""
    x = np.load(folder / "x.npy")
    x[50] = rows
    np.save(folder / "x.npy", x)
    outcome = train("--data", "x=x.npy", "--data", "target=y.npy", "--in-order", "--batch", "16", "-o", "out.onnx")
    assert outcome.code == 2 and "in step 4 of epoch 1: " in outcome.err and says in outcome.err, outcome.err
    assert not (folder / "out.onnx").exists()


def test_checkpoints_that_do_not_fit(train, folder):
    """Those of other settings or of another model, and damaged ones: refused, and left as they are."""
    assert train("--data", "data.npz", "--checkpoint", "run.ckpt", "-q").code == 0
    good = (folder / "run.ckpt").read_bytes()

    def refused(code, says, *more):
        before = (folder / "run.ckpt").read_bytes()
        outcome = train("--data", "data.npz", "--checkpoint", "run.ckpt", "--resume", "-o", "out.onnx", *more)
        assert outcome.code == code and says in outcome.err and "run.ckpt" in outcome.err, outcome.err
        assert (folder / "run.ckpt").read_bytes() == before and not (folder / "out.onnx").exists()

    refused(1, "optimizer sgd", "--optimizer", "sgd")
    refused(1, "another model", "--train", "last.*")
    onnx.save(training.classifier(hidden=8), folder / "m.onnx")
    refused(1, "another model")
    onnx.save(training.classifier(), folder / "m.onnx")
    for size in (0, 40, len(good) // 2, len(good) - 1):
        (folder / "run.ckpt").write_bytes(good[:size])
        refused(2, "checkpoint")
    (folder / "run.ckpt").write_bytes(good[:-30] + b"x" + good[-29:])
    refused(2, "checkpoint")
    (folder / "run.ckpt").write_bytes(good)
    assert train("--data", "data.npz", "--checkpoint", "run.ckpt", "--resume", "-o", "out.onnx").code == 0


def test_a_full_disk_leaves_the_last_checkpoint(program, train, folder):
    """Files of more than a block cannot be written: what was there is there, and nothing else."""
    options = ["--data", "data.npz", "--checkpoint", "run.ckpt", "-o", "out.onnx"]
    assert train(*options).code == 0
    before = {name: (folder / name).read_bytes() for name in ("run.ckpt", "out.onnx")}
    files = set(os.listdir(folder))
    done = subprocess.run(["sh", "-c", 'ulimit -f 1; exec "$@"', "sh", str(program), "train", "m.onnx", *options],
                          cwd=folder, capture_output=True, text=True, timeout=60)
    assert done.returncode == 8 and "run.ckpt" in done.stderr, done.stderr
    assert {name: (folder / name).read_bytes() for name in before} == before
    assert set(os.listdir(folder)) == files


def test_a_training_that_is_killed_again_and_again_ends_with_the_same_weights(program, train, folder):
    """kill -9 at any time leaves the last good checkpoint, from which the training goes on."""
    options = ["--data", "data.npz", "--epochs", "60", "--batch", "8", "--checkpoint-every", "1",
               "--backend", "interpreter"]
    outcome = train(*options, "--checkpoint", "whole.ckpt", "-o", "whole.onnx")
    assert outcome.code == 0, outcome.err
    command = [str(program), "train", "m.onnx", *options, "--checkpoint", "run.ckpt", "--resume", "-o",
               "run.onnx", "-q"]
    rng = np.random.default_rng(0)
    killed = 0
    for _ in range(200):
        if killed == 8:
            break
        started = time.monotonic()
        child = subprocess.Popen(command, cwd=folder)
        # Somewhere behind the first checkpoints of this run.
        seen = (folder / "run.ckpt").stat().st_mtime_ns if (folder / "run.ckpt").exists() else 0
        while child.poll() is None and time.monotonic() - started < 20:
            if (folder / "run.ckpt").exists() and (folder / "run.ckpt").stat().st_mtime_ns != seen:
                break
            time.sleep(0.001)
        time.sleep(rng.random() * 0.02)
        if child.poll() is None:
            child.send_signal(signal.SIGKILL)
            killed += 1
        child.wait()
        if child.returncode == 0:
            break
    assert killed > 0
    outcome = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60)
    assert outcome.returncode == 0, outcome.stderr
    for name, value in weights(folder / "whole.onnx").items():
        np.testing.assert_array_equal(value, weights(folder / "run.onnx")[name])
    assert (folder / "run.ckpt").read_bytes() == (folder / "whole.ckpt").read_bytes()


def test_first_values(backend, train, folder):
    """Two trainings of nothing: what begins is what ends."""
    for seed in "0", "1":
        outcome = train("--data", "data.npz", "--initialize", "last.*=he:gain=0.5", "--initialize",
                        "first.weight=constant:value=2", "--rate", "0", "--seed", seed, "-o", f"{seed}.onnx")
        assert outcome.code == 0, outcome.err
    before, one, other = (weights(folder / name) for name in ("m.onnx", "0.onnx", "1.onnx"))
    np.testing.assert_array_equal(one["first.weight"], np.full((4, 16), 2, "f4"))
    assert np.ptp(one["last.weight"]) > 0.1 and not np.array_equal(one["last.weight"], other["last.weight"])
    np.testing.assert_array_equal(one["last.bias"], before["last.bias"])


def test_samples_along_another_axis(aglow, folder):
    """A text form that other functions share has its samples where they are."""
    text = ("module {\n state @w : f32[4] = [1, 1, 1, 1]\n placeholder @x : f32[4,8]\n placeholder @y : f32[4,8]\n"
            " placeholder @z : f32[4,8]\n func @main {\n %t = Transpose(@x) {perm = [1, 0]}\n %m = Mul(%t, @w)\n"
            " %y = Transpose(%m) {perm = [1, 0]}\n Save(%y, @y)\n }\n")
    (folder / "turned.graph").write_text(text + "}\n")
    (folder / "shared.graph").write_text(text + " func @other {\n %z = Neg(@x)\n Save(%z, @z)\n }\n}\n")
    np.save(folder / "t.npy", 3 * np.load(folder / "x.npy"))

    def run(name):
        return aglow("train", name, "--function", "main", "--data", "x=x.npy", "--data", "target=t.npy", "--loss",
                     "squared-error", "--epochs", "40", "--batch", "8", "--rate", "0.1", "--sample-axis", "x=1",
                     "--sample-axis", "y=1", "-o", "out.onnx", cwd=folder)

    outcome = run("turned.graph")
    assert outcome.code == 0, outcome.err
    np.testing.assert_allclose(weights(folder / "out.onnx")["w"], np.full(4, 3), rtol=0.05)
    refused = run("shared.graph")
    assert refused.code == 1 and "function 'other' uses 'x' too" in refused.err, refused.err


def test_inputs_that_are_the_same_for_all_samples(aglow, folder):
    """Of a model, and of a text form."""
    scaled = "func @main {\n %y = Mul(@x, @factor)\n %z = Mul(%y, @w)\n Save(%z, @z)\n }"
    (folder / "scaled.graph").write_text("module {\n state @w : f32[4] = [1, 1, 1, 1]\n placeholder @x : f32[8,4]\n"
                                         f" placeholder @factor : f32[4]\n placeholder @z : f32[8,4]\n {scaled}\n}}\n")
    np.save(folder / "factor.npy", np.full(4, 2, "f4"))
    x = np.load(folder / "x.npy")
    np.save(folder / "t.npy", 6 * x)
    outcome = aglow("train", "scaled.graph", "--data", "x=x.npy", "--data", "target=t.npy", "--input",
                    "factor=factor.npy", "--loss", "squared-error", "--epochs", "40", "--batch", "8", "--rate",
                    "0.1", "-o", "out.onnx", cwd=folder)
    assert outcome.code == 0, outcome.err
    np.testing.assert_allclose(weights(folder / "out.onnx")["w"], np.full(4, 3), rtol=0.05)


def test_a_module_begins_with_the_weights_in_the_end(train, aglow, folder):
    """What it predicts is what the model does that is written beside it."""
    outcome = train("--data", "data.npz", "--epochs", "2", "--batch", "8", "--rate", "0.05", "--module", "steps.graph",
                    "-o", "out.onnx")
    assert outcome.code == 0, outcome.err
    np.save(folder / "eight.npy", np.load(folder / "x.npy")[:8])
    outputs = []
    for number, model in enumerate((["steps.graph", "--function", "main"], ["out.onnx"], ["m.onnx"])):
        outcome = aglow("run", *model, "--input", "x=eight.npy", "--output-dir", f"{number}", "--backend",
                        "interpreter", cwd=folder)
        assert outcome.code == 0, outcome.err
        outputs.append(np.load(next((folder / f"{number}").glob("*.npy"))))
    np.testing.assert_allclose(outputs[0], outputs[1], rtol=1e-5, atol=1e-6)
    assert np.abs(outputs[0] - outputs[2]).max() > 0.01


def test_a_module_becomes_a_bundle_that_trains(train, aglow, folder):
    assert train("--module", "steps.graph", "--batch", "8", "--optimizer", "sgd").code == 0
    outcome = aglow("compile", "steps.graph", "--emit", "bundle", "-o", "out", cwd=folder)
    assert outcome.code == 0, outcome.err
    header = (folder / "out" / "steps.h").read_text()
    assert all(f"steps_{name}" in header for name in ("main", "evaluate", "train")), header
