"""Servers for tests: models to serve, and `aglow serve` on free ports of this machine, ended with the test."""
import contextlib
import json
import pathlib
import signal
import socket
import subprocess
import tempfile
import urllib.error
import urllib.request

import numpy as np
from onnx import TensorProto, helper

# The protocol's datatypes that numpy has as well.
DATATYPES = {
    "BOOL": np.bool_, "INT8": np.int8, "INT16": np.int16, "INT32": np.int32, "INT64": np.int64, "UINT8": np.uint8,
    "UINT16": np.uint16, "UINT32": np.uint32, "UINT64": np.uint64, "FP16": np.float16, "FP32": np.float32,
    "FP64": np.float64,
}


def model(nodes, inputs, outputs, initializers=()):
    """Inputs and outputs as (name, element type, shape)."""
    infos = [[helper.make_tensor_value_info(*port) for port in ports] for ports in (inputs, outputs)]
    return helper.make_model(helper.make_graph(nodes, "g", *infos, list(initializers)), ir_version=10,
                             opset_imports=[helper.make_opsetid("", 20)])


def affine(factor=2.0):
    """y = x * factor + b, [batch, 3]."""
    weights = [helper.make_tensor("factor", TensorProto.FLOAT, [1], [factor]),
               helper.make_tensor("b", TensorProto.FLOAT, [3], [1, 2, 3])]
    nodes = [helper.make_node("Mul", ["x", "factor"], ["scaled"]), helper.make_node("Add", ["scaled", "b"], ["y"])]
    return model(nodes, [("x", TensorProto.FLOAT, ["batch", 3])], [("y", TensorProto.FLOAT, ["batch", 3])], weights)


def kinds():
    """An output for each input, the same turned round: one of every datatype."""
    ports = [(name, helper.np_dtype_to_tensor_dtype(np.dtype(kind)), [3]) for name, kind in DATATYPES.items()]
    ports += [("BF16", TensorProto.BFLOAT16, [3]), ("BYTES", TensorProto.STRING, [3])]
    order = helper.make_tensor("order", TensorProto.INT64, [3], [2, 1, 0])
    nodes = [helper.make_node("Gather", [name, "order"], [name + "_out"]) for name, _, _ in ports]
    return model(nodes, ports, [(name + "_out", kind, shape) for name, kind, shape in ports], [order])


def products(size=384, steps=12):
    """Something that takes some milliseconds: a row of matrix products."""
    rng = np.random.default_rng(1)
    weights, nodes, last = [], [], "x"
    for i in range(steps):
        values = (rng.standard_normal((size, size)) / size ** 0.5).astype(np.float32)
        weights.append(helper.make_tensor(f"w{i}", TensorProto.FLOAT, [size, size], values.tobytes(), raw=True))
        nodes.append(helper.make_node("MatMul", [last, f"w{i}"], [f"y{i}"]))
        last = f"y{i}"
    return model(nodes, [("x", TensorProto.FLOAT, [size, size])], [(last, TensorProto.FLOAT, [size, size])], weights)


class Server:
    """A running server: where it listens, what it logged, how it ended."""

    def __init__(self, process, log, address):
        self.process, self.log_file = process, log
        urls = json.loads(address).values() if address.startswith("{") else address.split()[1:]
        words = dict(url.split("://", 1) for url in urls)
        self.scheme = "https" if "https" in words else "http"
        self.http, self.grpc = words.get(self.scheme), words.get("grpc")

    @property
    def port(self):
        return int(self.http.rpartition(":")[2])

    def log(self):
        return [json.loads(line) for line in pathlib.Path(self.log_file).read_text().splitlines()]

    def call(self, path, body=None, headers=None, method=None):
        """(status, headers, body) of one request."""
        request = urllib.request.Request(f"{self.scheme}://{self.http}/{path}", data=body, headers=headers or {},
                                         method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, answer.headers, answer.read()
        except urllib.error.HTTPError as fault:
            return fault.code, fault.headers, fault.read()

    def json(self, path, body=None, **options):
        status, _, answer = self.call(path, None if body is None else json.dumps(body).encode(), **options)
        return status, json.loads(answer)

    def infer(self, name, inputs, **more):
        """Plain JSON: {name: array}."""
        back = {np.dtype(kind): datatype for datatype, kind in DATATYPES.items()}
        body = {"inputs": [{"name": key, "datatype": back[value.dtype], "shape": list(value.shape),
                            "data": value.tolist()} for key, value in inputs.items()], **more}
        return self.json(f"v2/models/{name}/infer", body)

    def connect(self):
        """A plain socket, for requests that no library would send."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=30)

    def memory_kb(self):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0])

    def end(self, how=signal.SIGTERM, timeout=60):
        if self.process.poll() is None:
            self.process.send_signal(how)
        code = self.process.wait(timeout)
        if code != 0:  # what a sanitizer says, for instance
            print(pathlib.Path(self.log_file).read_text(errors="replace")[-8000:])
        return code


@contextlib.contextmanager
def serving(program, *words):
    """A server of these models and options."""
    with tempfile.NamedTemporaryFile(suffix=".log") as log:
        process = subprocess.Popen([program, "serve", "--http-port", "0", "--grpc-port", "0", "--cache", "off", *words],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, text=True)
        try:
            line = process.stdout.readline()
            assert line.startswith("{" if "--json" in words else "ready"), pathlib.Path(log.name).read_text()
            yield Server(process, log.name, line)
        finally:
            if process.poll() is None:
                process.terminate()
            try:
                process.wait(60)
            finally:
                process.kill()
                process.stdout.close()


def saved(folder, **models):
    """The models as files of a folder."""
    folder.mkdir(exist_ok=True)
    for name, proto in models.items():
        (folder / f"{name}.onnx").write_bytes(proto.SerializeToString())
    return folder
