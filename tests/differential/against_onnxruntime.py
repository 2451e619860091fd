#!/usr/bin/env python3
"""Compares cases that `differential --standard --onnx-dir DIR` wrote with onnxruntime: against_onnxruntime.py DIR.

Every element has to be as near to Aglow's as the bound beside it says, times a margin for functions that engines are
free to approximate. Models that onnxruntime has no kernels for are counted by their reason.
"""
import collections
import pathlib
import re
import sys

import numpy as np
import onnx
import onnxruntime

MARGIN = 16


def run(folder):
    """The outputs by name, or the reason why there are none."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        session = onnxruntime.InferenceSession(str(folder / "model.onnx"), options, providers=["CPUExecutionProvider"])
        inputs = {i.name: np.load(folder / f"in_{i.name}.npy") for i in session.get_inputs()}
        names = [o.name for o in session.get_outputs()]
        return dict(zip(names, session.run(names, inputs))), None
    except Exception as error:  # noqa: BLE001: the binding's exceptions have no common base
        return None, str(error)


def difference(folder, name, got):
    expected, bound = np.load(folder / f"out_{name}.npy"), np.load(folder / f"bound_{name}.npy")
    if got.dtype != expected.dtype or got.shape != expected.shape:
        return f"{got.dtype}{list(got.shape)} instead of {expected.dtype}{list(expected.shape)}"
    with np.errstate(all="ignore"):
        same = (got == expected) | (np.isnan(got) & np.isnan(expected)) if got.dtype.kind == "f" else got == expected
        near = np.abs(got.astype(np.float64) - expected.astype(np.float64)) <= MARGIN * bound
    bad = ~(same | near | np.isinf(bound))
    if not bad.any():
        return None
    at = tuple(int(i) for i in np.argwhere(bad)[0])
    return f"output {name} at {list(at)}: {expected[at]} expected, {got[at]} from onnxruntime (bound {bound[at]})"


def reason_of(error):
    found = re.search(r"Could not find an implementation for (\w+)|(INVALID_GRAPH|NOT_IMPLEMENTED|INVALID_ARGUMENT|"
                      r"RUNTIME_EXCEPTION|FAIL)", error)
    return found.group(0) if found else error[:80]


def main():
    folders = sorted(p for p in pathlib.Path(sys.argv[1]).iterdir() if (p / "model.onnx").is_file())
    compared = differences = 0
    refused = collections.Counter()
    for folder in folders:
        onnx.checker.check_model(onnx.load(folder / "model.onnx"), full_check=True)
        outputs, error = run(folder)
        if error is not None:
            refused[reason_of(error)] += 1
            continue
        compared += 1
        for name, got in outputs.items():
            found = difference(folder, name, got)
            if found:
                differences += 1
                ops = " ".join(n.op_type for n in onnx.load(folder / "model.onnx").graph.node)
                print(f"{folder.name}: {found} [{ops}]")
                break
    print(f"{len(folders)} models, {compared} compared, {differences} differences, {sum(refused.values())} refused")
    for reason, count in refused.most_common():
        print(f"  {count} {reason}")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
