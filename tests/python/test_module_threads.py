"""The Python module: no copies, no leaks, and many threads."""
import concurrent.futures
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import module_models as models

aglow = pytest.importorskip("aglow", reason="the module is not built: ./dev test builds it")


def resident_mb():
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE") / 1e6


# Devices have memory of their own.
@pytest.mark.parametrize("backend", sorted(set(aglow.backends()) & {"interpreter", "cpu"}))
def test_large_inputs_are_not_copied(backend, tmp_path):
    proto = models.model([models.node("Gather", "x row", "y")], [models.value("x", ["n", 1 << 20])],
                         [models.value("y")], {"row": np.array([5])})
    # A file of holes takes memory only where somebody reads.
    x = np.memmap(tmp_path / "holes", np.float32, "w+", shape=(256, 1 << 20))
    x[5] = 1
    model = aglow.compile(proto, backend=backend, memory_limit=1 << 40)
    model(x[:6])
    before = resident_mb()
    assert model(x).sum() == 1 << 20
    assert resident_mb() - before < x.nbytes / 1e6 / 4


def test_arrays_are_given_back():
    model = aglow.compile(models.affine())
    x = np.zeros((2, 3), np.float32)
    held = sys.getrefcount(x)
    for _ in range(3):
        model(x)
    with pytest.raises(aglow.Error):
        model(x, bias=np.zeros(7, np.float32))
    assert sys.getrefcount(x) == held
    y = model(x)
    assert y.flags.c_contiguous and y.flags.writeable and y.ctypes.data % 64 == 0


@pytest.mark.parametrize("backend", aglow.backends())
def test_many_threads_share_a_model(backend):
    model = aglow.compile(models.affine(), backend=backend, threads=2, cache=False)
    weights = np.arange(6, dtype=np.float32).reshape(3, 2)

    def work(seed):
        random = np.random.default_rng(seed)
        for _ in range(40):
            x = random.integers(-9, 9, (int(random.integers(0, 6)), 3)).astype(np.float32)
            np.testing.assert_array_equal(model(x), x @ weights + 1)
        return True

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(16)))


@pytest.mark.parametrize("backend", aglow.backends())
@pytest.mark.parametrize("contexts", [1, 3, 16])
def test_runs_side_by_side_give_the_same_bits(backend, contexts):
    """Large enough for several threads, and cut in parts: how many elements are found is known only at run time."""
    nodes = [models.node("MatMul", "x x", "p"), models.node("Softmax", "p", "s"), models.node("ReduceMean", "s", "m"),
             models.node("Greater", "s m", "g"), models.node("NonZero", "g", "n"), models.node("MatMul", "s s", "y")]
    proto = models.model(nodes, [models.value("x", [64, 64])], [models.value("y"), models.value("n")])
    model = aglow.compile(proto, backend=backend, threads=2, contexts=contexts, cache=False)
    inputs = [np.random.default_rng(seed).normal(size=(64, 64)).astype(np.float32) for seed in range(16)]
    expected = [model(x) for x in inputs]

    def work(number):
        for _ in range(5):
            for got, wanted in zip(model(inputs[number]), expected[number]):
                np.testing.assert_array_equal(got, wanted)
        return True

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        assert all(pool.map(work, range(16)))


def test_more_callers_than_may_wait():
    model = aglow.compile(models.heavy(), backend="interpreter", threads=1, contexts=1, queue=0)
    x = np.eye(192, dtype=np.float32)
    barrier = threading.Barrier(4)

    def call(_):
        barrier.wait()
        try:
            model(x)
            return None
        except aglow.ResourceError as error:
            return error.code

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for _ in range(20):  # a busy machine may run them one after the other
            codes = set(pool.map(call, range(4)))
            if len(codes) > 1:
                break
        assert codes == {None, "E404"}
    np.testing.assert_array_equal(model(x), x)
    for wrong in ({"contexts": -1}, {"contexts": 1025}, {"queue": -1}):
        with pytest.raises(aglow.UsageError, match="expected 0 to"):
            aglow.compile(models.affine(), **wrong)


def test_many_threads_compile():
    proto = models.affine().SerializeToString()
    x = np.ones((1, 3), np.float32)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda _: aglow.compile(proto, cache=False)(x), range(8)))
    assert all((result == results[0]).all() for result in results)


def test_other_threads_go_on_while_a_model_runs():
    model = aglow.compile(models.heavy(), backend="interpreter", threads=1)
    x = np.eye(192, dtype=np.float32)
    done, steps = threading.Event(), []

    def run():
        try:
            model(x)
        finally:
            done.set()

    running = threading.Thread(target=run)
    running.start()
    # Each wait gives the GIL up and takes it again, which only works if the run does not hold it.
    while not done.wait(0.001):
        steps.append(1)
    running.join()
    assert len(steps) > 3


def test_nothing_leaks_at_exit():
    script = """
import aglow, numpy as np, sys
sys.path[:0] = [sys.argv[1]]
import module_models as models
model = aglow.compile(models.affine())
kept = model(np.zeros((1, 3), np.float32))
try:
    model(1)
except aglow.UsageError as fault:
    error = fault
"""
    ended = subprocess.run([sys.executable, "-c", script, os.path.dirname(__file__)], capture_output=True, text=True,
                           env={**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(aglow.__file__))})
    assert ended.returncode == 0 and ended.stderr == "", ended.stderr
