"""`aglow serve` under bad clients: slow ones, half requests, wrong sizes, too much of everything; and its end."""
import json
import resource
import signal
import ssl
import socket
import subprocess
import threading
import time

import grpc
import numpy as np
import pytest
import tritonclient.grpc as grpcclient
from servers import affine, products, saved, serving

X = np.ones((1, 3), np.float32)
GOOD = json.dumps({"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 3], "data": [1, 2, 3]}]}).encode()
HEAD = b"POST /v2/models/affine/infer HTTP/1.1\r\nHost: x\r\n"


@pytest.fixture(scope="module")
def server(program, tmp_path_factory):
    models = saved(tmp_path_factory.mktemp("models"), affine=affine())
    with serving(program, models, "--header-timeout-s", "1", "--body-timeout-s", "1", "--idle-timeout-s", "2",
                 "--max-body-mb", "1", "--max-tensor-mb", "1", "--max-connections", "400") as one:
        yield one
        # Whatever the tests did to it, it still answers, and ends well.
        assert one.infer("affine", {"x": X})[0] == 200
        assert one.end() == 0


def answer_to(server, data, timeout=20):
    """All that comes back for these bytes until the server closes or has answered once."""
    with server.connect() as stream:
        stream.settimeout(timeout)
        stream.sendall(data)
        stream.shutdown(socket.SHUT_WR)
        back = b""
        while chunk := stream.recv(65536):
            back += chunk
        return back


def status_of(back):
    return int(back.split(b" ", 2)[1]) if back else None


def with_length(body, extra=b""):
    return HEAD + extra + b"Content-Length: %d\r\n\r\n" % len(body) + body


BAD = {
    "no HTTP": (b"\x16\x03\x01 garbage\r\n\r\n", 400),
    "another method": (b"DELETE /v2 HTTP/1.1\r\nHost: x\r\n\r\n", 405),
    "no path": (b"GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n", 404),
    "bad escape": (b"GET /v2/models/%zz HTTP/1.1\r\nHost: x\r\n\r\n", 400),
    "no body": (HEAD + b"Content-Length: 0\r\n\r\n", 400),
    "no JSON": (with_length(b"{"), 400),
    "no UTF-8": (with_length(b'{"id": "\xff"}'), 400),
    "a list": (with_length(b"[]"), 400),
    "deep": (with_length(b"[" * 5000), 400),
    "no inputs": (with_length(b"{}"), 400),
    "length that is no number": (HEAD + b"Content-Length: x\r\n\r\n", 400),
    "two lengths": (HEAD + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabc", 400),
    "JSON longer than the body": (with_length(GOOD, b"Inference-Header-Content-Length: 99999\r\n"), 400),
    "JSON of no length": (with_length(GOOD, b"Inference-Header-Content-Length: -1\r\n"), 400),
    "compressed": (with_length(GOOD, b"Content-Encoding: gzip\r\n"), 415),
    "1 GB": (HEAD + b"Content-Length: 1073741824\r\n\r\n" + b"x" * 100000, 413),
    "2^63": (HEAD + b"Content-Length: 9223372036854775808\r\n\r\n", 413),
    "long header": (b"GET /v2 HTTP/1.1\r\nA: " + b"a" * 20000 + b"\r\n\r\n", 431),
    "endless chunks": (HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + (b"10000\r\n" + b" " * 65536 + b"\r\n") * 17, 413),
    "bad chunk": (HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", None),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_requests(server, name):
    data, expected = BAD[name]
    back = answer_to(server, data)
    assert status_of(back) == expected
    if expected and b"application/json" in back:
        assert json.loads(back.partition(b"\r\n\r\n")[2])["error"]


def tensor(**fields):
    return {"name": "x", "datatype": "FP32", "shape": [1, 3], "data": [1, 2, 3], **fields}


@pytest.mark.parametrize("given, words", [
    (tensor(data=[1, 2]), "2 elements, the shape 3"),
    (tensor(data=[1, 2, 3, 4]), "more elements"),
    (tensor(data=[[1, 2], [3]]), "another length"),
    (tensor(data=[1, 2, "3"]), "not a number"),
    (tensor(data=[1, 2, 1e39]), "range"),
    (tensor(datatype="INT8", data=[1, 2, 128]), "range"),
    (tensor(datatype="UINT8", data=[1, 2, -1]), "range"),
    (tensor(datatype="INT32", data=[1, 2, 1.5]), "fraction"),
    (tensor(datatype="FP31"), "no datatype 'FP31'"),
    (tensor(shape=[1, -3]), "shape"),
    (tensor(shape=[2 ** 40, 2 ** 40]), "shape"),
    (tensor(shape=[1 << 16, 3]), "fewer elements"),
    (tensor(shape="3"), "has to be a list"),
    (tensor(name=7), "name has to be a string"),
    (tensor(data=7), "data has to be a list"),
    (tensor(parameters={"binary_data_size": 12}), "both"),
    (tensor(parameters=[]), "parameters has to be an object"),
    (tensor(parameters={"shared_memory_region": "r"}), "not supported"),
])
def test_bad_tensors(server, given, words):
    status, answer = server.json("v2/models/affine/infer", {"inputs": [given]})
    assert status in (400, 413) and words in answer["error"]


def test_large_tensors_are_refused_before_they_are_made(server):
    status, answer = server.json("v2/models/affine/infer", {"inputs": [tensor(shape=[1 << 20, 1 << 10])]})
    assert status == 413 and "at most" in answer["error"]


@pytest.mark.parametrize("size, words", [(11, "12 bytes, and 11 came"), (13, "13 bytes behind"), (99, "are left")])
def test_binary_sizes(server, size, words):
    given = {"name": "x", "datatype": "FP32", "shape": [1, 3], "parameters": {"binary_data_size": size}}
    head = json.dumps({"inputs": [given]}).encode()
    back = answer_to(server, with_length(head + bytes(12), b"Inference-Header-Content-Length: %d\r\n" % len(head)))
    assert status_of(back) == 400
    assert words in back.decode() or size == 13


def test_slow_clients_are_let_go(server):
    """A client that says nothing, one that never ends its header, one that never ends its body."""
    for data in (b"", b"GET /v2 HT", HEAD + b"Content-Length: 100\r\n\r\nabc"):
        with server.connect() as stream:
            stream.sendall(data)
            start = time.monotonic()
            assert stream.recv(1000) == b""
            assert time.monotonic() - start < 15


def test_dripping_headers_get_no_more_time(server):
    with server.connect() as stream:
        start = time.monotonic()
        with pytest.raises(OSError):
            for _ in range(150):
                stream.sendall(b"X")
                time.sleep(0.1)
        assert time.monotonic() - start < 14


def test_many_requests_in_one_connection(server):
    """Those that follow before the first is answered are answered in order."""
    bodies = [json.dumps({"id": str(i), "inputs": [tensor()]}).encode() for i in range(50)]
    with server.connect() as stream:
        stream.sendall(b"".join(with_length(body) for body in bodies))
        stream.shutdown(socket.SHUT_WR)
        back = b""
        while chunk := stream.recv(65536):
            back += chunk
    ids = [part.partition(b'"id":"')[2].partition(b'"')[0] for part in back.split(b"HTTP/1.1 200 OK")[1:]]
    assert ids == [str(i).encode() for i in range(50)]


def test_too_many_connections(server):
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    before = server.memory_kb()
    streams = [server.connect() for _ in range(1000)]
    try:
        streams[-1].settimeout(20)
        assert streams[-1].recv(1000).startswith(b"HTTP/1.1 503")
    finally:
        for stream in streams:
            stream.close()
    for _ in range(100):
        try:
            if server.infer("affine", {"x": X})[0] == 200:
                break
        except OSError:
            pass
        time.sleep(0.1)
    assert server.memory_kb() - before < 200_000
    assert server.json("status")[0] == 200


def test_grpc_sizes_and_garbage(server):
    with grpcclient.InferenceServerClient(server.grpc) as client:
        given = grpcclient.InferInput("x", [1, 3], "FP32")
        given.set_data_from_numpy(X)
        request = given._get_tensor()  # noqa: SLF001
        assert request.name == "x"
        for shape, size in (([1, 3], 11), ([1, 3], 13), ([-1, 3], 12), ([2 ** 40, 2 ** 40], 12)):
            bad = grpcclient.service_pb2.ModelInferRequest(model_name="affine")
            bad.inputs.add(name="x", datatype="FP32", shape=shape)
            bad.raw_input_contents.append(bytes(size))
            with pytest.raises(grpc.RpcError) as fault:
                client._client_stub.ModelInfer(bad)  # noqa: SLF001
            assert fault.value.code() == grpc.StatusCode.INVALID_ARGUMENT
        typed = grpcclient.service_pb2.ModelInferRequest(model_name="affine")
        typed.inputs.add(name="x", datatype="FP32", shape=[1, 3]).contents.fp32_contents.extend([1, 2, 3])
        answer = client._client_stub.ModelInfer(typed)  # noqa: SLF001
        assert np.frombuffer(answer.raw_output_contents[0], np.float32).tolist() == [3, 6, 9]
        huge = grpcclient.service_pb2.ModelInferRequest(model_name="affine", raw_input_contents=[bytes(2 << 20)])
        with pytest.raises(grpc.RpcError) as fault:
            client._client_stub.ModelInfer(huge)  # noqa: SLF001
        assert fault.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    with grpc.insecure_channel(server.grpc) as channel:
        call = channel.unary_unary("/inference.GRPCInferenceService/ModelInfer", lambda b: b, lambda b: b)
        with pytest.raises(grpc.RpcError) as fault:
            call(b"\xff\xff\xff garbage", timeout=20)
        # gRPC itself answers, with a state that depends on its version.
        assert fault.value.code() in (grpc.StatusCode.INTERNAL, grpc.StatusCode.INVALID_ARGUMENT,
                                      grpc.StatusCode.UNIMPLEMENTED)
        # A name that is no UTF-8: protobuf's own words about it are no lines of the log.
        with pytest.raises(grpc.RpcError):
            call(b"\x0a\x02\xff\xfe", timeout=30)
        assert all(isinstance(line, dict) for line in server.log())
        with pytest.raises(grpc.RpcError) as fault:
            channel.unary_unary("/inference.GRPCInferenceService/Nothing", lambda b: b, lambda b: b)(b"", timeout=20)
        assert fault.value.code() == grpc.StatusCode.UNIMPLEMENTED


def test_deadlines(program, tmp_path):
    models = saved(tmp_path / "models", slow=products(size=512, steps=40))
    with serving(program, models, "--no-grpc") as one:
        x = np.ones((512, 512), np.float32)
        head = json.dumps({"parameters": {"timeout": 1000}, "inputs": [
            {"name": "x", "datatype": "FP32", "shape": [512, 512], "parameters": {"binary_data_size": x.nbytes}}]}).encode()
        status, _, answer = one.call("v2/models/slow/infer", head + x.tobytes(),
                                     {"Inference-Header-Content-Length": str(len(head))})
        assert status == 504 and b"E405" in answer


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_ends_with_every_accepted_request_answered(program, tmp_path, how):
    models = saved(tmp_path / "models", products=products(size=128, steps=8))
    x = np.eye(128, dtype=np.float32)
    head = json.dumps({"parameters": {"binary_data_output": True}, "inputs": [
        {"name": "x", "datatype": "FP32", "shape": [128, 128], "parameters": {"binary_data_size": x.nbytes}}]}).encode()
    body, headers = head + x.tobytes(), {"Inference-Header-Content-Length": str(len(head))}
    with serving(program, models) as one:
        expected = one.call("v2/models/products/infer", body, headers)[2]
        results, threads = [], []

        def http_client():
            while True:
                try:
                    status, _, answer = one.call("v2/models/products/infer", body, headers)
                except OSError:
                    results.append("refused")  # no connection: the server has gone
                    return
                results.append("right" if answer == expected else status)
                if status != 200:
                    return

        def grpc_client():
            with grpcclient.InferenceServerClient(one.grpc) as client:
                given = grpcclient.InferInput("x", [128, 128], "FP32")
                given.set_data_from_numpy(x)
                while True:
                    try:
                        client.infer("products", [given])
                    except Exception as fault:  # noqa: BLE001
                        results.append("refused" if "UNAVAILABLE" in str(fault) or "CANCELLED" in str(fault) else fault)
                        return
                    results.append("right")

        for work in [http_client] * 4 + [grpc_client] * 2:
            threads.append(threading.Thread(target=work))
            threads[-1].start()
        time.sleep(0.5)
        assert one.end(how) == 0
        for thread in threads:
            thread.join(60)
        assert results.count("right") > 6
        assert set(results) <= {"right", "refused", 503}, results
        events = [line["event"] for line in one.log()]
        assert events[-2:] == ["draining", "ended"]


def test_models_that_cannot_be_loaded(program, tmp_path):
    models = saved(tmp_path / "models", affine=affine())
    (models / "broken.onnx").write_bytes(b"no model")
    done = subprocess.run([program, "serve", models, "--http-port", "0", "--grpc-port", "0"], capture_output=True,
                          text=True, timeout=60, check=False)
    assert done.returncode == 2 and "E201" in done.stderr and not done.stdout
    with serving(program, models, "--keep-going") as one:
        assert one.infer("affine", {"x": X})[0] == 200
        assert "E201" in next(row for row in one.json("v2/repository/index", {})[1] if row["name"] == "broken")["reason"]
    for words, fault in ((["missing"], "no such file"), ([tmp_path / "models", "--host", "nowhere"], "cannot listen"),
                         ([models, "--tls-cert", "x"], "go together")):
        done = subprocess.run([program, "serve", *words], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode in (1, 8) and fault in done.stderr, done.stderr


def test_several_models_are_named(program, tmp_path):
    models = saved(tmp_path / "models", affine=affine(), other=affine(3.0))
    with serving(program, models / "affine.onnx", models / "other.onnx", "--devices", "cpu") as one:
        assert one.infer("affine", {"x": X})[0] == one.infer("other", {"x": X})[0] == 200


def test_token_and_tls(program, tmp_path):
    models = saved(tmp_path / "models", affine=affine())
    key, certificate, token = tmp_path / "key.pem", tmp_path / "certificate.pem", tmp_path / "token"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate,
                    "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"],
                   check=True, capture_output=True)
    token.write_text("secret\n")
    with serving(program, models, "--tls-cert", certificate, "--tls-key", key, "--token-file", token) as one:
        context = ssl.create_default_context(cafile=certificate)
        for header, expected in ((None, 401), ("Bearer secre", 401), ("Bearer secrets", 401), ("Bearer secret", 200)):
            with context.wrap_socket(one.connect(), server_hostname="localhost") as stream:
                line = f"Authorization: {header}\r\n" if header else ""
                stream.sendall(f"GET /v2 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{line}\r\n".encode())
                assert status_of(stream.recv(1000)) == expected
        with context.wrap_socket(one.connect(), server_hostname="localhost") as stream:
            stream.sendall(b"GET /v2/health/live HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            assert status_of(stream.recv(1000)) == 200
        port = one.grpc.rpartition(":")[2]
        with grpc.secure_channel(f"localhost:{port}", grpc.ssl_channel_credentials(certificate.read_bytes())) as channel:
            call = channel.unary_unary("/inference.GRPCInferenceService/ServerMetadata", lambda b: b, lambda b: b)
            with pytest.raises(grpc.RpcError) as fault:
                call(b"", timeout=20)
            assert fault.value.code() == grpc.StatusCode.UNAUTHENTICATED
            assert b"aglow" in call(b"", timeout=20, metadata=[("authorization", "Bearer secret")])
