"""`aglow.ray`: models behind Ray Serve, on two nodes of which one dies. Needs ray[serve]; tools/serve_requirements.txt."""
import asyncio
import json
import os
import threading
import time
import urllib.request

import numpy as np
import pytest
from servers import affine, saved

# A loaded machine starts slowly.
for _what in ("READY_CHECK", "HEALTH_CHECK"):
    os.environ.setdefault(f"RAY_SERVE_PROXY_{_what}_TIMEOUT_S", "60")
ray = pytest.importorskip("ray", reason="ray is not installed")
pytest.importorskip("starlette", reason="ray[serve] is not installed")
pytest.importorskip("aglow._core", reason="the Python module is not built", exc_type=ImportError)

X = np.array([[1, 2, 3]], np.float32)
Y = X * 2 + np.array([1, 2, 3], np.float32)
PORT = 18765


@pytest.fixture
def cluster():
    from ray.cluster_utils import Cluster
    one = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": False})
    ray.init(address=one.address, logging_level="error")
    from ray import serve
    serve.start(proxy_location="HeadOnly", http_options={"host": "127.0.0.1", "port": PORT})
    yield one
    serve.shutdown()
    ray.shutdown()
    one.shutdown()


def ask(path="v2/models/affine/infer"):
    body = json.dumps({"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 3], "data": X.tolist()}]}).encode()
    with urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{PORT}/{path}", data=body), timeout=60) as answer:
        return json.loads(answer.read())["outputs"][0]["data"]


def rate(answers, seconds):
    """Answers a second, over so many."""
    before = len(answers)
    time.sleep(seconds)
    return (len(answers) - before) / seconds


@pytest.mark.parametrize("backend", ["interpreter", "cpu"])
def test_copies_on_two_nodes_of_which_one_dies(cluster, tmp_path, backend):
    from ray import serve

    import aglow.ray
    second = cluster.add_node(num_cpus=2)
    models = saved(tmp_path / "models", affine=affine(), second=affine(3))
    files = {name: models / f"{name}.onnx" for name in ("affine", "second")}
    handle = serve.run(aglow.ray.models(files, replicas=2, actor={"num_cpus": 1}, backend=backend))
    assert ask() == Y[0].tolist()
    assert handle.infer.remote("second", {"x": X}).result()["y"].tolist() == (X * 3 + [1, 2, 3]).tolist()
    answers, stop = [], threading.Event()

    def client():
        while not stop.is_set():
            try:
                answers.append(asyncio.run(aglow.ray.infer(handle, "affine", {"x": X}))["y"])
            except Exception as fault:  # noqa: BLE001
                answers.append(fault)

    threads = [threading.Thread(target=client) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        time.sleep(1)
        whole = rate(answers, 3)
        cluster.remove_node(second)
        end, now = time.monotonic() + 60, 0.0
        while now < whole / 2 and time.monotonic() < end:
            now = rate(answers, 1)
    finally:
        stop.set()
        for thread in threads:
            thread.join(60)
    assert now >= whole / 2, f"{whole:.0f} answers a second before, {now:.0f} after"
    lost = [answer for answer in answers if not isinstance(answer, np.ndarray)]
    assert not lost, lost[:3]
    assert all(np.array_equal(answer, Y) for answer in answers)
    print(f"{backend}: {len(answers)} answers, {whole:.0f} a second before, {now:.0f} after")
