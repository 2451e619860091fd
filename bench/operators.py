#!/usr/bin/env python3
"""Measures single operators and small blocks (operator_cases.py) in Aglow beside ONNX Runtime, on the same processors.

Outputs are compared first: what is wrong is not timed. Then both take turns, round after round. Aglow's figures come
from `aglow bench --json`, those of ONNX Runtime from runs with bound inputs and outputs: neither has Python's part of a
call in it. A round gives the fastest run of each; the ratio of a case is the median of the rounds' ratios, Aglow's time
against ONNX Runtime's: below 1 Aglow is faster.
"""
import argparse
import datetime
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy

import engines
import operator_cases
import peers

SLOW = 1.5


def save_model(case, path):
    import onnx
    from onnx import TensorProto, helper, numpy_helper
    kind_of = lambda array: helper.np_dtype_to_tensor_dtype(array.dtype)
    nodes = []
    for kind, reads, writes, attributes in case.nodes:
        domain, _, name = kind.rpartition(".")
        nodes.append(helper.make_node(name, reads, writes, domain=domain, **attributes))
    graph = helper.make_graph(
        nodes, "case",
        [helper.make_tensor_value_info(name, kind_of(array), array.shape) for name, array in case.inputs.items()],
        [helper.make_empty_tensor_value_info(name) for name in case.outputs],
        [numpy_helper.from_array(array, name) for name, array in case.constants.items()])
    model = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", case.opset),
                                                                  helper.make_opsetid("ai.onnx.ml", 3)])
    model = onnx.shape_inference.infer_shapes(model, strict_mode=False)
    for output in model.graph.output:  # where inference does not know, runtimes do
        if not output.type.WhichOneof("value"):
            output.type.tensor_type.elem_type = TensorProto.FLOAT
    onnx.save(model, path)


class OnnxRuntime:
    def __init__(self, path, case, threads):
        import onnxruntime
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        options.log_severity_level = 3
        self.session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        self.binding = self.session.io_binding()
        for name, array in case.inputs.items():
            self.binding.bind_cpu_input(name, array)
        self.outputs = self.session.run(None, case.inputs)
        for name in case.outputs:
            self.binding.bind_output(name, "cpu")

    def measure(self, seconds):
        run = lambda: self.session.run_with_iobinding(self.binding)
        best, stop = math.inf, time.perf_counter() + seconds
        runs = 0
        while runs < 3 or time.perf_counter() < stop:
            start = time.perf_counter()
            run()
            best = min(best, time.perf_counter() - start)
            runs += 1
        return best * 1e3


class Aglow:
    def __init__(self, path, case, folder, threads, program):
        words = ["--threads", str(threads)]
        for name, array in case.inputs.items():
            file = folder / f"{name}.npy"
            numpy.save(file, array)
            words += ["--input", f"{name}={file}"]
        self.call = lambda command, *more: self.run([str(program), command, str(path), *words, *more])
        out = folder / "out"
        self.call("run", "--output-dir", str(out))
        self.outputs = [numpy.load(out / f"{i}.npy") for i in range(len(case.outputs))]

    @staticmethod
    def run(command):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise engines.Unavailable(f"aglow: {engines.last_lines(done.stderr)}")
        return done.stdout

    def measure(self, seconds):
        return json.loads(self.call("bench", "--json", "--seconds", str(seconds)))["best_ms"]


def compare(case, outputs, expected):
    for got, want in zip(outputs, expected):
        if got.shape != want.shape:
            raise engines.Unavailable(f"wrong: output {got.shape}, expected {want.shape}")
        if case.tolerance is None:
            if not numpy.array_equal(got, want):
                raise engines.Unavailable("wrong: outputs differ")
        elif want.size:
            a, b = got.astype("float64"), want.astype("float64")
            error = numpy.max(numpy.abs(a - b)) / max(numpy.max(numpy.abs(b)), 1e-30)
            if not error <= case.tolerance:
                raise engines.Unavailable(f"wrong: differs by {error:.1e} of the range")


def measure(case, options):
    row = {"case": case.name}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        path = folder / "case.onnx"
        try:
            save_model(case, path)
            try:
                other = OnnxRuntime(path, case, options.threads)
            except Exception as fault:  # whatever its binding raises
                raise engines.Unavailable(f"onnxruntime: {engines.last_lines(str(fault), 1)}") from fault
            own = Aglow(path, case, folder, options.threads, options.program)
            compare(case, own.outputs, other.outputs)
        except engines.Unavailable as fault:
            return row | {"fault": str(fault)}
        rounds = []
        for _ in range(options.rounds):
            rounds.append((own.measure(options.seconds), other.measure(options.seconds)))
    return row | {"aglow_ms": min(a for a, _ in rounds), "onnxruntime_ms": min(b for _, b in rounds),
                  "ratio": statistics.median(a / b for a, b in rounds), "rounds": rounds}


def line(row):
    if "fault" in row:
        return f"{row['case']:<46} {row['fault']}"
    mark = "  <" if row["ratio"] > SLOW else ""
    return f"{row['case']:<46} {row['aglow_ms']:>10.4f} {row['onnxruntime_ms']:>10.4f} {row['ratio']:>8.2f}{mark}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="only cases whose names contain one of these (default: all)")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each engine (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=0.1, help="time of a turn (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--program", type=pathlib.Path, default=peers.ROOT / "build" / "aglow")
    parser.add_argument("--results", type=pathlib.Path, default=peers.ROOT / "build" / "bench-results", metavar="DIR",
                        help="where the figures go as JSON")
    options = parser.parse_args()
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:options.threads])
    cases = [case for case in operator_cases.CASES
             if not options.names or any(name in case.name for name in options.names)]
    if not cases:
        parser.error("no case has such a name")
    print(f"{'case':<46} {'aglow ms':>10} {'ort ms':>10} {'ratio':>8}")
    rows = []
    for case in cases:
        rows.append(measure(case, options))
        print(line(rows[-1]), flush=True)
    timed = [row for row in rows if "ratio" in row]
    slow = sorted((row for row in timed if row["ratio"] > SLOW), key=lambda row: -row["ratio"])
    if timed:
        mean = math.exp(statistics.fmean(math.log(row["ratio"]) for row in timed))
        print(f"\n{len(timed)} of {len(rows)} cases, geometric mean {mean:.3f}, {len(slow)} above {SLOW}:")
        for row in slow:
            print(line(row))
    options.results.mkdir(parents=True, exist_ok=True)
    now = datetime.datetime.now(datetime.timezone.utc)
    file = options.results / f"operators-{now:%Y%m%d-%H%M%S}.json"
    file.write_text(json.dumps({"time": now.isoformat(timespec="seconds"), "processor": peers.processor(),
                                "threads": options.threads, "seconds": options.seconds, "results": rows},
                               indent=1) + "\n", encoding="utf-8")
    print(file)
    return 0 if len(timed) == len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
