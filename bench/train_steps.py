#!/usr/bin/env python3
"""Checks that 200 steps of training follow torch: the same first weights, batches and settings give the same losses.

    train_steps.py [--steps 200] [--tolerance 1e-3] [MODEL…]

A CNN with batch norms, an MLP, an LSTM and a small transformer, each with SGD, Adam and AdamW, by `aglow train` on an
exported model. What is compared is the mean loss of each epoch of 5 batches, in order. Needs build/bench-venv.
"""
import argparse
import copy
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import warnings

import numpy
import torch
from torch import nn
from torch.nn import functional

import train

PROGRAM = pathlib.Path(os.environ.get("AGLOW_BIN", train.ROOT / "build" / "aglow"))
BATCH, BATCHES = 16, 5
OPTIMIZERS = {"sgd": (torch.optim.SGD, 0.01), "adam": (torch.optim.Adam, 1e-4), "adamw": (torch.optim.AdamW, 1e-4)}


class FirstAxisIsBatch(nn.Module):
    """An LSTM on [batch, step, element]."""

    def __init__(self):
        super().__init__()
        self.lstm, self.head = nn.LSTM(16, 32, batch_first=True), nn.Linear(32, 10)

    def forward(self, x):
        return self.head(self.lstm(x)[0][:, -1])


def cnn():
    return nn.Sequential(nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Conv2d(16, 32, 3, padding=1, bias=False), nn.BatchNorm2d(32), nn.ReLU(),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10))


MODELS = {
    "cnn": (cnn, lambda n: torch.randn(n, 3, 16, 16)),
    "mlp": (lambda: nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 10)), lambda n: torch.randn(n, 32)),
    "lstm": (FirstAxisIsBatch, lambda n: torch.randn(n, 12, 16)),
    "transformer": (lambda: train.Transformer(2, 32, 2, 16, 50), lambda n: torch.randint(0, 50, (n, 16))),
}


def torch_losses(model, x, labels, optimizer, epochs):
    kind, rate = OPTIMIZERS[optimizer]
    model = copy.deepcopy(model).train()
    steps = kind(model.parameters(), rate)
    losses = []
    for _ in range(epochs):
        total = 0
        for i in range(BATCHES):
            part = slice(i * BATCH, (i + 1) * BATCH)
            steps.zero_grad()
            loss = functional.cross_entropy(model(x[part]), labels[part])
            loss.backward()
            steps.step()
            total += loss.item() / BATCHES
        losses.append(total)
    return losses


def aglow_losses(model, x, labels, optimizer, epochs, folder):
    path = folder / "model.onnx"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(copy.deepcopy(model).train(), (x[:BATCH],), path, input_names=["x"], output_names=["y"],
                          opset_version=17, training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False,
                          dynamo=False, keep_initializers_as_inputs=False)
    numpy.savez(folder / "data.npz", x=x.numpy(), target=labels.numpy())
    words = [PROGRAM, "train", path, "--data", folder / "data.npz", "--loss", "softmax-cross-entropy", "--optimizer",
             optimizer, "--rate", OPTIMIZERS[optimizer][1], "--epochs", epochs, "--batch", BATCH, "--in-order", "--json",
             "-o", folder / "trained.onnx"]
    result = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if result.returncode != 0:
        raise SystemExit(result.stderr)
    return [epoch["loss"] for epoch in json.loads(result.stdout)["history"]]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--tolerance", type=float, default=1e-3)
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"of {', '.join(MODELS)}")
    options = parser.parse_args()
    epochs, worst = options.steps // BATCHES, 0
    for name in options.models or MODELS:
        make, draw = MODELS[name]
        for optimizer in OPTIMIZERS:
            torch.manual_seed(0)
            model, x, labels = make(), draw(BATCH * BATCHES), torch.randint(0, 10, (BATCH * BATCHES,))
            expected = torch_losses(model, x, labels, optimizer, epochs)
            with tempfile.TemporaryDirectory(prefix="aglow_steps_") as folder:
                found = aglow_losses(model, x, labels, optimizer, epochs, pathlib.Path(folder))
            if len(found) != epochs:
                raise SystemExit(f"{name}, {optimizer}: expected {epochs} epochs, got {len(found)}")
            off = max(abs(a - b) / abs(b) for a, b in zip(found, expected))
            worst = max(worst, off)
            print(f"{name:12} {optimizer:6} loss {expected[0]:.5f} to {expected[-1]:.5f}, off by {off:.1e} at most",
                  flush=True)
    return 0 if worst <= options.tolerance else f"the losses are off by {worst:.1e}"


if __name__ == "__main__":
    sys.exit(main())
