#!/usr/bin/env python3
"""One engine with one model, driven by peers.py: loads, then measures whenever it is asked to.

    peer_worker.py ENGINE MODEL THREADS

Commands come as lines of JSON on stdin: {"do": "output", "file": F} writes the first output, {"do": "measure",
"seconds": S} times runs. Each is answered by one line of JSON on stdout; the first line says how loading went.
"""
import json
import os
import sys
import time

import numpy

import export_models


def load_onnxruntime(name, threads):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(export_models.model_file(name)), options,
                                           providers=["CPUExecutionProvider"])
    inputs = {key: numpy.load(path) for key, path in export_models.input_files(name).items()}
    return onnxruntime.__version__, lambda: session.run(None, inputs)[0]


def load_openvino(name, threads):
    import openvino
    core = openvino.Core()
    compiled = core.compile_model(str(export_models.model_file(name)), "CPU", {
        "INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1, "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": "f32"})
    request = compiled.create_infer_request()
    for key, path in export_models.input_files(name).items():
        request.set_tensor(key, openvino.Tensor(numpy.load(path)))

    def run():
        request.infer()
        return request.get_output_tensor(0).data
    return openvino.__version__.split("-")[0], run


def load_torch(name, threads):
    import torch
    import torch._inductor.config
    torch.set_num_threads(threads)
    torch._inductor.config.freezing = True  # weights are constants, as for the others
    model, inputs = export_models.build(name, attention="sdpa")
    compiled = torch.compile(model)
    values = [torch.from_numpy(numpy.load(export_models.input_files(name)[key])) for key in inputs]

    def run():
        with torch.inference_mode():
            return compiled(*values).numpy()
    return torch.__version__, run


ENGINES = {"onnxruntime": load_onnxruntime, "openvino": load_openvino, "torch": load_torch}


def peak_rss_mb():
    with open("/proc/self/status", encoding="ascii") as status:
        kib = next(int(line.split()[1]) for line in status if line.startswith("VmHWM:"))
    return kib * 1024 / 1e6


def measure(run, seconds):
    times = []
    stop = time.perf_counter() + seconds
    while len(times) < 3 or time.perf_counter() < stop:
        start = time.perf_counter()
        run()
        times.append((time.perf_counter() - start) * 1e3)
    return times


def main():
    engine, name, threads = sys.argv[1], sys.argv[2], int(sys.argv[3])
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print must not get between the answers

    def answer(**values):
        print(json.dumps(values), file=answers, flush=True)

    start = time.perf_counter()
    version, run = ENGINES[engine](name, threads)
    run()
    answer(version=version, load_s=time.perf_counter() - start)
    for line in sys.stdin:
        command = json.loads(line)
        if command["do"] == "output":
            numpy.save(command["file"], run())
            answer()
        else:
            measure(run, command["seconds"] / 10)
            answer(times_ms=measure(run, command["seconds"]), peak_rss_mb=peak_rss_mb())


if __name__ == "__main__":
    main()
