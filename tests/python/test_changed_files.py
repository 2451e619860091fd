"""Files that change while they are in use: what was loaded stays what it was, or an error says so; never other results,
never a signal."""
import os
import subprocess
import sys

import numpy as np
import onnx
import pytest

import module_models as models
from bundles import INCLUDE, check

aglow = pytest.importorskip("aglow", reason="the module is not built: ./dev test builds it")

ROWS, COLUMNS = 96, 128


def weights(factor):
    return (factor * np.arange(ROWS * COLUMNS, dtype=np.float32).reshape(ROWS, COLUMNS)) % 7


def save(path, factor, external=False):
    """y = x @ weights; weights of another factor have the same size."""
    proto = models.model([models.node("MatMul", "x weights", "y")], [models.value("x", ["rows", ROWS])],
                         [models.value("y", ["rows", COLUMNS])], {"weights": weights(factor)})
    if external:
        onnx.save(proto, path, save_as_external_data=True, location="weights.data", size_threshold=0)
        return path.parent / "weights.data"
    onnx.save(proto, path)
    return path


def over(path, content, keep_time=False):
    """Writes over a file as a program does that knows no better: the same file, other bytes."""
    before = path.stat()
    with open(path, "r+b") as file:
        file.write(content)
        file.truncate()
    later = before.st_mtime_ns if keep_time else before.st_mtime_ns + 1_000_000_000
    os.utime(path, ns=(before.st_atime_ns, later))


def result_or_refusal(model, rows):
    """Whether a run for a new size gave what the old weights give; else it was refused with E801."""
    x = np.eye(rows, ROWS, dtype=np.float32)
    try:
        np.testing.assert_array_equal(model(x), x @ weights(1))
        return True
    except aglow.FileError as fault:
        assert fault.code == "E801" and "has changed since it was opened" in fault.message, fault
        return False


@pytest.mark.parametrize("backend", aglow.backends())
@pytest.mark.parametrize("external", [False, True], ids=["inside", "external"])
@pytest.mark.parametrize("change", ["rewritten", "rewritten-same-time", "shorter", "renamed", "removed"])
def test_a_model_keeps_its_weights(tmp_path, backend, external, change):
    (tmp_path / "other").mkdir()
    path = save(tmp_path / "model.onnx", 1, external)
    other = save(tmp_path / "other" / "model.onnx", 3, external)
    assert path.stat().st_size == other.stat().st_size
    model = aglow.compile(tmp_path / "model.onnx", backend=backend, threads=1, cache=False)
    assert result_or_refusal(model, 2)
    if change.startswith("rewritten"):
        over(path, other.read_bytes(), keep_time=change.endswith("time"))
    elif change == "shorter":
        over(path, b"")
    elif change == "renamed":
        os.replace(other, path)
    else:
        path.unlink()
    assert result_or_refusal(model, 2), "what is compiled needs no file"
    # A new size takes the weights from the file again.
    assert result_or_refusal(model, 3) == (change in ("renamed", "removed"))
    assert result_or_refusal(model, 2)


CHANGES = """
import os, sys, time
path, good = sys.argv[1], open(sys.argv[2], "rb").read()
while True:
    for content in (good, good[:len(good) // 3], good[::-1], b"", good):
        with open(path, "r+b") as file:
            file.write(content)
            file.truncate()
        time.sleep(0.0005)
"""


def test_a_file_that_changes_while_it_is_read(program, tmp_path):
    path = save(tmp_path / "model.onnx", 1)
    (tmp_path / "good").write_bytes(path.read_bytes())
    np.save(tmp_path / "x.npy", np.eye(2, ROWS, dtype=np.float32))
    writer = subprocess.Popen([sys.executable, "-c", CHANGES, path, tmp_path / "good"])
    codes = []
    try:
        for round in range(12):
            out = tmp_path / f"out{round}"
            done = subprocess.run([program, "run", path, "-i", f"x={tmp_path / 'x.npy'}", "-o", out, "--backend",
                                   "interpreter"], capture_output=True, text=True, timeout=120)
            assert done.returncode in (0, 1, 2, 3, 8), (done.returncode, done.stderr)
            codes.append(done.returncode)
            if done.returncode == 0:
                np.testing.assert_array_equal(np.load(out / "0.npy"), weights(1)[:2])
    finally:
        writer.kill()
        writer.wait()
    assert any(codes), "the writer met no reader"


