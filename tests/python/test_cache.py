"""The cache of compiled models: found again, never trusted blindly, safe with many writers and with killed ones."""
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import onnx
import pytest

from bundle_models import MODELS
from bundles import check
from onnx import TensorProto, helper


@pytest.fixture
def model(program, tmp_path):
    """model(CACHE, *OPTIONS): whether bench found the model in the cache."""
    net, inputs = MODELS["mlp"](3)
    onnx.save(net, tmp_path / "mlp.onnx")
    np.save(tmp_path / "x.npy", inputs["x"])

    def call(cache, *options, env=None):
        words = dict([("--threads", "1"), ("--dim", "batch=3"), *zip(options[::2], options[1::2])])
        if cache:
            words["--cache"] = cache
        text = check(program, "bench", tmp_path / "mlp.onnx", "--backend", "cpu", "--runs", "1", "--json",
                     *(word for pair in words.items() for word in pair), env={**os.environ, **(env or {})})
        return json.loads(text)["cached"]

    return call


def entries(folder):
    return sorted(folder.glob("*.aglow"))


def test_found_again(model, tmp_path):
    cache = tmp_path / "cache"
    assert [model(cache), model(cache)] == [False, True]
    assert len(entries(cache)) == 1 and os.stat(cache).st_mode & 0o777 == 0o700


@pytest.mark.parametrize("options", [["-O", "1"], ["--features", "-avx2"], ["--cpu", "x86-64-v3"],
                                     ["--dim", "batch=4"], ["--disable", "in-place"]], ids=" ".join)
def test_other_options_are_other_code(model, tmp_path, options):
    cache = tmp_path / "cache"
    assert [model(cache), model(cache, *options), model(cache)] == [False, False, True]
    assert len(entries(cache)) == 2


def test_threads_do_not_matter(model, tmp_path):
    cache = tmp_path / "cache"
    assert [model(cache), model(cache, "--threads", "2")] == [False, True]


def test_switched_off(model, tmp_path):
    home = {"HOME": str(tmp_path / "home"), "XDG_CACHE_HOME": "", "AGLOW_CACHE_DIR": ""}
    assert not model("off", env=home)
    assert not model(None, env={**home, "AGLOW_CACHE_DIR": "off"})
    assert not (tmp_path / "home").exists()
    assert [model(None, env=home), model(None, env=home)] == [False, True]
    assert len(entries(tmp_path / "home" / ".cache" / "aglow")) == 1
    xdg = {**home, "XDG_CACHE_HOME": str(tmp_path / "xdg")}
    assert [model(None, env=xdg), model(None, env=xdg)] == [False, True]
    mine = {**home, "AGLOW_CACHE_DIR": str(tmp_path / "mine")}
    assert [model(None, env=mine), model(None, env=mine)] == [False, True]


@pytest.mark.parametrize("harm", ["empty", "short", "flipped", "appended", "zeros", "link"])
def test_bad_entries_are_rebuilt(model, tmp_path, harm):
    cache = tmp_path / "cache"
    model(cache)
    [entry] = entries(cache)
    good = entry.read_bytes()
    bad = {"empty": b"", "short": good[:-100], "appended": good + b"x", "zeros": bytes(len(good)),
           "flipped": good[:4100] + bytes([good[4100] ^ 4]) + good[4101:], "link": good}[harm]
    entry.unlink()
    if harm == "link":
        (tmp_path / "elsewhere").write_bytes(good)
        entry.symlink_to(tmp_path / "elsewhere")
    else:
        entry.write_bytes(bad)
    assert [model(cache), model(cache)] == [False, True]
    assert entries(cache)[0].read_bytes() == good


def test_a_cache_that_cannot_be_written_is_no_fault(model, tmp_path):
    (tmp_path / "file").write_text("no folder")
    assert not model(tmp_path / "file")
    assert not model("/proc/aglow")
    assert (tmp_path / "file").read_text() == "no folder"


