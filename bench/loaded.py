#!/usr/bin/env python3
"""Measures Aglow and ONNX Runtime on a machine that is busy with something else.

    python3 bench/loaded.py [--program build/aglow] [MODEL.onnx…]

loaded: two busy loops for each processor. The mean time of a run with as many threads as by default, against that of
one thread under the same load, and against ONNX Runtime's.
neighbours: a busy loop on each of half of the processors. The mean time of a run with a thread for every processor,
against that of half as many threads.

Needs numpy and onnxruntime; without the latter Aglow is measured alone. All take turns, each in a process of its own.
"""
import argparse
import contextlib
import json
import os
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
MODELS = [ROOT / "examples" / "digits" / "digits.onnx", ROOT / "build" / "bench-models" / "mobilenet_v2.onnx"]
DEFAULT = 0  # threads


@contextlib.contextmanager
def busy_loops(processors):
    """A process that counts for ever for each item, kept on that processor where it is a number."""
    loops = []
    try:
        for processor in processors:
            loops.append(subprocess.Popen([sys.executable, "-c", "while True: pass"]))
            if processor is not None:
                os.sched_setaffinity(loops[-1].pid, {processor})
        yield loops
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def aglow(options, model, threads):
    """Mean milliseconds of a run."""
    words = [] if threads == DEFAULT else ["--threads", str(threads)]
    done = subprocess.run([str(options.program), "bench", str(model), "--backend", "cpu", "--json", "--seconds",
                           str(options.seconds), *words], capture_output=True, text=True, check=True)
    return 1e3 / json.loads(done.stdout)["runs_per_s"]


def onnxruntime(options, model, threads):
    done = subprocess.run([sys.executable, __file__, "--peer", str(threads), "--seconds", str(options.seconds),
                           str(model)], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def measure_peer(model, threads, seconds):
    """What the process of the rival does."""
    import time

    import numpy
    import onnxruntime as engine
    options = engine.SessionOptions()
    options.intra_op_num_threads = threads
    session = engine.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    random = numpy.random.default_rng(1)

    def value(taken):
        shape = [n if isinstance(n, int) and n > 0 else 1 for n in taken.shape]
        if "float" in taken.type:
            return random.random(shape, numpy.float32).astype({"tensor(double)": numpy.float64}.get(taken.type, "f4"))
        return numpy.ones(shape, {"tensor(int32)": "i4", "tensor(bool)": "?"}.get(taken.type, "i8"))

    inputs = {taken.name: value(taken) for taken in session.get_inputs()}
    for _ in range(3):
        session.run(None, inputs)
    runs, begin = 0, time.perf_counter()
    while runs < 3 or time.perf_counter() < begin + seconds:
        session.run(None, inputs)
        runs += 1
    return (time.perf_counter() - begin) / runs * 1e3


def rounds(options, model, cases):
    """The median over all rounds of each (engine, threads)."""
    times = {case: [] for case in cases}
    for _ in range(options.rounds):
        for engine, threads in cases:
            times[engine, threads].append(engine(options, model, threads))
    return {case: statistics.median(found) for case, found in times.items()}


def loaded(options, model, engines):
    cases = [(engine, threads) for engine in engines for threads in (1, DEFAULT)]
    with busy_loops([None] * 2 * len(os.sched_getaffinity(0))):
        return [(engine, 1, DEFAULT, found[engine, 1], found[engine, DEFAULT])
                for found in [rounds(options, model, cases)] for engine in engines]


def neighbours(options, model, engines):
    processors = sorted(os.sched_getaffinity(0))
    half = len(processors) // 2
    cases = [(engine, threads) for engine in engines for threads in (half, len(processors))]
    with busy_loops(processors[half:]):
        return [(engine, half, len(processors), found[engine, half], found[engine, len(processors)])
                for found in [rounds(options, model, cases)] for engine in engines]


def has_rival():
    try:
        import numpy  # noqa: F401
        import onnxruntime as _  # noqa: F401
        return True
    except ImportError:
        return False


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", type=pathlib.Path, metavar="MODEL", default=MODELS)
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "build" / "aglow")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each engine (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=2, help="time of a turn (default: %(default)s)")
    parser.add_argument("--only", choices=["loaded", "neighbours"], help="one of the two measurements")
    parser.add_argument("--peer", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peer is not None:
        print(json.dumps(measure_peer(options.models[0], options.peer, options.seconds)))
        return 0
    engines = [aglow, onnxruntime] if has_rival() else [aglow]
    print(f"{'what':<11} {'model':<16} {'engine':<12} {'few':>9} {'ms':>9} {'many':>9} {'ms':>9} {'many/few':>9} "
          f"{'x aglow':>8}")
    for what in (loaded, neighbours):
        if options.only not in (None, what.__name__) or (what is neighbours and len(os.sched_getaffinity(0)) < 2):
            continue
        for model in options.models:
            rows = what(options, model, engines)
            for engine, few, many, of_few, of_many in rows:
                print(f"{what.__name__:<11} {model.stem:<16} {engine.__name__:<12} {few:>9} {of_few:>9.3f} "
                      f"{many or 'default':>9} {of_many:>9.3f} {of_many / of_few:>9.2f} {of_many / rows[0][4]:>8.2f}",
                      flush=True)
    print("ms: mean time of a run, the median of all turns. x aglow: with many threads, above 1 Aglow is faster.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
