"""A model in a process that forks, as Python's multiprocessing does: parent and child get right results."""
import multiprocessing
import os
import signal
import threading
import time
import warnings

import numpy as np
import pytest

import module_models as models

aglow = pytest.importorskip("aglow", reason="the module is not built: ./dev test builds it")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

SIZE = 256
X = np.random.default_rng(1).normal(size=(SIZE, SIZE)).astype(np.float32)


def compiled(node, threads):
    proto = models.model([node], [models.value("x", ["rows", SIZE])], [models.value("y", ["rows", SIZE])])
    return aglow.compile(proto, backend="cpu", threads=threads, cache=False)


def squares(threads):
    """y = x @ x, large enough to be split over threads."""
    return compiled(models.node("MatMul", "x x", "y"), threads)


def in_child(body, seconds=60):
    """What a forked child's body gives; an exception, a signal or no end at all fail the test."""
    child = os.fork()
    if child == 0:
        signal.alarm(seconds)
        code = 1
        try:
            code = 0 if body() else 2
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_a_forked_child_runs(threads):
    model = squares(threads)
    expected = model(X)
    in_child(lambda: np.array_equal(model(X), expected) and np.array_equal(model(X), expected))
    assert np.array_equal(model(X), expected)
    # Another size is compiled in the child.
    in_child(lambda: np.array_equal(model(X.copy()), expected) and squares(threads)(X).shape == (SIZE, SIZE))


MODEL = None


def work(seed):
    x = np.random.default_rng(seed).normal(size=(SIZE, SIZE)).astype(np.float32)
    return seed, MODEL(x)


def test_a_pool_of_processes():
    global MODEL
    MODEL = squares(2)
    MODEL(X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with multiprocessing.get_context("fork").Pool(2) as pool:
            results = pool.map_async(work, range(6)).get(120)
    for seed, result in results:
        np.testing.assert_array_equal(result, work(seed)[1])


@pytest.mark.parametrize("node, rows, forks", [("MatMul", SIZE, 10), ("Add", 1, 300)])
def test_a_fork_while_other_threads_run(node, rows, forks):
    """Large runs are met while they compute, small ones while they are looked up."""
    model = compiled(models.node(node, "x x", "y"), threads=2)
    x = X[:rows]
    expected = model(x)
    done = threading.Event()

    def run():
        while not done.is_set():
            model(x)

    running = [threading.Thread(target=run) for _ in range(2)]
    for thread in running:
        thread.start()
    try:
        for _ in range(forks):
            time.sleep(0.001)
            in_child(lambda: np.array_equal(model(x), expected))
    finally:
        done.set()
        for thread in running:
            thread.join()


def test_the_number_of_threads_has_a_limit(monkeypatch):
    for threads in (1025, 10**9, 10**30, -1):
        with pytest.raises(aglow.UsageError, match="expected 1 to 1024") as caught:
            squares(threads)
        assert caught.value.code == "E101"
    monkeypatch.setenv("AGLOW_THREADS", str(10**9))
    with pytest.raises(aglow.UsageError, match="AGLOW_THREADS is 1000000000"):
        squares(None)
