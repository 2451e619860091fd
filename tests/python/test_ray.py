"""`aglow.ray`: models behind Ray Serve, on two nodes of which one dies. Needs ray[serve]; tools/serve_requirements.txt."""
import asyncio
import json
import threading
import time
import urllib.request

import numpy as np
import pytest
from servers import affine, saved

ray = pytest.importorskip("ray", reason="ray is not installed")
pytest.importorskip("starlette", reason="ray[serve] is not installed")
pytest.importorskip("aglow._core", reason="the Python module is not built", exc_type=ImportError)

X = np.array([[1, 2, 3]], np.float32)
Y = X * 2 + np.array([1, 2, 3], np.float32)
PORT = 18765


@pytest.fixture(scope="module")
def cluster():
    from ray.cluster_utils import Cluster
    one = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": False})
    second = one.add_node(num_cpus=2)
    ray.init(address=one.address, logging_level="error")
    from ray import serve
    serve.start(http_options={"host": "127.0.0.1", "port": PORT})
    yield one, second
    serve.shutdown()
    ray.shutdown()
    one.shutdown()


def ask(path="v2/models/affine/infer"):
    body = json.dumps({"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 3], "data": X.tolist()}]}).encode()
    with urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{PORT}/{path}", data=body), timeout=60) as answer:
        return json.loads(answer.read())["outputs"][0]["data"]


def test_copies_on_two_nodes_of_which_one_dies(cluster, tmp_path):
    from ray import serve

    import aglow.ray
    models = saved(tmp_path / "models", affine=affine(), second=affine(3))
    files = {name: models / f"{name}.onnx" for name in ("affine", "second")}
    handle = serve.run(aglow.ray.models(files, replicas=2, actor={"num_cpus": 1}, backend="interpreter"))
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
    time.sleep(2)
    one, second = cluster
    before = len(answers)
    one.remove_node(second)
    time.sleep(10)
    stop.set()
    for thread in threads:
        thread.join(60)
    assert len(answers) > before + 20, "throughput has come back"
    lost = [answer for answer in answers if not isinstance(answer, np.ndarray)]
    assert not lost, lost[:3]
    assert all(np.array_equal(answer, Y) for answer in answers)
