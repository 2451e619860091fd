"""Signals at any moment: what a command writes is there wholly or not at all, beside nothing that does not belong
there. AGLOW_SIGNALS=200 sends 200 instead of a few."""
import os
import random
import signal
import subprocess
import sys
import time

import numpy as np
import onnx
import pytest

from bundle_models import MODELS

SIGNALS = int(os.environ.get("AGLOW_SIGNALS", "12"))


def content(folder):
    """Every file below the folder, by its name."""
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
            for path in sorted(folder.rglob("*"))}


class Interrupted:
    """A command that is ended at random moments, in a folder with files of an earlier call or without."""

    def __init__(self, tmp_path, command):
        self.command, self.out, self.temporary = command, tmp_path / "out", tmp_path / "tmp"
        self.temporary.mkdir()
        self.env = {**os.environ, "TMPDIR": str(self.temporary), "AGLOW_CACHE_DIR": str(tmp_path / "cache")}

    def start(self):
        return subprocess.Popen([str(word) for word in self.command], env=self.env, stdout=subprocess.DEVNULL,
                                stderr=subprocess.PIPE, text=True)

    def whole(self):
        """What a call that nobody interrupts leaves, and the seconds that it takes."""
        begin = time.monotonic()
        child = self.start()
        assert child.wait(300) == 0, child.stderr.read()
        child.stderr.close()
        return content(self.out), time.monotonic() - begin

    def check(self, before, count, seed):
        chance = random.Random(seed)
        self.whole()
        after, seconds = self.whole()  # the code is in the cache by now
        assert after != before
        met = set()
        for turn in range(20 * count):
            # Short programs are met before their first line or after their last one most of the time.
            if turn >= count and 130 in met:
                break
            self.put(before)
            number = chance.choice([signal.SIGTERM, signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
            child = self.start()
            time.sleep(chance.uniform(0, 1.1) * seconds)
            child.send_signal(number)
            code, said = child.wait(60), child.stderr.read()
            child.stderr.close()
            left = content(self.out) if self.out.exists() else {}
            # Before the program's first line a signal does what it does by default.
            assert code in (0, 130, -number), (code, said)
            assert code != 130 or said.endswith("error[E901] interrupted\n"), said
            if code == 0:
                assert left == after
            assert left in (before, after), (sorted(left), sorted(before), sorted(after))
            assert content(self.temporary) == {}
            met.add(code)
            # Otherwise the folder itself is left.
            assert before or left or not self.out.exists()
        assert 130 in met

    def put(self, files):
        subprocess.run(["rm", "-rf", self.out], check=True)
        for name, data in files.items():
            path = self.out / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)


@pytest.fixture
def convnet(tmp_path):
    net, inputs = MODELS["convnet"]()
    onnx.save(net, tmp_path / "convnet.onnx")
    np.save(tmp_path / "x.npy", inputs["x"])
    return tmp_path / "convnet.onnx"


@pytest.mark.parametrize("old", [False, True], ids=["new", "over-old"])
def test_compile(program, tmp_path, convnet, old):
    command = [program, "compile", convnet, "-o", tmp_path / "out", "--emit", "bundle,so,graph,ir,onnx,dot",
               "--external-data"]
    interrupted = Interrupted(tmp_path, command)
    files = {}
    if old:
        files = {name: b"old " + name.encode() for name in interrupted.whole()[0]}
        interrupted.put(files)
    interrupted.check(files, SIGNALS, seed=1)


def test_run(program, tmp_path, convnet):
    command = [program, "run", convnet, "-i", f"x={tmp_path / 'x.npy'}", "-o", tmp_path / "out" / "deep" / "er"]
    interrupted = Interrupted(tmp_path, command)
    interrupted.check({}, SIGNALS // 2, seed=2)
    assert all(path.suffix in (".aglow", ".weights") for path in (tmp_path / "cache").iterdir())


def test_ignored_signals_stay_ignored(program, tmp_path, convnet):
    """As nohup wants it."""
    child = subprocess.Popen([program, "compile", convnet, "-o", tmp_path / "out", "--emit", "bundle"],
                             stderr=subprocess.PIPE, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    for _ in range(20):
        child.send_signal(signal.SIGHUP)
        time.sleep(0.01)
    assert child.wait(120) == 0, child.stderr.read()
    child.stderr.close()


EXPORT = """
import sys
import aglow
model = aglow.compile(sys.argv[1], backend="interpreter", cache=False)
print("ready", flush=True)
while True:
    model.export(sys.argv[2], external_data=True)
"""


def test_export_from_python(tmp_path, convnet):
    """Python ends at once on SIGTERM, and no handler of the library is there to help."""
    aglow = pytest.importorskip("aglow", reason="the module is not built: ./dev test builds it")
    aglow.compile(convnet, backend="interpreter", cache=False).export(tmp_path / "good.onnx", external_data=True)
    good = [(tmp_path / name).read_bytes() for name in ("good.onnx.data", "good.onnx")]
    chance = random.Random(3)
    for count in range(max(SIGNALS // 3, 3)):
        out = tmp_path / f"out{count}"
        out.mkdir()
        child = subprocess.Popen([sys.executable, "-c", EXPORT, convnet, out / "good.onnx"], stdout=subprocess.PIPE,
                                 env={**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(aglow.__file__))})
        assert child.stdout.readline() == b"ready\n"
        time.sleep(chance.uniform(0, 0.2))
        child.terminate()
        assert child.wait(60) == -signal.SIGTERM
        child.stdout.close()
        # Names that are just being given are given to the end.
        for _ in range(500):
            if list(content(out).values()) in ([], good[::-1]):
                break
            time.sleep(0.01)
        assert list(content(out).values()) in ([], good[::-1]), sorted(content(out))
