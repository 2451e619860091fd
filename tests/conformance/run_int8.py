#!/usr/bin/env python3
"""Quantizes whole models by profile, and shows what it does to their answers.

--models is a folder of NAME/model.onnx with NAME/test_data_set_*/input_*.pb. Each data set, and copies of it with a
little noise, are the samples that a model is profiled with; the data sets alone are what it is judged by. Fails where
the noisiest output has less than --least decibels, or the first output is largest at another place.
"""
import argparse
import fnmatch
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

import numpy as np  # noqa: E402
import onnx  # noqa: E402
from onnx import numpy_helper  # noqa: E402

import aglow  # noqa: E402


def data_sets(folder, model):
    given = {tensor.name for tensor in model.graph.initializer}
    names = [value.name for value in model.graph.input if value.name not in given]
    for data in sorted(folder.glob("test_data_set_*")):
        files = sorted(data.glob("input_*.pb"), key=lambda path: int(path.stem.split("_")[1]))
        yield {name: numpy_helper.to_array(onnx.load_tensor(file)) for name, file in zip(names, files)}


def noisy(sample, rng, share=0.02):
    """The same with noise of a share of each input's spread, within its ends."""
    def one(array):
        if array.dtype != np.float32 or array.size < 2:
            return array
        noise = rng.normal(0, share * float(array.std()), array.shape)
        return np.clip(array + noise, array.min(), array.max()).astype(np.float32)
    return {name: one(array) for name, array in sample.items()}


def judge(options, folder):
    model = onnx.load(folder / "model.onnx")
    samples = list(data_sets(folder, model))
    rng = np.random.default_rng(1)
    profile = aglow.profile(str(folder / "model.onnx"), samples + [noisy(sample, rng) for sample in samples
                                                                   for _ in range(options.copies)])
    return aglow.quant_report(str(folder / "model.onnx"), profile, samples, layers=options.layers,
                              calibration=options.calibration, schema=options.schema,
                              keep_float=[name for name in options.keep_float.split(",") if name])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=pathlib.Path, required=True)
    parser.add_argument("--only", default="*")
    parser.add_argument("--copies", type=int, default=7)
    parser.add_argument("--least", type=float, default=25)
    parser.add_argument("--calibration", default="")
    parser.add_argument("--schema", default="")
    parser.add_argument("--keep-float", default="")
    parser.add_argument("--layers", action="store_true", help="shows what each layer alone does")
    options = parser.parse_args()
    failed = 0
    for path in sorted(options.models.glob("*/model.onnx")):
        if not fnmatch.fnmatch(path.parent.name, options.only):
            continue
        try:
            report = judge(options, path.parent)
        except aglow.UnsupportedError as fault:
            print(f"{path.parent.name:28} {fault.message[:90]}", flush=True)
            continue
        ratios = [output["sqnr_db"] for output in report.data["outputs"]]
        worst = min((ratio for ratio in ratios if ratio is not None), default=np.inf)
        rows, same = report.data.get("rows", 0), report.data.get("same_argmax", 0)
        good = worst >= options.least and same == rows
        failed += not good
        print(f"{path.parent.name:28} {worst:6.1f} dB  {same:5} of {rows:5} rows{'' if good else '   *'}", flush=True)
        if options.layers:
            print(report)
    print(f"{failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
