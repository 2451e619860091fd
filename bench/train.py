#!/usr/bin/env python3
"""Measures steps of training beside torch, eager and compiled.

    train.py [--threads 1,2] [--rounds 5] [--seconds 1] [--batch 32] [--engines aglow,torch,torch.compile] [MODEL…]

Every model is a torch module that gives its loss. It is exported to ONNX and becomes a text form whose parameters are
state, with a function `train`: loss, gradients, and a step of SGD for each parameter. All engines begin with the same
weights and get the same batch, each in a process of its own; the losses of the first steps are compared before anything
is measured. Then the engines take turns. Memory is the peak of the process: Python with torch, or the program with its
compiler. Needs build/bench-venv, as peers.py does.
"""
import argparse
import json
import math
import multiprocessing
import os
import pathlib
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import warnings

import numpy
import onnx
import torch
from torch import nn
from torch.nn import functional

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = pathlib.Path(os.environ.get("AGLOW_BIN", ROOT / "build" / "aglow"))
RATE = 0.002  # small enough that roundings do not grow in the steps that are compared
STEPS = 4  # whose losses are compared
TOLERANCE = 1e-3


class Classifier(nn.Module):
    """A network and the cross entropy of what it gives."""

    def __init__(self, body):
        super().__init__()
        self.body = body

    def forward(self, x, labels):
        return functional.cross_entropy(self.body(x), labels)


def lenet():
    return nn.Sequential(nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(),
                         nn.MaxPool2d(2), nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(),
                         nn.Linear(84, 10))


class Block(nn.Module):
    def __init__(self, channels, outputs, stride):
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(channels, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs),
                                   nn.ReLU())
        self.second = nn.Sequential(nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False), nn.BatchNorm2d(outputs))
        self.skip = nn.Identity()
        if stride != 1 or channels != outputs:
            self.skip = nn.Sequential(nn.Conv2d(channels, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        return functional.relu(self.second(self.first(x)) + self.skip(x))


def resnet(widths, blocks, large, classes):
    layers = [nn.Conv2d(3, widths[0], 7, 2, 3, bias=False) if large else nn.Conv2d(3, widths[0], 3, 1, 1, bias=False),
              nn.BatchNorm2d(widths[0]), nn.ReLU()]
    if large:
        layers.append(nn.MaxPool2d(3, 2, 1))
    channels = widths[0]
    for stage, width in enumerate(widths):
        for block in range(blocks):
            layers.append(Block(channels, width, 2 if stage > 0 and block == 0 else 1))
            channels = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes))


def mlp():
    return nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(64, 128, batch_first=False)
        self.head = nn.Linear(128, 10)

    def forward(self, x):
        return self.head(self.lstm(x)[0][-1])