def start(program, tmp_path, cache):
    return subprocess.Popen([program, "run", tmp_path / "mlp.onnx", "--backend", "cpu", "--cache", cache, "--input",
                             f"x={tmp_path / 'x.npy'}", "--output-dir", tmp_path / "out"],
                            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def test_writers_at_the_same_time(program, model, tmp_path):
    cache = tmp_path / "cache"
    children = [start(program, tmp_path, cache) for _ in range(4)]
    assert [child.wait(120) for child in children] == [0] * 4, [child.stderr.read() for child in children]
    assert [p.suffix for p in cache.iterdir()] == [".aglow"]


@pytest.mark.parametrize("part", [0.3, 0.6, 0.8, 0.9, 0.95, 1.0])
def test_killed_writers_leave_nothing_bad(program, model, tmp_path, part):
    begin = time.monotonic()
    assert start(program, tmp_path, tmp_path / "whole").wait(120) == 0
    whole = time.monotonic() - begin
    cache = tmp_path / "cache"
    child = start(program, tmp_path, cache)
    time.sleep(whole * part)
    child.send_signal(signal.SIGKILL)
    child.wait(120)
    for entry in entries(cache) if cache.exists() else []:
        assert entry.read_bytes() == (tmp_path / "whole" / entry.name).read_bytes()
    assert start(program, tmp_path, cache).wait(120) == 0
    assert [e.read_bytes() for e in entries(cache)] == [e.read_bytes() for e in entries(tmp_path / "whole")]


def test_bundles_are_not_cached(program, model, tmp_path):
    home = {**os.environ, "HOME": str(tmp_path / "home"), "XDG_CACHE_HOME": "", "AGLOW_CACHE_DIR": ""}
    check(program, "compile", tmp_path / "mlp.onnx", "--dim", "batch=3", "-o", tmp_path / "out", "--emit", "bundle", env=home)
    assert not (tmp_path / "home").exists()


# ---------------------------------------------------------------- weights

ROWS, COLUMNS = 96, 512  # a constant of its own file, packed


@pytest.fixture
def wide(program, tmp_path):
    """wide(WEIGHTS, *OPTIONS): outputs of a product with constant weights, read from a file beside the model."""
    cache = tmp_path / "cache"
    np.save(tmp_path / "x.npy", np.random.default_rng(1).standard_normal((2, ROWS)).astype(np.float32))

    def call(weights, *options, env=None):
        graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "g",
                                  [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", ROWS])],
                                  [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", COLUMNS])],
                                  [onnx.numpy_helper.from_array(weights, "w")])
        net = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 17)])
        (tmp_path / "w.data").unlink(missing_ok=True)
        onnx.save(net, tmp_path / "w.onnx", save_as_external_data=True, location="w.data", size_threshold=0)
        check(program, "run", tmp_path / "w.onnx", "--backend", "cpu", "--cache", cache, "--input",
              f"x={tmp_path / 'x.npy'}", "-o", tmp_path / "out", *options, env={**os.environ, **(env or {})})
        return (tmp_path / "out" / "0.npy").read_bytes()

    return call


def some_weights(seed):
    return np.random.default_rng(seed).standard_normal((ROWS, COLUMNS)).astype(np.float32)


def without_module(program, tmp_path):
    """The program in a folder where there is no code generator."""
    alone = tmp_path / "alone" / "aglow"
    if not alone.exists():
        alone.parent.mkdir()
        shutil.copy(program, alone)
    return alone


