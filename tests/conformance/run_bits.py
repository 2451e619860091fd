#!/usr/bin/env python3
"""Runs models with several numbers of threads, and several times at once: all outputs must be the same bytes.

    PYTHONPATH=build/python run_bits.py FOLDER|MODEL.onnx…

A folder holds NAME/model.onnx with NAME/test_data_set_*/input_*.pb, or Caffe2 nets NAME/predict_net.pb with init_net.pb,
as run_models.py takes them, or NAME.onnx with inputs in NAME/INPUT.npy; inputs that are not there are drawn. Every model
has a process of its own. Fails where bytes differ or a run does, unless the model is not supported at all.
"""
import argparse
import concurrent.futures
import fnmatch
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

import numpy as np  # noqa: E402
import onnx  # noqa: E402
import run_models  # noqa: E402

from harness import case, onnx_cases, report  # noqa: E402

THREADS = (1, 2, 3, 7, 16)
STREAMS = 8  # runs at once
UNSUPPORTED = 3  # exit code, as the program has it
NET = "predict_net.pb"


def drawn(spec, seed):
    """A value of the model's input; sizes that are not known are 1."""
    random = np.random.default_rng(seed)
    shape = [size if isinstance(size, int) else 1 for size in spec.shape or ()]
    kind = np.dtype(spec.dtype)
    values = random.normal(size=shape) if kind.kind == "f" else random.integers(0, 2, shape)
    return np.asarray(values).astype(kind)


def inputs_of(path, model, sets):
    """Lists of inputs by name."""
    if path.name == NET:
        entry = run_models.manifest(path.parents[1])[path.parent.name]
        kinds = {spec.name: spec.dtype for spec in model.inputs}
        return [{name: np.load(path.parent / f"input_{i}.npy").astype(kinds[name])
                 for i, (name, *_) in enumerate(entry["inputs"])}]
    folders = sorted(path.parent.glob("test_data_set_*"))[:sets]
    if folders:
        graph = onnx.load(path, load_external_data=False).graph
        preset = {tensor.name for tensor in graph.initializer}
        taken = [value for value in graph.input if value.name not in preset] or graph.input
        found = [onnx_cases.files_of(folder, "input", taken) for folder in folders]
        return [dict(zip((value.name for value in taken), values)) for values in found]
    files = {file.stem: np.load(file) for file in path.with_suffix("").glob("*.npy")}
    return [{spec.name: files.get(spec.name, drawn(spec, seed)) for spec in model.inputs if not spec.has_default}
            for seed in range(sets)]


def flat(value):
    """The bytes of an output, whatever it is made of."""
    if isinstance(value, dict):
        return flat(list(value.items()))
    if isinstance(value, (list, tuple)):
        return b"|".join(flat(part) for part in value)
    array = np.asarray(value)
    return f"{array.dtype} {array.shape} ".encode() + (repr(array.tolist()).encode() if array.dtype == object
                                                       else array.tobytes())


def differences(source, threads=THREADS, streams=STREAMS, sets=2):
    """What differs from one thread's outputs, as lines; and how many runs were compared. A file, or a model in memory
    and its inputs."""
    with tempfile.TemporaryDirectory(prefix="aglow_bits_") as cache:  # the code for several threads is the same
        return differences_by(cache, source, threads, streams, sets)


def differences_by(cache, source, threads, streams, sets):
    import aglow
    path, given = (source, None) if isinstance(source, pathlib.Path) else (None, source)
    what = str(path) if path else given[0]
    init = str(path.with_name("init_net.pb")) if path and path.name == NET else None
    bad, runs, wanted = [], 0, None
    for count in threads:
        model = aglow.compile(what, init=init, backend="cpu", threads=count, contexts=streams, cache=cache)
        inputs = inputs_of(path, model, sets) if path else given[1]
        work = list(enumerate(inputs)) * -(-streams // len(inputs))

        def outputs(item, model=model):
            return item[0], [(name, flat(value)) for name, value in model.run(item[1]).items()]

        found = [("", *outputs(item)) for item in enumerate(inputs)]
        with concurrent.futures.ThreadPoolExecutor(streams) as pool:
            found += [(f", {streams} runs at once", *result) for result in pool.map(outputs, work)]
        wanted = wanted or [values for _, _, values in found[:len(inputs)]]
        runs += len(found)
        bad += [f"{count} threads{how}: output '{name}' differs"
                for how, number, values in found for (name, got), (_, first) in zip(values, wanted[number]) if got != first]
    return bad, runs


def one(path, sets):
    """The process of one model."""
    import aglow
    try:
        bad, runs = differences(path, sets=sets)
    except aglow.UnsupportedError as fault:
        print(fault)
        return UNSUPPORTED
    print("; ".join(bad[:3]) or f"{runs} runs alike")
    return 1 if bad else 0


def verdict(path, options):
    start = time.monotonic()
    try:
        done = subprocess.run([sys.executable, __file__, "--one", "--sets", str(options.sets), str(path)],
                              capture_output=True, text=True, timeout=options.timeout)
    except subprocess.TimeoutExpired:
        return case.Verdict(case.HANG, f"took longer than {options.timeout} s", options.timeout)
    kind = {0: case.PASS, UNSUPPORTED: case.UNSUPPORTED, 1: case.WRONG}.get(done.returncode, case.CRASH)
    lines = (done.stdout.strip() or done.stderr.strip() or "nothing").splitlines()
    return case.Verdict(kind, lines[-1], time.monotonic() - start)


def models_of(paths):
    for path in paths:
        if path.is_file():
            yield path.stem, path
            continue
        for file in sorted([*path.glob("*/model.onnx"), *path.glob(f"*/{NET}"), *path.glob("*.onnx")]):
            yield (file.parent.name if file.name in ("model.onnx", NET) else file.stem), file


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+", type=pathlib.Path, metavar="FOLDER|MODEL")
    parser.add_argument("--filter", default="*", metavar="GLOB")
    parser.add_argument("--sample", type=int, default=1, metavar="N", help="only every Nth model")
    parser.add_argument("--sets", type=int, default=2, help="inputs of a model (default: %(default)s)")
    parser.add_argument("--timeout", type=float, default=900)
    parser.add_argument("--junit", metavar="FILE")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        return one(options.paths[0], options.sets)
    found = [(name, path.resolve()) for name, path in models_of(options.paths) if fnmatch.fnmatch(name, options.filter)]
    verdicts = {}
    for name, path in found[::options.sample]:
        verdicts[name] = verdict(path, options)
        report.show(name, verdicts[name])
    if not verdicts:
        sys.exit(f"{options.paths[0]}: no models")
    return report.finish(verdicts, "bits", options.junit)


if __name__ == "__main__":
    sys.exit(main())
