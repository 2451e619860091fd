"""bench/loaded.py: measures under load, and leaves no load."""
import os
import re
import sys

import pytest

from conftest import ROOT
from harness import process

sys.path.append(str(ROOT / "bench"))

import loaded  # noqa: E402


def test_busy_loops_end():
    with loaded.busy_loops([None, min(os.sched_getaffinity(0))]) as loops:
        assert [loop.poll() for loop in loops] == [None, None]
        assert os.sched_getaffinity(loops[1].pid) == {min(os.sched_getaffinity(0))}
    assert all(loop.returncode < 0 for loop in loops)


def test_measures_the_digits(program, sanitized, tmp_path, monkeypatch):
    if sanitized:
        pytest.skip("nobody measures a program under the sanitizers")
    monkeypatch.setenv("AGLOW_CACHE_DIR", str(tmp_path))
    done = process.run([sys.executable, ROOT / "bench" / "loaded.py", "--program", program, "--rounds", "1", "--seconds",
                        "0.05", ROOT / "examples" / "digits" / "digits.onnx"])
    assert done.code == 0, done.err
    assert re.search(r"^loaded +digits +aglow +1 +[0-9.]+ +default +[0-9.]+ ", done.out, re.M)
    if len(os.sched_getaffinity(0)) > 1:
        assert re.search(r"^neighbours +digits +aglow ", done.out, re.M)
