#!/usr/bin/env python3
"""Measures what a call costs besides the work: tiny models from Python and from C++, beside ONNX Runtime.

    calls.py [--rounds 7] [--seconds 0.3]

The model adds two vectors of 16 numbers. Outputs are compared first; then all take turns, and the best of the rounds
counts, because what else happens on the machine only adds. From C++ it is the compiled library of the checkout: a
program is built with the first compiler there is (CXX), and linked with what `cmake --install` put into build/prefix.
Needs build/bench-venv (onnx, onnxruntime) and the Python module in build/python.
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import timeit

import numpy
import onnx
from onnx import TensorProto, helper

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "build" / "python"))

PROGRAM = r"""
#include <aglow/aglow.hpp>

#include <chrono>
#include <cstdio>
#include <vector>

int main(int, char** argv) {
  aglow::Model model(argv[1], aglow::Options().threads(1));
  std::vector<float> a(16, 1), b(16, 2), y(16);
  model.bindInput(0, a.data(), a.size());
  model.bindInput(1, b.data(), b.size());
  model.bindOutput(0, y.data(), y.size());
  double best = 1e9;
  for (int round = 0; round < 20; ++round) {
    const int runs = 20000;
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < runs; ++i) model.run();
    const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - begin;
    if (time.count() / runs < best) best = time.count() / runs;
  }
  if (y[0] != 3) return 1;
  std::printf("%.3f\n", best);
}
"""


def tiny():
    vectors = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [16]) for name in "aby"]
    graph = helper.make_graph([helper.make_node("Add", ["a", "b"], ["y"])], "tiny", vectors[:2], vectors[2:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def from_cpp(folder, path):
    """Microseconds of one run through the C++ interface, or why there are none."""
    prefix = ROOT / "build" / "prefix"
    source = folder / "main.cpp"
    source.write_text(PROGRAM)
    (folder / "CMakeLists.txt").write_text("cmake_minimum_required(VERSION 3.20)\nproject(calls CXX)\n"
                                           "find_package(aglow REQUIRED)\nadd_executable(calls main.cpp)\n"
                                           "target_link_libraries(calls PRIVATE aglow::aglow)\n")
    commands = [["cmake", "--install", str(ROOT / "build"), "--prefix", str(prefix)],
                ["cmake", "-S", str(folder), "-B", str(folder / "out"), f"-DCMAKE_PREFIX_PATH={prefix}",
                 "-DCMAKE_BUILD_TYPE=Release"],
                ["cmake", "--build", str(folder / "out")], [str(folder / "out" / "calls"), str(path)]]
    for command in commands:
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            return f"{' '.join(command[:2])} failed: {(done.stderr or done.stdout).strip().splitlines()[-1:]}"
    return float(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.3)
    options = parser.parse_args()
    import aglow
    model = tiny()
    a, b = numpy.ones(16, numpy.float32), numpy.full(16, 2, numpy.float32)
    compiled = aglow.compile(model, threads=1, cache=False)
    calls = {"aglow": lambda: compiled(a, b), "aglow by name": lambda: compiled(a=a, b=b)}
    try:
        import onnxruntime
        settings = onnxruntime.SessionOptions()
        settings.intra_op_num_threads = 1
        session = onnxruntime.InferenceSession(model.SerializeToString(), settings, providers=["CPUExecutionProvider"])
        calls["onnxruntime"] = lambda: session.run(None, {"a": a, "b": b})[0]
    except ImportError:
        print("onnxruntime is not installed")
    for name, call in calls.items():
        assert numpy.array_equal(call(), a + b), name
    best = dict.fromkeys(calls, float("inf"))
    count = {name: max(int(options.seconds / timeit.timeit(call, number=200) * 200), 1) for name, call in calls.items()}
    for _ in range(options.rounds):
        for name, call in calls.items():
            best[name] = min(best[name], timeit.timeit(call, number=count[name]) / count[name])
    for name, seconds in best.items():
        print(f"{name:<16} {seconds * 1e6:8.2f} us a call from Python")
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "tiny.onnx"
        onnx.save(model, path)
        found = from_cpp(pathlib.Path(folder), path)
    print(f"{'aglow':<16} {found:8.2f} us a run from C++" if isinstance(found, float) else f"from C++: {found}")


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
