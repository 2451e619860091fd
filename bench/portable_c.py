#!/usr/bin/env python3
"""Models as portable C (`--emit c`) beside emx-onnx-cgen's C and machine code (`--emit bundle`), one thread.

    portable_c.py [--emx emx-onnx-cgen] [--cc 'gcc -O3 -march=native'] [--seconds 0.5] [--rounds 5] MODEL.onnx…

Models have one f32 input and one f32 output; open sizes are taken as 1. The same compiler with the same options makes
programs of all C. Outputs are compared with the interpreter's first: what is wrong is not timed. Then all take turns, and
medians are printed. Needs onnx, build/aglow, and emx-onnx-cgen (pip) unless --emx is empty.
"""
import argparse
import pathlib
import shlex
import statistics
import subprocess
import tempfile

import numpy as np
import onnx

ROOT = pathlib.Path(__file__).resolve().parent.parent
TOLERANCE = 1e-4  # of the largest absolute value

# Reads the input, runs for some seconds, writes the output, and prints the seconds of a run. CALL and SETUP differ.
DRIVER = r"""
#define _POSIX_C_SOURCE 199309L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
%(declare)s
static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
static float x[%(inputs)d], y[%(outputs)d];
static void transfer(const char* path, const char* mode, float* data, size_t count) {
  FILE* file = fopen(path, mode);
  if (!file || (*mode == 'r' ? fread(data, 4, count, file) : fwrite(data, 4, count, file)) != count) exit(1);
  fclose(file);
}
int main(int count, char** words) {
  if (count != 5) return 1;
  transfer(words[1], "rb", x, %(inputs)d);
  %(setup)s
  const double limit = atof(words[4]), began = now();
  double runs = 0, taken;
  do {
    %(call)s
    ++runs;
    taken = now() - began;
  } while (taken < limit);
  transfer(words[2], "wb", y, %(outputs)d);
  printf("%%.9f\n", taken / runs);
  return 0;
}
"""


def closed(path, target):
    """The model with sizes: input and output names and shapes."""
    model = onnx.load(path)
    given = {tensor.name for tensor in model.graph.initializer}
    ports = []
    for info in [*(i for i in model.graph.input if i.name not in given), *model.graph.output]:
        shape = info.type.tensor_type.shape
        for dim in shape.dim:
            if dim.dim_value < 1:
                dim.dim_value = 1
        ports.append((info.name, [dim.dim_value for dim in shape.dim]))
    assert len(ports) == 2, f"{path}: one input and one output are expected"
    onnx.save(model, target)
    return ports


def run(*words, **how):
    return subprocess.run([str(word) for word in words], check=True, capture_output=True, text=True, **how).stdout


def aglow_driver(folder, emit, inputs, outputs):
    run(ROOT / "build" / "aglow", "compile", folder / "model.onnx", "-o", folder / emit, "--emit", emit)
    declare = ('#include "model.h"\n'
               "static _Alignas(MODEL_ALIGNMENT) uint8_t weights[MODEL_CONSTANTS_BYTES], memory[MODEL_MUTABLE_BYTES],\n"
               "    activations[MODEL_ACTIVATIONS_BYTES + 1];\n")
    setup = ("transfer(words[3], \"rb\", (float*)(void*)weights, sizeof weights / 4);\n"
             "  if (model_check(weights) != MODEL_OK) return 2;\n  memcpy(memory + MODEL_INPUT_OFFSET, x, sizeof x);")
    header = (folder / emit / "model.h").read_text()
    offsets = [line.split()[1] for line in header.splitlines() if line.startswith("#define MODEL_") and "_OFFSET " in line]
    declare += f"#define MODEL_INPUT_OFFSET {offsets[0]}\n"
    call = f"if (model(weights, memory, activations) != MODEL_OK) return 3;\n    memcpy(y, memory + {offsets[1]}, sizeof y);"
    text = DRIVER % {"declare": declare, "setup": setup, "call": call, "inputs": inputs, "outputs": outputs}
    return text, [folder / emit / ("model.c" if emit == "c" else "model.o"), f"-I{folder / emit}"], folder / emit / "model.weights.bin"


def emx_driver(folder, emx, inputs, outputs):
    run(emx, "compile", folder / "model.onnx", folder / "emx.c", "--model-name", "emx")
    text = DRIVER % {"declare": "void emx();\n_Bool emx_load(const char *path);\n", "setup": "if (!emx_load(words[3])) return 2;",
                     "call": "emx(x, y);", "inputs": inputs, "outputs": outputs}
    return text, [folder / "emx.c"], folder / "emx.bin"


def measure(path, options):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (given, shape), (_, result) = closed(path, folder / "model.onnx")
        inputs, outputs = int(np.prod(shape)), int(np.prod(result))
        x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
        np.save(folder / "x.npy", x)
        x.tofile(folder / "x")
        run(ROOT / "build" / "aglow", "run", folder / "model.onnx", "--input", f"{given}={folder / 'x.npy'}", "--backend",
            "interpreter", "-o", folder / "expected")
        expected = np.load(folder / "expected" / "0.npy").ravel()
        engines = {"aglow C": lambda: aglow_driver(folder, "c", inputs, outputs),
                   "aglow code": lambda: aglow_driver(folder, "bundle", inputs, outputs)}
        if options.emx:
            engines["emx C"] = lambda: emx_driver(folder, options.emx, inputs, outputs)
        programs = {}
        for engine, driver in engines.items():
            text, parts, weights = driver()
            source, program = folder / f"{engine.replace(' ', '_')}_main.c", folder / engine.replace(" ", "_")
            source.write_text(text)
            run(*shlex.split(options.cc), source, *parts, "-o", program, "-lm")
            words = [program, folder / "x", folder / "y", weights]
            run(*words, 0)
            error = np.abs(np.fromfile(folder / "y", np.float32) - expected).max() / np.abs(expected).max()
            if error > TOLERANCE:
                print(f"{path}: {engine} is wrong by {error:.1e}")
                continue
            programs[engine] = words
        times = {engine: [] for engine in programs}
        for _ in range(options.rounds):
            for engine, words in programs.items():
                times[engine].append(float(run(*words, options.seconds)))
    return {engine: statistics.median(taken) * 1e6 for engine, taken in times.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+", metavar="MODEL")
    parser.add_argument("--emx", default="emx-onnx-cgen")
    parser.add_argument("--cc", default="gcc -O3 -march=native")
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    for path in options.models:
        print(pathlib.Path(path).resolve().parent.name + ":", ", ".join(
            f"{engine} {taken:.1f} µs" for engine, taken in measure(path, options).items()), flush=True)


if __name__ == "__main__":
    main()
