#!/usr/bin/env python3
"""Measures how soon a package is ready to run, beside ONNX Runtime on the model that it was made of.

    start.py MODEL.onnx… [--rounds 9]

Outputs are compared first: those of the package are the model's own bits, and near those of ONNX Runtime. Then both take
turns, each time in a new process, with all files in the system's cache. Aglow's time is that of opening the package, as
`aglow bench` tells it; ONNX Runtime's that of making a session, in a Python that has imported it. Memory is what a
process has for itself when the model is ready, while another has it open; of ONNX Runtime's, what the session adds.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = pathlib.Path(os.environ.get("AGLOW_BIN", ROOT / "build" / "aglow"))

SESSION = """
import json, sys, time
import numpy, onnxruntime
def private():
    return sum(int(l.split()[1]) for l in open("/proc/self/smaps_rollup") if l.startswith("Private_")) * 1024e-6
options = onnxruntime.SessionOptions()
options.intra_op_num_threads, options.log_severity_level = int(sys.argv[2]), 3
before, start = private(), time.perf_counter()
session = onnxruntime.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
print(json.dumps({"ms": (time.perf_counter() - start) * 1e3, "mb": private() - before}))
if len(sys.argv) > 3:
    feeds = {i.name: numpy.load(f"{sys.argv[3]}/{k}.npy") for k, i in enumerate(session.get_inputs())}
    for k, value in enumerate(session.run(None, feeds)):
        numpy.save(f"{sys.argv[3]}/expected{k}.npy", value)
"""


def aglow(*words):
    return subprocess.run([PROGRAM, *map(str, words)], check=True, capture_output=True, text=True).stdout


def session(model, threads, *words):
    text = subprocess.run([sys.executable, "-c", SESSION, str(model), str(threads), *map(str, words)], check=True,
                          capture_output=True, text=True).stdout
    return json.loads(text)


def write_inputs(package, folder):
    """Random values for the inputs that `aglow inspect` names; gives the options of `run`."""
    rng, options = numpy.random.default_rng(1), []
    lines = [line.split() for line in aglow("inspect", package).splitlines() if line.startswith("input ")]
    for k, (_, name, _, kind) in enumerate(lines):
        shape = tuple(int(size) for size in kind[kind.index("[") + 1:-1].split(",") if size)
        value = (rng.standard_normal(shape).astype("float32") if kind.startswith("f32") else
                 rng.integers(0, 2, shape).astype({"i64": "int64", "i32": "int32"}[kind[:3]]))
        numpy.save(folder / f"{k}.npy", value)
        options += ["--input", f"{name}={folder / f'{k}.npy'}"]
    return options


def compare(model, package, threads, folder):
    options = write_inputs(package, folder)
    aglow("run", model, *options, "-o", folder / "model", "--cache", "off")
    aglow("run", package, *options, "-o", folder / "package")
    session(model, threads, folder)
    for file in sorted((folder / "model").glob("*.npy")):
        own, packed = numpy.load(file), numpy.load(folder / "package" / file.name)
        if own.tobytes() != packed.tobytes():
            sys.exit(f"{model}: output {file.stem} of the package differs from the model's")
        expected = numpy.load(folder / f"expected{file.stem}.npy")
        if not numpy.allclose(packed, expected, rtol=1e-3, atol=1e-3 * numpy.abs(expected).max()):
            sys.exit(f"{model}: output {file.stem} differs from ONNX Runtime's")


def opened(package, threads):
    found = json.loads(aglow("bench", package, "--threads", threads, "--runs", 1, "--json"))
    return {"ms": (found["load_s"] + found["compile_s"]) * 1e3, "mb": found["ready_mb"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    options = parser.parse_args()
    print(f"{'model':<20} {'ms':>9} {'MB':>9} {'ORT ms':>9} {'ORT MB':>9}")
    for model in options.models:
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            aglow("compile", model, "-o", folder, "--emit", "package")
            package = folder / f"{model.stem}.aglow"
            compare(model, package, options.threads, folder)
            holder = subprocess.Popen([PROGRAM, "bench", package, "--seconds", "1000"], stdout=subprocess.DEVNULL)
            rows, others = [], []
            try:
                time.sleep(1)
                holder.send_signal(19)  # it holds the file, and does not compute
                for _ in range(options.rounds):
                    rows.append(opened(package, options.threads))
                    others.append(session(model, options.threads))
            finally:
                holder.kill()
                holder.wait()
            middle = lambda key, of: statistics.median(row[key] for row in of)
            print(f"{model.stem:<20} {middle('ms', rows):>9.2f} {middle('mb', rows):>9.2f} "
                  f"{middle('ms', others):>9.2f} {middle('mb', others):>9.2f}", flush=True)


if __name__ == "__main__":
    main()