class Transformer(nn.Module):
    """BERT-mini: 4 layers of 256, 4 heads, 64 tokens."""

    def __init__(self, layers=4, width=256, heads=4, tokens=64, words=1000):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.places = nn.Parameter(torch.randn(tokens, width) * 0.02)
        self.layers = nn.ModuleList(Layer(width, heads) for _ in range(layers))
        self.head = nn.Linear(width, 10)

    def forward(self, x):
        y = self.words(x) + self.places
        for layer in self.layers:
            y = layer(y)
        return self.head(y.mean(1))


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.q, self.k, self.v, self.out = (nn.Linear(width, width) for _ in range(4))
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, tokens, width = x.shape

        def split(y):
            return y.reshape(batch, tokens, self.heads, width // self.heads).transpose(1, 2)

        q, k, v = split(self.q(x)), split(self.k(x)), split(self.v(x))
        scores = torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(width // self.heads), -1)
        mixed = (scores @ v).transpose(1, 2).reshape(batch, tokens, width)
        x = self.first(x + self.out(mixed))
        return self.second(x + self.narrow(functional.gelu(self.wide(x))))


MODELS = {
    "lenet": (lenet, lambda n: torch.randn(n, 1, 28, 28)),
    "small-resnet": (lambda: resnet([16, 32, 64], 2, False, 10), lambda n: torch.randn(n, 3, 32, 32)),
    "resnet18-32": (lambda: resnet([64, 128, 256, 512], 2, False, 10), lambda n: torch.randn(n, 3, 32, 32)),
    "resnet18-224": (lambda: resnet([64, 128, 256, 512], 2, True, 1000), lambda n: torch.randn(n, 3, 224, 224)),
    "mlp": (mlp, lambda n: torch.randn(n, 784)),
    "lstm": (Recurrent, lambda n: torch.randn(32, n, 64)),
    "bert-mini": (Transformer, lambda n: torch.randint(0, 1000, (n, 64))),
}


def aglow(*words):
    words = [str(word) for word in (PROGRAM, *words)]
    result = subprocess.run(words, capture_output=True, text=True)
    if result.returncode != 0:
        raise SystemExit(f"{' '.join(words)}: {result.stderr[-2000:]}")
    return result.stdout


def training_text(text, parameters):
    """The text form of a loss and its gradients, which it gives as outputs, as a step of training."""
    for i, name in enumerate(parameters):
        text, saved = re.subn(rf"%\S+ = Save\((\S+), @gradient{i}\)$",
                              rf"%new{i} = SGD(@{quoted(name)}, \1, @rate)", text, flags=re.M)
        text = re.sub(rf"^  placeholder @gradient{i} .*\n", "", text, flags=re.M)
        if f"\n  state @{quoted(name)} :" not in text or saved != 1:
            raise SystemExit(f"parameter {name} is not state of the model")
    saves = "".join(f"    Save(%new{i}, @{quoted(name)})\n" for i, name in enumerate(parameters))
    text = text.replace("module {", f"module {{\n  constant @rate : f32[] = [{RATE}]", 1)
    text = text.replace("func @main", "func @train")
    end = text.rindex("  }")
    return text[:end] + saves + text[end:]


def with_gradients(path, parameters):
    """Adds outputs for the gradients of the loss, so that the parameters stay what they are when it is imported."""
    model = onnx.load(path)
    outputs = [f"gradient{i}" for i in range(len(parameters))]
    model.graph.node.append(onnx.helper.make_node("Gradient", parameters, outputs, domain="ai.onnx.preview.training",
                                                  xs=parameters, y="loss"))
    shapes = {w.name: list(w.dims) for w in model.graph.initializer}
    for output, name in zip(outputs, parameters):
        model.graph.output.append(onnx.helper.make_tensor_value_info(output, onnx.TensorProto.FLOAT, shapes[name]))
    model.opset_import.append(onnx.helper.make_opsetid("ai.onnx.preview.training", 1))
    onnx.save(model, path)


def quoted(name):
    return name if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_.]*", name) else f'"{name}"'


def write_step(model, batch, folder, name):
    path = folder / f"{name}.onnx"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(model, batch, path, input_names=["x", "labels"], output_names=["loss"], opset_version=17,
                          training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False, dynamo=False)
    parameters = [key for key, _ in model.named_parameters()]
    with_gradients(path, parameters)
    aglow("compile", path, "--stop-after", "import", "--emit", "graph", "-o", folder)
    graph = folder / f"{name}.graph"
    graph.write_text(training_text(graph.read_text(), parameters))
    for key, value in zip(("x", "labels"), batch):
        numpy.save(folder / f"{name}.{key}.npy", value.numpy())
    return graph, [f"--input={key}={folder / f'{name}.{key}.npy'}" for key in ("x", "labels")]


class Steps:
    """Steps of torch, in the process that takes them."""

    def __init__(self, name, size, threads, compiled):
        torch.set_num_threads(threads)
        model, self.batch = problem(name, size)
        self.loss = torch.compile(model) if compiled else model
        self.optimizer = torch.optim.SGD(model.parameters(), RATE)

    def step(self):
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.loss(*self.batch)
        loss.backward()
        self.optimizer.step()
        return loss

    def losses(self):
        return [self.step().item() for _ in range(STEPS)]

    def measure(self, seconds):
        times, end = [], time.perf_counter() + seconds
        while time.perf_counter() < end or len(times) < 3:
            start = time.perf_counter()
            self.step()
            times.append(1e3 * (time.perf_counter() - start))
        return statistics.median(times), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1.024e-3


def answer_requests(pipe, *arguments):
    steps = Steps(*arguments)
    while (request := pipe.recv()) is not None:
        pipe.send(getattr(steps, request[0])(*request[1:]))


class Torch:
    def __init__(self, *arguments):
        processes = multiprocessing.get_context("spawn")
        self.pipe, other = processes.Pipe()
        self.process = processes.Process(target=answer_requests, args=(other, *arguments), daemon=True)
        self.process.start()
        other.close()

    def ask(self, *request):
        self.pipe.send(request)
        return self.pipe.recv()

    def losses(self):
        return self.ask("losses")

    def measure(self, seconds):
        return self.ask("measure", seconds)

    def close(self):
        self.pipe.send(None)
        self.process.join()


class Aglow:
    def __init__(self, model, batch, folder, name, threads):
        graph, inputs = write_step(model, batch, folder, name)
        self.words = [graph, *inputs, "--threads", threads]

    def losses(self):
        printed = aglow("run", *self.words, "--function", ",".join(["train"] * STEPS))
        return [float(x) for x in re.findall(r"loss : f32\[\] = \[([^\]]+)\]", printed)]

    def measure(self, seconds):
        found = json.loads(aglow("bench", *self.words, "--function", "train", "--seconds", seconds, "--json"))
        return found["median_ms"], found["peak_rss_mb"]

    def close(self):
        pass


def problem(name, size):
    """A model with its first weights, and a batch."""
    torch.manual_seed(0)
    make, draw = MODELS[name]
    model = Classifier(make()).train()
    return model, (draw(size), torch.randint(0, 10, (size,)))


def measure(name, options, threads, folder):
    """For each engine the median of its rounds in milliseconds, and its peak in megabytes."""
    engines = {}
    for engine in options.engines.split(","):
        if engine == "aglow":
            engines[engine] = Aglow(*problem(name, options.batch), folder, name, threads)
        else:
            engines[engine] = Torch(name, options.batch, threads, engine == "torch.compile")
    losses = {engine: runner.losses() for engine, runner in engines.items()}
    expected = next((losses[e] for e in ("torch", "torch.compile") if e in losses), losses.get("aglow"))
    for engine, found in losses.items():
        if len(found) != STEPS or any(abs(a - b) > TOLERANCE * abs(b) for a, b in zip(found, expected)):
            raise SystemExit(f"{name}: the losses of {engine} are {found}, expected {expected}")
    rounds = {engine: [] for engine in engines}
    for _ in range(options.rounds):
        for engine, runner in engines.items():
            rounds[engine].append(runner.measure(options.seconds))
    for runner in engines.values():
        runner.close()
    return {engine: (statistics.median(t for t, _ in found), max(mb for _, mb in found))
            for engine, found in rounds.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--engines", default="aglow,torch,torch.compile")
    parser.add_argument("--keep", help="folder for the models")
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"of {', '.join(MODELS)}")
    options = parser.parse_args()
    unknown = [name for name in options.models if name not in MODELS]
    if unknown:
        parser.error(f"there is no model {', '.join(unknown)}; there are {', '.join(MODELS)}")
    ratios = {}
    with tempfile.TemporaryDirectory(prefix="aglow_train_") as folder:
        folder = pathlib.Path(options.keep or folder)
        folder.mkdir(exist_ok=True)
        for name in options.models or MODELS:
            for threads in (int(n) for n in options.threads.split(",")):
                found = measure(name, options, threads, folder)
                line = "".join(f"  {engine} {ms:9.2f} ms {mb:5.0f} MB" for engine, (ms, mb) in found.items())
                for engine, (ms, _) in found.items():
                    if engine != "aglow" and "aglow" in found:
                        ratios.setdefault(engine, []).append(ms / found["aglow"][0])
                        line += f"  {ratios[engine][-1]:5.2f}x {engine}"
                print(f"{name:14} {threads} threads{line}", flush=True)
    for engine, found in ratios.items():
        print(f"geometric mean against {engine}: {statistics.geometric_mean(found):.2f} times as fast "
              f"({min(found):.2f} to {max(found):.2f})")


if __name__ == "__main__":
    sys.exit(main())
