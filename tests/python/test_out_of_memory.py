"""Allocations that fail, inside of LLVM as well, end with exit code 4 and never with a signal. A sample: the whole is
AGLOW_FAILURES=220 pytest tests/python/test_out_of_memory.py."""
import os
import pathlib
import shutil
import subprocess

import pytest

HERE = pathlib.Path(__file__).resolve().parent
FAILURES = int(os.environ.get("AGLOW_FAILURES", "12"))


@pytest.fixture(scope="module")
def preload(program, tmp_path_factory):
    if shutil.which("cc") is None:
        pytest.skip("cc is not installed")
    if b"__asan_init" in pathlib.Path(program).read_bytes():
        pytest.skip("the sanitizer has allocators of its own")
    library = tmp_path_factory.mktemp("preload") / "fail_malloc.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O2", HERE / "fail_malloc.c", "-o", library, "-ldl"], check=True)
    return library


@pytest.mark.parametrize("on", [False, True], ids=["one", "all_from_one_on"])
@pytest.mark.parametrize("command", ["run", "compile"])
def test_a_failing_allocation_is_an_error(program, root, tmp_path, preload, command, on):
    digits = root / "examples" / "digits"
    words = {"run": ["run", digits / "digits.onnx", "--input", f"image={digits}/images/3.npy", "--backend", "cpu",
                     "--threads", "1"],
             "compile": ["compile", digits / "digits.onnx", "-o", tmp_path / "out", "--emit", "bundle"]}[command]

    def outcome(**settings):
        environment = {**os.environ, "LD_PRELOAD": str(preload), "AGLOW_CACHE_DIR": "off", **settings}
        return subprocess.run([program, *words], env=environment, capture_output=True, text=True, timeout=300)

    assert outcome(FAIL_COUNT=str(tmp_path / "count")).returncode == 0
    total = int((tmp_path / "count").read_text())
    assert total > 1000
    faults = {}
    for number in range(FAILURES):
        at = 1 + (2 * number + 1) * total // (2 * FAILURES)
        ended = outcome(FAIL_AT=str(at), **({"FAIL_ON": "1"} if on else {}))
        # One failure may go unnoticed, where the caller can do without what it asked for.
        if ended.returncode not in ((4,) if on else (0, 4)):
            faults[at] = (ended.returncode, ended.stderr[-300:])
    assert faults == {}
