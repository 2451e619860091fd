#!/usr/bin/env python3
"""Gradients of the zoo's networks beside torch.autograd's.

    ./dev zoo --gradients [--filter GLOB] [--group GLOB]

A network is exported with its parameters as initializers, and takes one step of gradient descent: the step is the
gradient. The loss is the cross entropy of classes where there are classes, and squared error elsewhere. Batch norms
have their running statistics. A network passes when the gradient of every parameter differs from torch's in f64 by at
most 1e-5 of its range.

Where it differs by more, the network is taken in f64 as well, and has to pass there: a value that f32 rounds to the
other side of a corner, of a Relu or of the largest in a pool, gives its whole gradient elsewhere. Of millions of values
some lie so near, and whether one of them falls over is chance, in torch's f32 as here; but then differences stay small.
"""
import argparse
import fnmatch
import io
import sys
import time

import numpy as np
import torch

import aglow
import entries
import exporting
import text
import vision

LIMIT = 1e-5
CORNERS = 0.05  # what a few values on the other side of a corner may come to
RATE = 2.0 ** 60  # a power of two that lifts the smallest gradients above the weights they are taken from
GROUPS = ("classification", "video", "transformer")


def of_kind(inputs, kind):
    return {name: value.to(kind) if value.is_floating_point() else value for name, value in inputs.items()}


def exported(flat, inputs, kind):
    """The bytes of a file that has every parameter, under its own name."""
    file = io.BytesIO()
    with exporting.silence():
        torch.onnx.export(flat.to(kind), tuple(of_kind(inputs, kind).values()), file, dynamo=False, input_names=list(inputs), opset_version=18,
                          do_constant_folding=False, training=torch.onnx.TrainingMode.PRESERVE)
    return file.getvalue()


def of_torch(flat, inputs, target, classes, kind):
    """The gradient of each parameter in one kind of floats."""
    flat = flat.to(kind)
    flat.zero_grad()
    output = flat(*of_kind(inputs, kind).values())[0]
    loss = torch.nn.functional.cross_entropy(output, target) if classes else \
        torch.nn.functional.mse_loss(output, target.to(kind))
    loss.backward()
    return {name: parameter.grad.double().numpy() for name, parameter in flat.named_parameters()
            if parameter.grad is not None}


def of_aglow(flat, inputs, target, classes, names, kind):
    model = exported(flat, inputs, kind)
    trainer = aglow.Trainer(model, "softmax-cross-entropy" if classes else "squared-error", "sgd", train=names,
                            batch=len(target), cache=False)
    before = {name: np.array(trainer.state[name], np.float64) for name in names}
    trainer.fit({name: value.numpy() for name, value in of_kind(inputs, kind).items()}, target.numpy(), rate=RATE,
                shuffle=False)
    return {name: (before[name] - np.array(trainer.state[name], np.float64)) / RATE for name in names}


def difference(expected, got):
    """The largest difference of one parameter, as a part of its gradient's range."""
    worst = 0.0
    for name, one in expected.items():
        extent = np.abs(one).max()
        # What does not matter to the loss is rounding alone.
        if extent > 1e-12:
            apart = np.abs(one - got[name].reshape(one.shape)).max() / extent
            worst = max(worst, np.nan_to_num(apart, nan=np.inf))
    return worst


def check(entry):
    """Whether it passes, and the differences in words."""
    flat, inputs, _ = entries.make(entry)
    with torch.no_grad():
        output = flat(*inputs.values())[0]
    classes = output.dim() == 2
    target = torch.randint(0, output.shape[1], (len(output),)) if classes else torch.randn_like(output)
    own = of_torch(flat, inputs, target, classes, torch.float32)
    exact = of_torch(flat, inputs, target, classes, torch.float64)

    def found(kind):
        return difference(exact, of_aglow(flat, inputs, target, classes, list(exact), kind))

    narrow, torchs = found(torch.float32), difference(exact, own)
    said = f"{narrow:.1e} of {len(exact)} parameters' ranges"
    if narrow <= LIMIT:
        return True, said
    wide = found(torch.float64)
    return narrow <= CORNERS and wide <= LIMIT, f"{said}, torch {torchs:.1e}; in f64 {wide:.1e}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--filter", default="*", metavar="GLOB")
    parser.add_argument("--group", default="*", metavar="GLOB")
    options = parser.parse_args()
    failed = passed = 0
    for entry in [*vision.ENTRIES, *text.ENTRIES]:
        if entry.group not in GROUPS or not fnmatch.fnmatch(entry.name, options.filter) \
                or not fnmatch.fnmatch(entry.group, options.group):
            continue
        start = time.monotonic()
        try:
            good, said = check(entry)
        except (aglow.Error, RuntimeError, ValueError, KeyError) as fault:
            good, said = False, f"{type(fault).__name__}: {str(fault)[:300]}"
        passed, failed = passed + good, failed + (not good)
        print(f"{'pass' if good else 'FAIL'}  {entry.name:28} {said} ({time.monotonic() - start:.0f} s)", flush=True)
    print(f"{passed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
