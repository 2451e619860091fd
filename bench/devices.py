#!/usr/bin/env python3
"""Measures a device of OpenCL beside the CPU backend.

    python3 bench/devices.py [--program build/aglow] [--device opencl] [--threads 2] [--rounds 3] [MODEL.onnx…]

Both take turns, each in a process of its own; the table has the median of all rounds, and how many times the CPU
backend's time the device takes. With PoCL, which runs kernels on the processor, POCL_MAX_PTHREAD_COUNT is the number
of threads.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[1]
MODELS = [ROOT / "build" / "bench-models" / f"{name}.onnx" for name in ("resnet50", "mobilenet_v2", "bert_base")]


def milliseconds(options, backend, model):
    env = dict(os.environ, POCL_MAX_PTHREAD_COUNT=str(options.threads))
    command = [options.program, "bench", model, "--backend", backend, "--threads", str(options.threads), "--json",
               "--seconds", str(options.seconds), "--cache", "off"]
    ran = subprocess.run(command, env=env, stdout=subprocess.PIPE, check=True)
    return json.loads(ran.stdout)["median_ms"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=str(ROOT / "build" / "aglow"))
    parser.add_argument("--device", default="opencl")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("models", nargs="*", default=[str(model) for model in MODELS])
    options = parser.parse_args()
    print(f"{'model':24} {'cpu ms':>10} {'device ms':>10} {'times':>6}")
    for model in options.models:
        times = {"cpu": [], options.device: []}
        for _ in range(options.rounds):
            for backend, taken in times.items():
                taken.append(milliseconds(options, backend, model))
        cpu, device = (statistics.median(taken) for taken in times.values())
        print(f"{pathlib.Path(model).stem:24} {cpu:10.2f} {device:10.2f} {device / cpu:6.2f}", flush=True)


if __name__ == "__main__":
    main()
