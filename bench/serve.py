#!/usr/bin/env python3
"""Measures `aglow serve` beside ONNX Runtime behind FastAPI with uvicorn, and behind Ray Serve.

    ./dev bench serve [--models minilm,mobilenet_v2] [--peers fastapi,ray] [--clients 1,2,4,8] [--rounds 3] [MODEL.onnx…]

Every server gets the same requests (binary tensors over HTTP, connections kept) from as many clients at a time, each of
which waits for its answer (bench/serve_load.cpp). Answers are compared before anything is measured, servers take turns,
and figures are medians of the rounds, with the least and the most. The ratio is that of requests a second at equal p99:
the most that Aglow gives with a p99 no worse than the rival's where that is at its best.

overhead: the median time of a request of one client against that of a run by `aglow bench` on the same model, threads
and machine, in turns.
"""
import argparse
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
LOAD = ROOT / "build" / "bench" / "serve_load"
TOLERANCE = 2e-3  # of the largest value


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
KINDS = {name: kind for kind, name in NAMES.items()}


def request_of(path, arrays):
    """The bytes of one request."""
    head = json.dumps({"parameters": {"binary_data_output": True}, "inputs": [
        {"name": name, "datatype": NAMES[str(value.dtype)], "shape": list(value.shape),
         "parameters": {"binary_data_size": value.nbytes}} for name, value in arrays.items()]}).encode()
    body = head + b"".join(value.tobytes() for value in arrays.values())
    return (f"POST {path} HTTP/1.1\r\nHost: x\r\nInference-Header-Content-Length: {len(head)}\r\n"
            f"Content-Length: {len(body)}\r\n\r\n").encode() + body


def outputs_of(answer):
    """The arrays of an answer, head and body, by name."""
    head, _, body = answer.partition(b"\r\n\r\n")
    at = int(head.lower().partition(b"inference-header-content-length:")[2].split(b"\r\n", 1)[0])
    outputs = {}
    for tensor in json.loads(body[:at])["outputs"]:
        size = tensor["parameters"]["binary_data_size"]
        outputs[tensor["name"]] = np.frombuffer(body[at:at + size], KINDS[tensor["datatype"]]).reshape(tensor["shape"])
        at += size
    return outputs


def load(port, request, clients, seconds, answer=None):
    """What bench/serve_load.cpp says of so many clients."""
    words = [LOAD, str(port), request, str(clients), str(seconds), *([answer] if answer else [])]
    return json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@contextlib.contextmanager
def running(words, port):
    """A server as a process, once it is ready."""
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log)
        try:
            end = time.monotonic() + 180
            while time.monotonic() < end and process.poll() is None:
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1) as one:
                    one.sendall(b"GET /v2/health/ready HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
                    if b" 200 " in one.recv(100):
                        break
                time.sleep(0.2)
            else:
                log.seek(0)
                raise RuntimeError(f"{words[0]} did not start: {log.read()[-2000:].decode()}")
            yield port
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
    return json.loads(done.stdout)["median_ms"] * 1e3


def spread(values):
    return f"{statistics.median(values):9.1f} ({min(values):.1f} to {max(values):.1f})"


def compare(name, ports, request, folder):
    """Whether all servers give the same numbers, up to rounding."""
    answers = {}
    for peer, port in ports.items():
        load(port, request, 1, 1, folder / peer)
        answers[peer] = outputs_of((folder / peer).read_bytes())
    for peer, outputs in answers.items():
        for key, value in answers["aglow"].items():
            far = np.abs(outputs[key].astype(np.float64) - value).max() / max(np.abs(value).max(), 1e-9)
            if not far <= TOLERANCE:
                sys.exit(f"{name}: output {key} of {peer} is off by {far:.2g} of the largest value")
    print(f"  {name:14} outputs of {', '.join(answers)} agree")


def measure(options, model, folder):
    name = pathlib.Path(model).stem
    request = folder / f"{name}.request"
    request.write_bytes(request_of(f"/v2/models/{name}/infer", inputs_of(model, options.dims)))
    rows, overheads = {}, []
    with contextlib.ExitStack() as stack:
        ports = {}
        for peer in ["aglow", *options.peers]:
            ports[peer] = stack.enter_context(server(peer, model, options.program))
        compare(name, ports, request, folder)
        for _ in range(options.rounds):
            for clients in options.clients:
                for peer, port in ports.items():
                    rows.setdefault((peer, clients), []).append(load(port, request, clients, options.seconds))
            alone = load(ports["aglow"], request, 1, options.seconds)["p50_us"]
            overheads.append(alone - bare(options.program, model, options.seconds))
    results = {}
    for (peer, clients), runs in rows.items():
        rates, tails = [run["rate"] for run in runs], [run["p99_us"] / 1e3 for run in runs]
        results.setdefault(peer, []).append({"clients": clients, "rate": statistics.median(rates),
                                             "p99_ms": statistics.median(tails), "runs": runs})
        print(f"  {name:14} {peer:8} {clients:3} clients {spread(rates)}/s   p99 {spread(tails)} ms")
    ratios = {}
    for peer in options.peers:
        best = max(results[peer], key=lambda row: row["rate"])
        rates = [row["rate"] for row in results["aglow"] if row["p99_ms"] <= best["p99_ms"]]
        ratios[peer] = max(rates, default=0.0) / best["rate"]
        print(f"  {name:14} aglow / {peer}: {ratios[peer]:.2f} at a p99 of {best['p99_ms']:.2f} ms")
    print(f"  {name:14} overhead of a request: {spread(overheads)} us", flush=True)
    return {"servers": results, "ratios": ratios, "overhead_us": overheads}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", help="instead of --models")
    parser.add_argument("--models", default="minilm,mobilenet_v2", help="of build/bench-models")
    parser.add_argument("--peers", default="fastapi,ray")
    parser.add_argument("--clients", default="1,2,4,8")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=4, help="of each measurement")
    parser.add_argument("--dim", action="append", default=[], help="NAME=N: sizes of open dimensions")
    parser.add_argument("--program", default=ROOT / "build" / "aglow")
    parser.add_argument("--export", help="the Python that has torch, which writes models that are not there yet")
    options = parser.parse_args()
    options.peers = [name for name in options.peers.split(",") if name]
    options.clients = [int(number) for number in options.clients.split(",")]
    options.dims = {name: int(size) for name, _, size in (dim.partition("=") for dim in options.dim)}
    files = options.files or [MODELS / f"{name}.onnx" for name in options.models.split(",")]
    missing = [pathlib.Path(file).stem for file in files if not pathlib.Path(file).exists()]
    if missing and not options.files and options.export:
        subprocess.run([options.export, ROOT / "bench" / "export_models.py", "--models", ",".join(missing)], check=True)
    with tempfile.TemporaryDirectory() as folder:
        results = {pathlib.Path(file).stem: measure(options, file, pathlib.Path(folder)) for file in files}
    folder = ROOT / "build" / "bench-results"
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=folder, prefix="serve-", suffix=".json", delete=False) as file:
        json.dump(results, file, indent=1)
    print(f"written to {os.path.relpath(file.name, ROOT)}")


if __name__ == "__main__":
    main()
