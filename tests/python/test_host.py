"""aglow.Host: many networks on many devices, from Python."""
import concurrent.futures

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

aglow = pytest.importorskip("aglow", reason="the module is not built: ./dev test builds it")


def scaling(path, factor):
    graph = helper.make_graph([helper.make_node("Mul", ["x", "f"], ["y"])], "scale",
                              [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 3])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 3])],
                              [numpy_helper.from_array(np.float32(factor), "f")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


@pytest.fixture
def double(tmp_path):
    return scaling(tmp_path / "double.onnx", 2)


X = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_a_host_runs_networks(double, tmp_path):
    with aglow.Host("interpreter sim:interpreter,name=card") as host:
        host.add("double", double)
        host.add("triple", scaling(tmp_path / "triple.onnx", 3), replicas=2)
        np.testing.assert_array_equal(host.run("double", {"x": X})["y"], X * 2)
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            for result in pool.map(lambda _: host.run("triple", {"x": X})["y"], range(40)):
                np.testing.assert_array_equal(result, X * 3)
        [network] = [one for one in host.networks() if one.name == "double"]
        assert network.ready and network.current and network.inputs[0].shape == ("batch", 3)
        rows = {row["name"]: row for row in host.statistics()["networks"]}
        assert rows["triple"]["succeeded"] == 40 and rows["triple"]["p99_us"] > 0


def test_versions_and_removal(double, tmp_path):
    with aglow.Host("interpreter") as host:
        host.add("scale", double)
        host.add("scale", scaling(tmp_path / "triple.onnx", 3), version="2", make_current=False)
        assert host.run("scale", {"x": X})["y"][1, 2] == 10
        assert host.run("scale", {"x": X}, version="2")["y"][1, 2] == 15
        host.set_current("scale", "2")
        assert host.run("scale", {"x": X})["y"][1, 2] == 15
        host.remove("scale", "1")
        with pytest.raises(aglow.UsageError, match="E105"):
            host.run("scale", {"x": X}, version="1")


def test_batches_keep_rows_apart(double):
    with aglow.Host("interpreter") as host:
        host.add("double", double, batch_rows=8, batch_delay=0.002, batch_sizes=[8], prepare={"batch": [8]})
        futures = [host.submit("double", {"x": X + i}) for i in range(20)]
        for i, future in enumerate(futures):
            np.testing.assert_array_equal(future.result()["y"], (X + i) * 2)
        assert set(host.statistics()["networks"][0]["batches"]) == {8}


def test_faults(double):
    with aglow.Host("interpreter") as host:
        host.add("double", double)
        with pytest.raises(aglow.UsageError, match="E102"):
            host.run("double", {"z": X})
        with pytest.raises(aglow.Error):
            host.run("double", {"x": X[:, :2].copy()})
        with pytest.raises(aglow.UsageError):
            host.run("nothing", {"x": X})
        with pytest.raises(aglow.UsageError):
            aglow.Host("what:ever")
        host.drain()
        with pytest.raises(aglow.ResourceError, match="E404"):
            host.run("double", {"x": X})
    with pytest.raises(aglow.UsageError, match="closed"):
        host.run("double", {"x": X})


def test_requests_can_be_taken_back(double):
    with aglow.Host("sim:interpreter,latency=1s") as host:
        host.add("double", double)
        first, second = host.submit("double", {"x": X}), host.submit("double", {"x": X}, timeout=0.05)
        assert first.cancel()
        with pytest.raises(aglow.ResourceError, match="E405"):
            second.result()


def test_plans_and_replicas(tmp_path):
    """Nodes go where a plan says; one that names no device of the host is an error, and copies may follow the load."""
    weights = [numpy_helper.from_array(np.full((3, 3), i + 1, np.float32), f"w{i}") for i in range(2)]
    nodes = [helper.make_node("MatMul", ["x", "w0"], ["a"], name="first"), helper.make_node("MatMul", ["a", "w1"], ["y"], name="second")]
    ports = [[helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 3])] for name in ("x", "y")]
    path = tmp_path / "two.onnx"
    onnx.save(helper.make_model(helper.make_graph(nodes, "two", *ports, weights), ir_version=8,
                                opset_imports=[helper.make_opsetid("", 17)]), path)
    with aglow.Host("sim:interpreter,name=a sim:interpreter,name=b") as host:
        host.add("cut", path, plan={"first": "b", "second": "a"})
        [network] = host.networks()
        assert network.replicas == (("b", "a"),)
        np.testing.assert_array_equal(host.run("cut", {"x": X})["y"], X.sum(1, keepdims=True) * np.full(3, 6, np.float32))
        with pytest.raises(aglow.UsageError, match="'second' to 'c', which is no device; there are a, b"):
            host.add("other", path, plan={"second": "c"})
        with pytest.raises(aglow.UsageError, match="replicas"):
            host.add("other", path, replicas=2, most_replicas=1)
        host.add("other", path, most_replicas=2)
        assert next(row for row in host.statistics()["networks"] if row["name"] == "other")["wanted"] == 1
