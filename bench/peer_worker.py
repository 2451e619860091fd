#!/usr/bin/env python3
"""One engine with one model, driven by peers.py: loads, then measures whenever it is asked to.

    peer_worker.py ENGINE MODEL THREADS STREAMS

Commands come as lines of JSON on stdin: {"do": "output", "file": F} writes the first output, {"do": "measure",
"seconds": S} times runs. Each is answered by one line of JSON on stdout; the first line says how loading went. With
several streams as many threads call at once, and the engine is set up for throughput.
"""
import json
import os
import sys
import threading
import time

import numpy

import export_models


def load_onnxruntime(name, threads, streams):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads if streams < threads else 1  # each run on the thread of its caller
    options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(export_models.model_file(name)), options,
                                           providers=["CPUExecutionProvider"])
    inputs = {key: numpy.load(path) for key, path in export_models.input_files(name).items()}
    return onnxruntime.__version__, [lambda: session.run(None, inputs)[0]] * streams


def load_openvino(name, threads, streams):
    import openvino
    core = openvino.Core()
    hint = {"NUM_STREAMS": 1, "PERFORMANCE_HINT": "LATENCY"} if streams == 1 else {"PERFORMANCE_HINT": "THROUGHPUT"}
    compiled = core.compile_model(str(export_models.model_file(name)), "CPU", {
        "INFERENCE_NUM_THREADS": threads, "INFERENCE_PRECISION_HINT": "f32", **hint})

    def runner():
        request = compiled.create_infer_request()
        for key, path in export_models.input_files(name).items():
            request.set_tensor(key, openvino.Tensor(numpy.load(path)))

        def run():
            request.infer()
            return request.get_output_tensor(0).data
        return run
    return openvino.__version__.split("-")[0], [runner() for _ in range(streams)]


def load_torch(name, threads, streams):
    if streams > 1:
        sys.exit("torch is measured with one stream only")
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
    return torch.__version__, [run]


ENGINES = {"onnxruntime": load_onnxruntime, "openvino": load_openvino, "torch": load_torch}


def peak_rss_mb():
    with open("/proc/self/status", encoding="ascii") as status:
        kib = next(int(line.split()[1]) for line in status if line.startswith("VmHWM:"))
    return kib * 1024 / 1e6


def measure(runs, seconds):
    """The times of all runs in ms, and how many ended in a second."""
    times, begin = [], time.perf_counter()

    def work(run):
        count = 0
        while count < 3 or time.perf_counter() < begin + seconds:
            start = time.perf_counter()
            run()
            times.append((time.perf_counter() - start) * 1e3)
            count += 1

    others = [threading.Thread(target=work, args=(run,)) for run in runs[1:]]
    for thread in others:
        thread.start()
    work(runs[0])
    for thread in others:
        thread.join()
    return {"times_ms": times, "per_s": len(times) / (time.perf_counter() - begin)}


def main():
    engine, name, threads, streams = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print must not get between the answers

    def answer(**values):
        print(json.dumps(values), file=answers, flush=True)

    start = time.perf_counter()
    version, runs = ENGINES[engine](name, threads, streams)
    runs[0]()
    answer(version=version, load_s=time.perf_counter() - start)
    for line in sys.stdin:
        command = json.loads(line)
        if command["do"] == "output":
            numpy.save(command["file"], runs[0]())
            answer()
        else:
            measure(runs, command["seconds"] / 10)
            answer(**measure(runs, command["seconds"]), peak_rss_mb=peak_rss_mb())


if __name__ == "__main__":
    main()
