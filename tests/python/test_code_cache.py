"""The cache of generated code: found again, never trusted blindly, safe with many writers and with killed ones."""
import json
import os
import signal
import subprocess
import time

import numpy as np
import onnx
import pytest

from bundle_models import MODELS
from bundles import check


@pytest.fixture
def model(program, tmp_path):
    """model(CACHE, *OPTIONS): whether bench found the code in the cache."""
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
    return sorted(folder.glob("*.code"))


def test_found_again(model, tmp_path):
    cache = tmp_path / "cache"
    assert [model(cache), model(cache)] == [False, True]
    assert len(entries(cache)) == 1 and os.stat(cache).st_mode & 0o777 == 0o700


@pytest.mark.parametrize("options", [["-O", "1"], ["--features", "-avx2"], ["--cpu", "x86-64-v3"], ["--threads", "2"],
                                     ["--dim", "batch=4"], ["--disable", "in-place"]], ids=" ".join)
def test_other_options_are_other_code(model, tmp_path, options):
    cache = tmp_path / "cache"
    assert [model(cache), model(cache, *options), model(cache)] == [False, False, True]
    assert len(entries(cache)) == 2


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
           "flipped": good[:2000] + bytes([good[2000] ^ 4]) + good[2001:], "link": good}[harm]
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
    assert [p.suffix for p in cache.iterdir()] == [".code"]


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
