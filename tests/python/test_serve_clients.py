"""`aglow serve` with the clients that people have: tritonclient over HTTP and gRPC, curl, and plain JSON."""
import contextlib
import asyncio
import json
import shutil
import subprocess

import ml_dtypes
import numpy as np
import pytest
import tritonclient.grpc as grpcclient
import tritonclient.grpc.aio as grpcaio
import tritonclient.http as httpclient
import tritonclient.http.aio as httpaio
from servers import DATATYPES, affine, kinds, saved, serving
from tritonclient.utils import InferenceServerException

CLIENTS = {"http": httpclient, "grpc": grpcclient}
X = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
Y = X * 2 + np.array([1, 2, 3], np.float32)


@pytest.fixture(scope="module")
def server(program, tmp_path_factory):
    models = saved(tmp_path_factory.mktemp("models"), affine=affine(), kinds=kinds())
    (models / "versions" / "3").mkdir(parents=True)
    saved(models / "versions" / "3", anything=affine(3))
    (models / "versions" / "12").mkdir()
    saved(models / "versions" / "12", anything=affine(12))
    with serving(program, models, "--log", "requests") as one:
        yield one


@pytest.fixture(params=CLIENTS)
def triton(request, server):
    """A module of tritonclient, and a client of it."""
    module = CLIENTS[request.param]
    client = module.InferenceServerClient(server.http if request.param == "http" else server.grpc)
    yield module, client
    client.close()


def given(module, name, datatype, array):
    tensor = module.InferInput(name, list(array.shape), datatype)
    tensor.set_data_from_numpy(array)
    return tensor


def test_health_and_metadata(triton):
    _, client = triton
    assert client.is_server_live() and client.is_server_ready() and client.is_model_ready("affine")
    assert not client.is_model_ready("nothing")
    options = {"as_json": True} if "grpc" in type(client).__module__ else {}
    server = client.get_server_metadata(**options)
    assert server["name"] == "aglow" and "binary_tensor_data" in server["extensions"]
    model = client.get_model_metadata("affine", **options)
    assert model["inputs"][0]["name"] == "x" and model["inputs"][0]["datatype"] == "FP32"
    assert [int(size) for size in model["inputs"][0]["shape"]] == [-1, 3]
    assert client.get_model_metadata("versions", **options)["versions"] == ["12", "3"]


def test_answers(triton):
    module, client = triton
    answer = client.infer("affine", [given(module, "x", "FP32", X)], request_id="seven")
    np.testing.assert_array_equal(answer.as_numpy("y"), Y)
    response = answer.get_response()
    assert (response["id"] if isinstance(response, dict) else response.id) == "seven"
    for version, factor in (("3", 3), ("12", 12), ("", 12)):
        answer = client.infer("versions", [given(module, "x", "FP32", X)], model_version=version)
        np.testing.assert_array_equal(answer.as_numpy("y"), X * factor + np.array([1, 2, 3], np.float32))


def test_every_datatype(triton):
    module, client = triton
    values = {name: np.array([1, 0, 1]).astype(kind) for name, kind in DATATYPES.items()}
    for name, kind in DATATYPES.items():
        if np.dtype(kind).kind in "iu":
            values[name] = np.array([np.iinfo(kind).min, 1, np.iinfo(kind).max], kind)
    inputs = [given(module, name, name, value) for name, value in values.items()]
    bf16 = np.array([1.5, -2, 3], ml_dtypes.bfloat16)
    inputs.append(given(module, "BF16", "BF16", bf16))
    inputs.append(given(module, "BYTES", "BYTES", np.array([b"", b"\xff\x00raw", "ä".encode()], object)))
    answer = client.infer("kinds", inputs)
    for name, value in values.items():
        back = answer.as_numpy(name + "_out")
        assert back.dtype == value.dtype
        np.testing.assert_array_equal(back, value[::-1])
    np.testing.assert_array_equal(answer.as_numpy("BF16_out").astype(np.float32), bf16[::-1].astype(np.float32))
    assert list(answer.as_numpy("BYTES_out")) == ["ä".encode(), b"\xff\x00raw", b""]


def test_json_without_binary(server):
    values = {name: np.array([1, 0, 1]).astype(kind) for name, kind in DATATYPES.items()}
    inputs = [{"name": name, "datatype": name, "shape": [3], "data": value.tolist()} for name, value in values.items()]
    inputs += [{"name": "BF16", "datatype": "BF16", "shape": [3], "data": [1.5, -2, 3]},
               {"name": "BYTES", "datatype": "BYTES", "shape": [3], "data": ["a", "ä", ""]}]
    status, answer = server.json("v2/models/kinds/infer", {"inputs": inputs, "outputs": [{"name": "FP16_out"},
                                                                                         {"name": "BYTES_out"},
                                                                                         {"name": "BOOL_out"}]})
    assert status == 200 and [out["name"] for out in answer["outputs"]] == ["FP16_out", "BYTES_out", "BOOL_out"]
    assert answer["outputs"][0]["data"] == [1, 0, 1] and answer["outputs"][1]["data"] == ["", "ä", "a"]
    assert answer["outputs"][2]["data"] == [True, False, True]
    # Lists in lists have the form of the shape.
    nested = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [2, 3], "data": X.tolist()}]}
    assert server.json("v2/models/affine/infer", nested)[1]["outputs"][0]["data"] == Y.flatten().tolist()


