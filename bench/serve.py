#!/usr/bin/env python3
"""Measures `aglow serve` beside ONNX Runtime behind FastAPI with uvicorn, and behind Ray Serve.

    ./dev bench serve [--models minilm,mobilenet_v2] [--peers fastapi,ray] [--clients 1,2,4,8] [--seconds 5] [MODEL.onnx…]

Every server gets the same requests (binary tensors over HTTP, connections kept) from as many clients at a time, each of
which waits for its answer; servers take turns. The ratio is that of requests a second at equal p99: the most that Aglow
gives with a p99 no worse than the rival's where that is at its best.

overhead: the mean time of a request of one client against that of `aglow bench` on the same model, threads and machine.
"""
import argparse
import asyncio
import contextlib
import json
import os
import pathlib
import socket
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[1]
MODELS = ROOT / "build" / "bench-models"


def inputs_of(path, dims):
    """Random arrays for the inputs of a model; open sizes are those of `dims`, or 1."""
    import onnx
    graph = onnx.load(path, load_external_data=False).graph
    given = {tensor.name for tensor in graph.initializer}
    rng = np.random.default_rng(1)
    arrays = {}
    for info in graph.input:
        if info.name in given:
            continue
        kind = onnx.helper.tensor_dtype_to_np_dtype(info.type.tensor_type.elem_type)
        shape = [dim.dim_value or dims.get(dim.dim_param, 1) for dim in info.type.tensor_type.shape.dim]
        arrays[info.name] = (rng.standard_normal(shape) if kind.kind == "f" else rng.integers(0, 2, shape)).astype(kind)
    return arrays


NAMES = {"float32": "FP32", "float64": "FP64", "int64": "INT64", "int32": "INT32", "bool": "BOOL", "uint8": "UINT8"}


def request_of(path, arrays):
    """The bytes of one request."""
    head = json.dumps({"parameters": {"binary_data_output": True}, "inputs": [
        {"name": name, "datatype": NAMES[str(value.dtype)], "shape": list(value.shape),
         "parameters": {"binary_data_size": value.nbytes}} for name, value in arrays.items()]}).encode()
    body = head + b"".join(value.tobytes() for value in arrays.values())
    return (f"POST {path} HTTP/1.1\r\nHost: x\r\nInference-Header-Content-Length: {len(head)}\r\n"
            f"Content-Length: {len(body)}\r\n\r\n").encode() + body


async def client(port, request, until, times):
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 26)
    try:
        while time.perf_counter() < until:
            start = time.perf_counter()
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            if b" 200 " not in head.split(b"\r\n", 1)[0]:
                raise RuntimeError(head.decode())
            length = int(head.lower().partition(b"\r\ncontent-length:")[2].split(b"\r\n", 1)[0])
            await reader.readexactly(length)
            times.append(time.perf_counter() - start)
    finally:
        writer.close()


def load(port, request, clients, seconds):
    """Requests a second, and the times of all."""
    async def run():
        times = []
        start = time.perf_counter()
        await asyncio.gather(*(client(port, request, start + seconds, times) for _ in range(clients)))
        return len(times) / (time.perf_counter() - start), times
    return asyncio.run(run())


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@contextlib.contextmanager
def running(words, port, **environment):
    process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                               env={**os.environ, **environment})
    os.set_blocking(process.stderr.fileno(), False)
    try:
        end = time.monotonic() + 180
        while time.monotonic() < end and process.poll() is None:
            try:
                with socket.create_connection(("127.0.0.1", port), 1) as one:
                    one.sendall(b"GET /v2/health/ready HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
                    if b" 200 " in one.recv(100):
                        yield port
                        return
            except OSError:
                pass
            time.sleep(0.2)
        raise RuntimeError(f"{words[0]} did not start: {(process.stderr.read() or b'')[-2000:].decode()}")
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()


def server(name, model, program):
    port = free_port()
    if name == "aglow":
        return running([str(program), "serve", str(model), "--http-port", str(port), "--no-grpc"], port)
    return running([sys.executable, str(ROOT / "bench" / "serve_peers.py"), name, str(model), str(port)], port)


def bare(program, model, seconds):
    """Microseconds of a run of one caller."""
    done = subprocess.run([program, "bench", model, "--json", "--seconds", str(seconds)], capture_output=True, text=True,
                          check=True)
    return 1e6 / json.loads(done.stdout)["runs_per_s"]


def measure(options, model):
    name = pathlib.Path(model).stem
    arrays = inputs_of(model, options.dims)
    results = {}
    with contextlib.ExitStack() as stack:
        ports = {}
        for peer in ["aglow", *options.peers]:
            try:
                ports[peer] = stack.enter_context(server(peer, model, options.program))
            except RuntimeError as fault:
                print(f"  {peer}: left out: {fault}")
        request = request_of(f"/v2/models/{name}/infer", arrays)
        for port in ports.values():
            load(port, request, 1, 1)
        for clients in options.clients:
            for peer, port in ports.items():
                rate, times = load(port, request, clients, options.seconds)
                quantiles = np.quantile(times, [0.5, 0.99]) * 1e3
                results.setdefault(peer, []).append({"clients": clients, "rate": rate, "p50_ms": quantiles[0],
                                                     "p99_ms": quantiles[1], "mean_us": statistics.mean(times) * 1e6})
                print(f"  {name:14} {peer:8} {clients:3} clients {rate:9.1f}/s   p50 {quantiles[0]:8.2f} ms   "
                      f"p99 {quantiles[1]:8.2f} ms", flush=True)
    for peer in results:
        if peer == "aglow":
            continue
        best = max(results[peer], key=lambda row: row["rate"])
        rates = [row["rate"] for row in results["aglow"] if row["p99_ms"] <= best["p99_ms"]]
        ratio = max(rates) / best["rate"] if rates else 0.0
        print(f"  {name:14} aglow / {peer}: {ratio:.2f} at a p99 of {best['p99_ms']:.2f} ms")
    with contextlib.suppress(subprocess.CalledProcessError):
        print(f"  {name:14} overhead of a request: {results['aglow'][0]['mean_us'] - bare(options.program, model, 2):.0f} us")
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", help="instead of --models")
    parser.add_argument("--models", default="minilm,mobilenet_v2", help="of build/bench-models")
    parser.add_argument("--peers", default="fastapi")
    parser.add_argument("--clients", default="1,2,4,8")
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--dim", action="append", default=[], help="NAME=N: sizes of open dimensions")
    parser.add_argument("--program", default=ROOT / "build" / "aglow")
    options = parser.parse_args()
    options.peers = [name for name in options.peers.split(",") if name]
    options.clients = [int(number) for number in options.clients.split(",")]
    options.dims = {name: int(size) for name, _, size in (dim.partition("=") for dim in options.dim)}
    files = options.files or [MODELS / f"{name}.onnx" for name in options.models.split(",")]
    results = {pathlib.Path(file).stem: measure(options, file) for file in files}
    folder = ROOT / "build" / "bench-results"
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=folder, prefix="serve-", suffix=".json", delete=False) as file:
        json.dump(results, file, indent=1)
    print(f"written to {file.name}")


if __name__ == "__main__":
    main()
