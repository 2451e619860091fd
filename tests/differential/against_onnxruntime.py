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


def explanation(folder, expected_nan):
    """Why onnxruntime may differ on this model: what its kernels are known to do, by operator and element type."""
    model = onnx.shape_inference.infer_shapes(onnx.load(folder / "model.onnx"))
    graph = model.graph
    kinds = {v.name: v.type.tensor_type.elem_type for v in [*graph.input, *graph.value_info, *graph.output]}
    kinds.update({t.name: t.data_type for t in graph.initializer})
    integers = {onnx.TensorProto.INT32, onnx.TensorProto.INT64}
    tensors = {t.name: t for t in graph.initializer}
    for node in graph.node:
        kind = kinds.get(node.input[0]) if node.input else None
        if node.op_type in ("Gelu", "Shrink", "GroupNormalization") and kind == onnx.TensorProto.DOUBLE:
            return f"{node.op_type} of f64 goes through f32"
        if node.op_type == "Pow" and kind in integers:
            return "powers of integers that overflow"
        if node.op_type in ("RNN", "GRU", "LSTM"):
            lengths = node.input[4] if len(node.input) > 4 else ""
            if lengths in tensors and (onnx.numpy_helper.to_array(tensors[lengths]) == 0).any():
                return "a sequence of length 0 loses its initial state"
            if expected_nan:
                return "activations of recurrent layers swallow NaN"
        if node.op_type.startswith("Scatter") and expected_nan:
            return "the largest and smallest of scattered values leave NaN out"
        if node.op_type in ("Sigmoid", "Gelu", "GRU", "LSTM", "RNN"):
            return "the tails of sigmoid and of the error function are approximated"
    return None


def reason_of(error):
    found = re.search(r"Could not find an implementation for (\w+)|(INVALID_GRAPH|NOT_IMPLEMENTED|INVALID_ARGUMENT|"
                      r"RUNTIME_EXCEPTION|FAIL)", error)
    return found.group(0) if found else error[:80]


def main():
    folders = sorted(p for p in pathlib.Path(sys.argv[1]).iterdir() if (p / "model.onnx").is_file())
    compared = differences = 0
    refused, explained = collections.Counter(), collections.Counter()
    for folder in folders:
        try:
            onnx.checker.check_model(onnx.load(folder / "model.onnx"), full_check=True)
        except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
            differences += 1
            print(f"{folder.name}: not valid: {error}")
            continue
        outputs, error = run(folder)
        if error is not None:
            refused[reason_of(error)] += 1
            continue
        compared += 1
        for name, got in outputs.items():
            found = difference(folder, name, got)
            reason = explanation(folder, "nan expected" in found) if found else None
            if reason:
                explained[reason] += 1
                break
            if found:
                differences += 1
                ops = " ".join(n.op_type for n in onnx.load(folder / "model.onnx").graph.node)
                print(f"{folder.name}: {found} [{ops}]")
                break
    print(f"{len(folders)} models, {compared} compared, {differences} differences, {sum(explained.values())} explained, "
          f"{sum(refused.values())} refused by onnxruntime")
    for reason, count in [*explained.most_common(), *refused.most_common()]:
        print(f"  {count} {reason}")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