def test_where_it_listens_as_json(program, tmp_path):
    with serving(program, saved(tmp_path / "models", affine=affine()), "--json") as one:
        assert one.json("v2/health/ready")[0] == 200
        client = grpcclient.InferenceServerClient(one.grpc)
        assert client.is_server_ready()
        client.close()


def test_asynchronous_clients(server):
    async def both():
        async with httpaio.InferenceServerClient(server.http) as http, grpcaio.InferenceServerClient(server.grpc) as grpc:
            calls = [http.infer("affine", [given(httpclient, "x", "FP32", X + i)]) for i in range(20)]
            calls += [grpc.infer("affine", [given(grpcclient, "x", "FP32", X + i)]) for i in range(20)]
            return await asyncio.gather(*calls)

    for i, answer in enumerate(asyncio.run(both())):
        np.testing.assert_array_equal(answer.as_numpy("y"), Y + 2 * (i % 20))


def test_faults(triton):
    module, client = triton
    with pytest.raises(InferenceServerException, match="there is no model 'afine'.*affine"):
        client.infer("afine", [given(module, "x", "FP32", X)])
    with pytest.raises(InferenceServerException, match="E102"):
        client.infer("affine", [given(module, "x", "FP32", X.reshape(3, 2))])
    with pytest.raises(InferenceServerException, match="no output 'z'"):
        client.infer("affine", [given(module, "x", "FP32", X)], outputs=[module.InferRequestedOutput("z")])
    with pytest.raises(InferenceServerException, match="E10"):
        client.infer("affine", [])


def test_streams_are_refused(server):
    faults = []
    with grpcclient.InferenceServerClient(server.grpc) as client:
        client.start_stream(lambda result, error: faults.append(error))
        # The refusal may come before anything is sent, which the client then refuses itself.
        with contextlib.suppress(InferenceServerException):
            client.async_stream_infer("affine", [given(grpcclient, "x", "FP32", X)])
        client.stop_stream()
    assert faults and "UNIMPLEMENTED" in str(faults[0]) and "ModelInfer" in str(faults[0])


def test_repository(program, tmp_path, triton, server):
    del triton, server
    models = saved(tmp_path / "models", affine=affine())
    with serving(program, models) as one, httpclient.InferenceServerClient(one.http) as http, \
            grpcclient.InferenceServerClient(one.grpc) as grpc:
        assert http.get_model_repository_index() == [
            {"name": "affine", "version": "1", "state": "READY", "reason": ""}]
        saved(models, affine=affine(5), second=affine())
        assert one.infer("affine", {"x": X})[1]["outputs"][0]["data"][0] == 3
        http.load_model("affine")
        assert one.infer("affine", {"x": X})[1]["outputs"][0]["data"][0] == 6
        grpc.load_model("second")
        grpc.unload_model("affine")
        assert http.is_model_ready("second") and not http.is_model_ready("affine")
        assert one.infer("affine", {"x": X})[0] == 404
        (models / "second.onnx").write_bytes(b"no model")
        with pytest.raises(InferenceServerException, match="E201"):
            grpc.load_model("second")
        assert one.infer("second", {"x": X})[0] == 200, "the one that was loaded goes on"
        with pytest.raises(InferenceServerException, match="no model 'third'"):
            http.load_model("third")


def test_curl(server, tmp_path):
    curl = shutil.which("curl")
    if not curl:
        pytest.skip("curl is not installed")
    body = tmp_path / "body.json"
    body.write_text(json.dumps({"inputs": [{"name": "x", "datatype": "FP32", "shape": [2, 3], "data": X.tolist()}]}))
    for more in ((), ("-H", "Expect: 100-continue"), ("-H", "Transfer-Encoding: chunked")):
        done = subprocess.run([curl, "-sS", "-m", "30", f"http://{server.http}/v2/models/affine/infer", "-d", f"@{body}",
                               *more], capture_output=True, text=True, check=True)
        assert json.loads(done.stdout)["outputs"][0]["data"] == Y.flatten().tolist()


def test_page_metrics_traces_and_logs(server):
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    status, headers, _ = server.call("v2/models/affine", headers={"traceparent": parent})
    assert status == 200 and headers["traceparent"].startswith("00-0af7651916cd43dd8448eb211c80319c-")
    assert headers["traceparent"] != parent and headers["traceparent"].endswith("-01")
    lines = [line for line in server.log() if line.get("trace_id") == "0af7651916cd43dd8448eb211c80319c"]
    assert lines and lines[0]["path"] == "/v2/models/affine" and lines[0]["status"] == 200
    server.infer("affine", {"x": X})
    metrics = server.call("metrics")[2].decode()
    values = dict(line.rsplit(" ", 1) for line in metrics.splitlines() if not line.startswith("#"))
    assert float(values['aglow_requests_succeeded_total{model="affine",version="1"}']) > 0
    assert float(values['aglow_request_seconds_bucket{model="affine",version="1",le="+Inf"}']) == \
        float(values['aglow_request_seconds_count{model="affine",version="1"}']) > 0
    status, answer = server.json("status")
    assert {model["name"] for model in answer["models"]} == {"affine", "kinds", "versions"}
    assert answer["devices"][0]["healthy"] and answer["buffered_bytes"] == 0
    page = server.call("")[2].decode()
    assert "<!doctype html>" in page and "http:" not in page.replace("http://www.w3.org/2000/svg", "")