def test_changed_data_is_another_model(wide, tmp_path):
    first = wide(some_weights(1))
    other = some_weights(1)
    other[ROWS // 2, 7] += 1
    assert wide(other) != first and wide(some_weights(1)) == first
    assert len(entries(tmp_path / "cache")) == 2


def test_sizes_share_their_weights(wide, tmp_path):
    wide(some_weights(1))
    [weights] = (tmp_path / "cache").glob("*.weights")
    assert weights.stat().st_size >= ROWS * COLUMNS * 4
    np.save(tmp_path / "x.npy", np.ones((5, ROWS), np.float32))
    wide(some_weights(1))
    assert len(entries(tmp_path / "cache")) == 2 and list((tmp_path / "cache").glob("*.weights")) == [weights]


@pytest.mark.parametrize("harm", ["flipped", "short", "gone"])
def test_bad_weights_are_rebuilt(wide, tmp_path, harm):
    expected = wide(some_weights(1))
    [entry] = (tmp_path / "cache").glob("*.weights")
    good = entry.read_bytes()
    entry.unlink()
    if harm != "gone":
        entry.write_bytes(good[:-64] if harm == "short" else good[:-5] + bytes([good[-5] ^ 1]) + good[-4:])
        entry.chmod(0o600)
    assert wide(some_weights(1)) == expected
    assert entry.read_bytes() == good and len(entries(tmp_path / "cache")) == 1


def test_what_is_kept_runs_without_the_code_generator(program, wide, sanitized, tmp_path):
    if sanitized:
        pytest.skip("the code generator is linked")
    expected = wide(some_weights(1))
    words = ["run", tmp_path / "w.onnx", "--backend", "cpu", "--cache", tmp_path / "cache", "--input",
             f"x={tmp_path / 'x.npy'}", "-o", tmp_path / "again"]
    for threads in "1", "2", "7":
        check(without_module(program, tmp_path), *words, "--threads", threads)
        assert (tmp_path / "again" / "0.npy").read_bytes() == expected
    refused = subprocess.run([without_module(program, tmp_path), *words, "--disable", "in-place"], capture_output=True)
    assert refused.returncode == 8 and b"aglow_llvm.so" in refused.stderr


def test_parts_are_kept(program, wide, sanitized, tmp_path):
    """A model that is cut where a shape depends on a value: each part that is compiled is found again."""
    if sanitized:
        pytest.skip("the code generator is linked")
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["m"]), helper.make_node("NonZero", ["m"], ["n"]),
         helper.make_node("Shape", ["n"], ["s"]), helper.make_node("MatMul", ["m", "v"], ["y"])], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, ROWS])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, ROWS]),
         helper.make_tensor_value_info("s", TensorProto.INT64, [2])],
        [onnx.numpy_helper.from_array(some_weights(1), "w"),
         onnx.numpy_helper.from_array(np.tile(some_weights(2).T, (1, 1)), "v")])
    onnx.save(helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 17)]), tmp_path / "p.onnx")
    words = ["run", tmp_path / "p.onnx", "--backend", "cpu", "--cache", tmp_path / "cache", "--input",
             f"x={tmp_path / 'x.npy'}", "-o"]
    wide(some_weights(1))  # writes x
    check(program, *words, tmp_path / "first")
    check(without_module(program, tmp_path), *words, tmp_path / "second")
    for name in "0.npy", "1.npy":
        assert (tmp_path / "first" / name).read_bytes() == (tmp_path / "second" / name).read_bytes()


def test_the_module_finds_it(wide, tmp_path):
    aglow = pytest.importorskip("aglow")
    wide(some_weights(1))
    x = np.load(tmp_path / "x.npy")
    script = ("import sys, numpy, aglow; m = aglow.compile(sys.argv[1], backend='cpu', cache=sys.argv[2]);"
              "numpy.save(sys.argv[4], m(numpy.load(sys.argv[3])));"
              "print('aglow_llvm.so' in open('/proc/self/maps').read())")
    seen = [check(sys.executable, "-c", script, tmp_path / "w.onnx", tmp_path / "cache", tmp_path / "x.npy",
                  tmp_path / "y.npy", env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}) for _ in range(2)]
    assert seen[1] == "False\n", seen
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"),
                                  aglow.compile(tmp_path / "w.onnx", backend="cpu", cache=False)(x))


def test_a_full_disk_is_no_fault(program, wide, tmp_path):
    """Files may have few bytes only, fewer than the weights have."""
    expected = wide(some_weights(1))
    shutil.rmtree(tmp_path / "cache")
    words = [program, "run", tmp_path / "w.onnx", "--backend", "cpu", "--cache", tmp_path / "cache", "--input",
             f"x={tmp_path / 'x.npy'}", "-o", tmp_path / "again"]
    subprocess.run(words, check=True, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000)))
    assert (tmp_path / "again" / "0.npy").read_bytes() == expected
    assert not list((tmp_path / "cache").iterdir())
