"""Machines that give little: few processes, a home that cannot be written, a full disk. Right results, or an error that
says what is missing; and nothing half-written."""
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import pytest

from bundle_models import MODELS

# Nobody's number: a limit on processes counts all of a user, and does not hold for root.
STRANGER = 54321


@pytest.fixture
def place(program):
    """A folder that other users can reach, with the program and a model."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="aglow-tight-"))
    folder.chmod(0o755)
    net, inputs = MODELS["convnet"]()
    onnx.save(net, folder / "convnet.onnx")
    np.save(folder / "x.npy", inputs["x"])
    for file in (program, *program.parent.glob("aglow_llvm.so")):
        shutil.copy(file, folder / file.name)
    for name in ("out", "home"):
        (folder / name).mkdir()
    if os.geteuid() == 0:
        for path in (folder, *folder.iterdir()):
            os.chown(path, STRANGER, STRANGER)
    yield folder
    shutil.rmtree(folder)


def run(folder, *words, processes=None, file_bytes=None, env=None, **options):
    """The program as a user without rights."""
    def become():
        if processes:
            resource.setrlimit(resource.RLIMIT_NPROC, (processes, processes))
        if file_bytes is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, file_bytes))
        if os.geteuid() == 0:
            os.setgroups([])
            os.setgid(STRANGER)
            os.setuid(STRANGER)

    return subprocess.run([str(word) for word in words], capture_output=True, text=True, preexec_fn=become, cwd=folder,
                          timeout=300, env={"PATH": os.environ["PATH"], "HOME": str(folder / "home"), **(env or {})},
                          **options)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def reference(folder):
    done = run(folder, folder / "aglow", "run", "convnet.onnx", "-i", "x=x.npy", "-o", "reference", "--threads", "1")
    assert done.returncode == 0, done.stderr
    return np.load(folder / "reference" / "0.npy")


@pytest.mark.parametrize("threads", [None, 8, 1024])
def test_few_processes(place, threads):
    """ulimit -u 64; an unprivileged user may have more processes than that already."""
    expected = reference(place)
    words = [] if threads is None else ["--threads", threads]
    # The leak check of sanitized programs needs a process of its own.
    limits = {"processes": 64, "env": {"ASAN_OPTIONS": "detect_leaks=0"} if threads == 1024 else {}}
    for command in (["run", "convnet.onnx", "-i", "x=x.npy", "-o", "out"],
                    ["bench", "convnet.onnx", "--runs", "1", "--instructions"],
                    ["verify", "convnet.onnx"]):
        done = run(place, place / "aglow", *command, *words, **limits)
        assert done.returncode == 0, (command, done.stderr)
        assert threads != 1024 or "note: the system gives" in done.stderr
    np.testing.assert_array_equal(np.load(place / "out" / "0.npy"), expected)


def test_no_processes(place):
    expected = reference(place)
    # The leak check of sanitized programs needs a process of its own.
    alone = {"processes": 1, "env": {"ASAN_OPTIONS": "detect_leaks=0"}}
    done = run(place, place / "aglow", "run", "convnet.onnx", "-i", "x=x.npy", "-o", "out", "--threads", "4", **alone)
    assert done.returncode == 0 and "note: the system gives 1 of 4 threads" in done.stderr, done.stderr
    np.testing.assert_array_equal(np.load(place / "out" / "0.npy"), expected)
    done = run(place, place / "aglow", "compile", "convnet.onnx", "-o", "so", "--emit", "so", **alone)
    assert done.returncode == 4 and "error[E402] cc cannot be started" in done.stderr, done.stderr
    assert not (place / "so").exists()


PYTHON = """
import os, resource, sys, warnings
import numpy as np
import aglow
resource.setrlimit(resource.RLIMIT_NPROC, (64, 64))
if os.geteuid() == 0:
    os.setuid(int(sys.argv[1]))
with warnings.catch_warnings(record=True) as notes:
    warnings.simplefilter("always")
    model = aglow.compile("convnet.onnx", threads=1024)
