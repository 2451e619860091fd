#!/usr/bin/env python3
"""Runs whole models with known answers through the program.

--models is a folder of NAME/model.onnx with NAME/test_data_set_*/input_*.pb and output_*.pb, or of Caffe2 nets,
NAME/predict_net.pb and init_net.pb with NAME/input_*.npy and output_*.npy. Its manifest.json gives names an rtol and an
atol where they need others than the usual ones, and nets the names of their inputs. Fails when an answer is wrong, or when the program crashes, hangs or
ends with another exit code than 0 (done) or 3 (not supported).
"""
import argparse
import fnmatch
import json
import pathlib
import shlex
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

import numpy as np  # noqa: E402
import onnx  # noqa: E402

from harness import case, onnx_cases, report, tensors  # noqa: E402


def manifest(folder):
    path = folder / "manifest.json"
    entries = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    return {entry["name"]: entry for entry in entries}


def run_net(options, folder, entry, rtol, atol):
    """A Caffe2 net; the manifest names its inputs in the order of their files."""
    with tempfile.TemporaryDirectory(prefix="aglow_net_") as place:
        outputs = [np.load(folder / f"output_{i}.npy") for i in range(len(entry["outputs"]))]
        (pathlib.Path(place) / "0").mkdir()
        for i, value in enumerate(outputs):
            tensors.save(f"{place}/0/out_{i}", value)
        record = {"inputs": [[[name, str(folder / f"input_{i}.npy")] for i, (name, *_) in enumerate(entry["inputs"])]],
                  "expected": [len(outputs)], "rtol": rtol, "atol": atol,
                  "outputs": [onnx.helper.np_dtype_to_tensor_dtype(value.dtype) for value in outputs]}
        command = f"{options.cmd} --init {shlex.quote(str(folder / 'init_net.pb'))}"
        return case.run_case(command, folder / "predict_net.pb", place, record, timeout=options.timeout,
                             memory_mb=options.memory_mb)


def run_model(options, folder, entry):
    """Converts the data sets to the program's files and runs them."""
    rtol, atol = entry.get("rtol", 1e-3), entry.get("atol", 1e-5)
    if not (folder / "model.onnx").exists():
        return run_net(options, folder, entry, rtol, atol)
    model = onnx.load(folder / "model.onnx", load_external_data=False)
    sets = [(onnx_cases.files_of(data, "input", model.graph.input),
             onnx_cases.files_of(data, "output", model.graph.output)) for data in sorted(folder.glob("test_data_set_*"))]
    with tempfile.TemporaryDirectory(prefix="aglow_model_") as place:
        record = case.write_case(place, model, sets, rtol, atol)
        return case.run_case(options.cmd, folder / "model.onnx", place, record, timeout=options.timeout,
                             memory_mb=options.memory_mb)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cmd", default=str(ROOT / "build" / "aglow") + " run", help="program and options")
    parser.add_argument("--models", type=pathlib.Path, required=True)
    parser.add_argument("--filter", default="*", metavar="GLOB")
    parser.add_argument("-j", "--jobs", type=int, default=1)
    parser.add_argument("--timeout", type=float, default=300)
    parser.add_argument("--memory-mb", type=int, default=6144)
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--junit", metavar="FILE")
    options = parser.parse_args()
    options.models = options.models.resolve()  # programs run in folders of their own

    entries = manifest(options.models)
    found = [*options.models.glob("*/model.onnx"), *options.models.glob("*/predict_net.pb")]
    names = sorted(path.parent.name for path in found if fnmatch.fnmatch(path.parent.name, options.filter))
    if not names:
        sys.exit(f"{options.models}: no models")
    verdicts = report.run_all(
        names, lambda name: run_model(options, options.models / name, entries.get(name, {})), options.jobs)
    for name, verdict in verdicts.items():
        report.show(name, verdict)
    if options.json:
        report.write_json(options.json, verdicts, command=options.cmd)
    return report.finish(verdicts, "models", options.junit)


if __name__ == "__main__":
    sys.exit(main())
