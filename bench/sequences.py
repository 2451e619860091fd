#!/usr/bin/env python3
"""Measures what a recurrent layer saves where sequences end before the last step.

    sequences.py [--threads 1] [--rounds 7]

16 sequences of 1 to 128 steps, in any order, pass an LSTM of 256 elements; beside them as many of 128 steps. Both are
runs of one model, which take turns. First, what sequences give until they end is compared, bit by bit.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import tempfile

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = pathlib.Path(os.environ.get("AGLOW_BIN", ROOT / "build" / "aglow"))
STEPS, BATCH, WIDTH = 128, 16, 256


def write_model(path):
    random = numpy.random.default_rng(0)
    weights = [numpy_helper.from_array(random.normal(size=shape).astype(numpy.float32) * 0.05, name)
               for name, shape in {"w": (1, 4 * WIDTH, WIDTH), "r": (1, 4 * WIDTH, WIDTH)}.items()]
    node = helper.make_node("LSTM", ["x", "w", "r", "", "lengths"], ["y"], hidden_size=WIDTH)
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [STEPS, BATCH, WIDTH]),
              helper.make_tensor_value_info("lengths", TensorProto.INT32, [BATCH])]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    graph = helper.make_graph([node], "sequences", inputs, outputs, weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return random


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="aglow_sequences_") as folder:
        folder = pathlib.Path(folder)
        random = write_model(folder / "lstm.onnx")
        numpy.save(folder / "x.npy", random.normal(size=(STEPS, BATCH, WIDTH)).astype(numpy.float32))
        some = random.permutation(numpy.linspace(1, STEPS, BATCH)).astype(numpy.int32)
        lengths = {"all": numpy.full(BATCH, STEPS, numpy.int32), "some": some}
        for name, value in lengths.items():
            numpy.save(folder / f"{name}.npy", value)

        def aglow(command, name, *words):
            inputs = ["--input", f"x={folder / 'x.npy'}", "--input", f"lengths={folder / name}.npy"]
            words = [PROGRAM, command, folder / "lstm.onnx", *inputs, "--threads", options.threads, *words]
            return subprocess.run([str(word) for word in words], check=True, capture_output=True, text=True).stdout

        y = {}
        for name in lengths:
            aglow("run", name, "-o", folder / f"out_{name}")
            y[name] = numpy.load(next((folder / f"out_{name}").glob("*.npy")))[:, 0]
        for i, length in enumerate(some):
            if y["some"][:length, i].tobytes() != y["all"][:length, i].tobytes() or y["some"][length:, i].any():
                raise SystemExit(f"sequence {i} of {length} steps differs")
        times = {name: [] for name in lengths}
        for _ in range(options.rounds):
            for name, found in times.items():
                found.append(json.loads(aglow("bench", name, "--seconds", 0.5, "--json"))["median_ms"])
        middle = {name: statistics.median(found) for name, found in times.items()}
        for name, found in times.items():
            spread = f"{min(found):.2f} to {max(found):.2f}"
            print(f"{lengths[name].mean():6.1f} steps on average: {middle[name]:7.2f} ms ({spread})")
        print(f"the same bits, in {middle['some'] / middle['all']:.2f} of the time")


if __name__ == "__main__":
    main()