assert np.array_equal(model(np.load("x.npy")), np.load("reference/0.npy"))
print(notes[0].message)
"""


def test_few_processes_in_python(place):
    aglow = pytest.importorskip("aglow", reason="the module is not built: ./dev test builds it")
    reference(place)
    # Another user need not be able to read the module, so it becomes one only then.
    done = subprocess.run([sys.executable, "-c", PYTHON, str(STRANGER)], capture_output=True, text=True, cwd=place,
                          timeout=300, env={**os.environ, "OPENBLAS_NUM_THREADS": "1",
                                            "PYTHONPATH": os.path.dirname(os.path.dirname(aglow.__file__))})
    assert done.returncode == 0 and done.stdout.startswith("the system gives "), done


def test_a_home_that_cannot_be_written(place):
    expected = reference(place)
    (place / "home").chmod(0o555)
    if os.geteuid() == 0:
        os.chown(place / "home", 0, 0)
    for home in (place / "home", "/proc", "/nowhere", place / "x.npy"):
        done = run(place, place / "aglow", "run", "convnet.onnx", "-i", "x=x.npy", "-o", "out", env={"HOME": str(home)})
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        np.testing.assert_array_equal(np.load(place / "out" / "0.npy"), expected)


def test_a_cache_of_others_is_not_used(place):
    """The cache of a user who lets others write to it."""
    cache = place / "cache"
    cache.mkdir()
    cache.chmod(0o777)
    done = run(place, place / "aglow", "run", "convnet.onnx", "-i", "x=x.npy", "-o", "out", "--cache", cache)
    assert done.returncode == 0 and f"note: compiled models are not kept in {cache}: " in done.stderr
    assert names(cache) == []


COMMANDS = {
    "bundle": ["compile", "convnet.onnx", "--emit", "bundle"],
    "so": ["compile", "convnet.onnx", "--emit", "so"],
    "text": ["compile", "convnet.onnx", "--emit", "graph,ir,dot"],
    "onnx": ["compile", "convnet.onnx", "--emit", "onnx", "--external-data"],
    "run": ["run", "convnet.onnx", "-i", "x=x.npy"],
}


@pytest.mark.parametrize("old", [False, True], ids=["new", "over-old"])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_full_disk(place, command, old):
    """Every size of disk between nothing and enough, in some steps: the limit on the size of a file stands for it."""
    words = [place / "aglow", *COMMANDS[command], "-o", "out", "--backend", "cpu"]
    done = run(place, *words)
    assert done.returncode == 0, done.stderr
    whole = {path.name: path.read_bytes() for path in (place / "out").iterdir()}
    sizes = sorted({0, *(len(data) - 1 for data in whole.values())})
    for size in sizes:
        before = {}
        for path in (place / "out").iterdir():
            path.unlink()
        if old:
            before = {name: name.encode() for name in whole}
            for name, data in before.items():
                (place / "out" / name).write_bytes(data)
        done = run(place, *words, file_bytes=size, env={"AGLOW_CACHE_DIR": "off"})
        assert done.returncode in (6, 8) and ("error[E802]" in done.stderr or command == "so"), (size, done)
        assert {path.name: path.read_bytes() for path in (place / "out").iterdir()} == before, size


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk")
def test_a_full_file_system(place):
    disk = place / "disk"
    disk.mkdir()
    # In a name space of its own, which takes the disk along when it ends.
    script = f"""
set -e
mount -t tmpfs -o size={{size}}k,mode=777 none {disk}
echo old > {disk}/convnet.h
set +e
TMPDIR={place} {place}/aglow compile {place}/convnet.onnx -o {disk} --emit bundle
code=$?
ls -A {disk} > {place}/left
cat {disk}/convnet.h > {place}/header
exit $code
"""
    codes = []
    for size in (8, 24, 48, 4096):
        done = subprocess.run(["unshare", "--mount", "sh", "-c", script.replace("{size}", str(size))],
                              capture_output=True, text=True, timeout=300)
        if "mount" in done.stderr or "unshare" in done.stderr:
            pytest.skip(f"nothing can be mounted here: {done.stderr}")
        left = (place / "left").read_text().split()
        codes.append(done.returncode)
        if done.returncode == 0:
            assert left == ["convnet.h", "convnet.o", "convnet.weights.bin"]
        else:
            assert done.returncode == 8 and "No space left" in done.stderr, done.stderr
            assert left == ["convnet.h"] and (place / "header").read_text() == "old\n"
    assert codes[0] == 8 and codes[-1] == 0
