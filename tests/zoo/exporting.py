"""Writes entries of the zoo as ONNX files, by either of torch's exporters, with inputs and what torch computes of them.

The folder of an export holds model.onnx, in_<i>.npy, out_<i>.npy and record.json: the inputs' names, or why torch could
not export the model.
"""
import contextlib
import json
import logging
import os
import shutil
import sys
import time
import traceback
import warnings

import numpy
import onnx
import onnx_ir
import torch

import entries

EXPORTERS = ("trace", "dynamo")  # torch.onnx.export(dynamo=False) and (dynamo=True)


def export_to(entry, model, inputs, exporter, path):
    names, values = list(inputs), tuple(inputs.values())
    if exporter == "trace":
        torch.onnx.export(model, values, path, dynamo=False, input_names=names, dynamic_axes=entry.axes,
                          opset_version=entry.opset or 18)
    else:
        shapes = {"values": tuple(entry.axes.get(name, {}) for name in names)} if entry.axes else None
        options = dict(dynamo=True, input_names=names, dynamic_shapes=shapes, verbose=False)
        with entry.around_dynamo():
            try:
                torch.onnx.export(model, values, path, **options)
            except onnx_ir.passes.PassError:  # of the exporter's own optimizer
                torch.onnx.export(model, values, path, **options, optimize=False)


@contextlib.contextmanager
def silence():
    """The exporters print graphs and progress, partly from C++."""
    sys.stdout.flush()
    sys.stderr.flush()
    kept = os.dup(1), os.dup(2)
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), 1)
        os.dup2(nowhere.fileno(), 2)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for number, copy in zip((1, 2), kept):
            os.dup2(copy, number)
            os.close(copy)


def one_line(error):
    """The telling line of an exporter's message: of the innermost cause, the first one or that which names an error."""
    while error.__cause__ is not None:
        error = error.__cause__
    lines = [line.strip() for line in f"{error}".splitlines() if line.strip()]
    telling = [line for line in lines if "Error" in line or "Unsupported" in line or "not supported" in line]
    return f"{type(error).__name__}: {(telling or lines or [''])[0]}"[:300]


def export(entry, exporter, folder, fresh=False):
    """The record of the export, made unless it is there."""
    file = folder / "record.json"
    if file.exists() and not fresh:
        return json.loads(file.read_text(encoding="utf-8"))
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    logging.disable(logging.WARNING)
    torch.backends.mha.set_fastpath_enabled(False)  # one operator that has no equal in ONNX
    start = time.perf_counter()
    model, sample, inputs = entries.make(entry)
    with torch.no_grad():
        expected = model(*inputs.values())
    record = {"versions": {module.__name__: module.__version__ for module in (torch, onnx)}}
    try:
        with torch.no_grad(), silence():
            export_to(entry, model, sample, exporter, str(folder / "model.onnx"))
    except Exception as error:  # whatever stops an exporter is its own affair
        record["refused"] = one_line(error)
        (folder / "message.txt").write_text("".join(traceback.format_exception(error)), encoding="utf-8")
    else:
        graph = onnx.load(folder / "model.onnx", load_external_data=False).graph
        record |= {"inputs": [value.name for value in graph.input], "outputs": len(expected), "nodes": len(graph.node)}
        for i, value in enumerate(graph.input):
            numpy.save(folder / f"in_{i}.npy", inputs[value.name].detach().numpy())
        for i, value in enumerate(expected):
            numpy.save(folder / f"out_{i}.npy", value.detach().numpy())
    record["export_s"] = round(time.perf_counter() - start, 1)
    file.write_text(json.dumps(record, indent=1), encoding="utf-8")
    return record