LOADER = r"""
#define _POSIX_C_SOURCE 200809L
#define AGLOW_BUNDLE_LOADER
#include <stdio.h>
#include <string.h>
#include "aglow/bundle.h"
int main(int count, char **words) {
  aglow_bundle *first, *second;
  aglow_bundle_context *contexts[2];
  char line[8];
  int i, k;
  const char *fault = aglow_bundle_open(words[1], words[2], &first);
  if (fault == NULL) fault = count > 3 ? aglow_bundle_open(words[3], words[4], &second) : NULL;
  if (fault != NULL) {
    printf("%s\n", fault);
    return 1;
  }
  contexts[0] = aglow_bundle_context_new(first, 0);
  contexts[1] = count > 3 ? aglow_bundle_context_new(second, 0) : NULL;
  do {
    for (k = 0; k < 2 && contexts[k] != NULL; ++k) {
      float *x = (float *)aglow_bundle_input(contexts[k], 0);
      const float *y = (const float *)aglow_bundle_output(contexts[k], 0);
      memset(x, 0, (size_t)contexts[k]->entry->inputs[0].bytes);
      for (i = 0; i < 5; ++i) x[i] = 1;
      printf("%d", aglow_bundle_run(contexts[k]));
      for (i = 0; i < 9; ++i) printf(" %g", (double)y[i]);
      printf("\n");
    }
    fflush(stdout);
  } while (fgets(line, sizeof line, stdin) != NULL);
  aglow_bundle_context_free(contexts[0]);
  aglow_bundle_close(first);
  return 0;
}
"""


@pytest.fixture
def loader(tmp_path):
    (tmp_path / "loader.c").write_text(LOADER)
    check("cc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", f"-I{INCLUDE}", tmp_path / "loader.c", "-o",
          tmp_path / "loader", "-ldl")
    return tmp_path / "loader"


def shared_object(program, folder, factor):
    folder.mkdir()
    save(folder / "model.onnx", factor)
    check(program, "compile", folder / "model.onnx", "--dim", "rows=1", "-o", folder / "so", "--emit", "so")
    return folder / "so" / "model.so", folder / "so" / "model.weights.bin"


def test_a_bundle_keeps_its_code_and_weights(program, loader, tmp_path):
    first, second = shared_object(program, tmp_path / "a", 1), shared_object(program, tmp_path / "b", 3)
    running = subprocess.Popen([loader, *first, *second], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        before = [running.stdout.readline() for _ in range(2)]
        expected = [weights(factor)[:5].sum(0)[:9] for factor in (1, 3)]
        for line, values in zip(before, expected):
            np.testing.assert_allclose([float(word) for word in line.split()], [0, *values])
        for path in first:
            over(path, bytes(path.stat().st_size))
        for path in second:
            over(path, b"")
        running.stdin.write("again\n")
        running.stdin.flush()
        assert [running.stdout.readline() for _ in range(2)] == before
        running.stdin.close()
        assert running.wait(60) == 0
    finally:
        running.kill()
        running.stdout.close()


@pytest.mark.parametrize("which", [0, 1], ids=["code", "weights"])
@pytest.mark.parametrize("kind", ["pipe", "folder", "missing", "short"])
def test_a_loader_refuses_what_is_no_file(program, loader, tmp_path, which, kind):
    files = list(shared_object(program, tmp_path / "a", 1))
    bad = tmp_path / "bad"
    if kind == "pipe":
        os.mkfifo(bad)
    elif kind == "folder":
        bad.mkdir()
    elif kind == "short":
        bad.write_bytes(files[which].read_bytes()[:100])
    files[which] = bad
    done = subprocess.run([loader, *files], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
    assert done.returncode == 1 and done.stdout.strip(), done
    if kind in ("pipe", "folder", "missing"):
        assert "not a regular file" in done.stdout
