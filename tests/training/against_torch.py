#!/usr/bin/env python3
"""Trains networks here and in torch, from the same weights on the same batches, and compares the loss of every step,
and in the end the running statistics of batch norms.

    PYTHONPATH=build/python build/bench-venv/bin/python tests/training/against_torch.py [--steps 200] [NAME…]

The networks are those of examples/training and a perceptron; torch computes them from the initializers by its own
functions, forward and backward. Losses may differ by 1e-3 of their size, statistics by 1e-3 of their range.
"""
import argparse
import pathlib
import sys

import numpy as np
import onnx
import torch
import torch.nn.functional as F
from onnx import numpy_helper

import aglow

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "examples" / "training"), str(ROOT / "tests" / "python")]

import networks  # noqa: E402
import training_models  # noqa: E402

BATCH, LETTERS, LENGTH, HEADS = 16, 24, 12, 4
TOLERANCE = 1e-3


# ---------------------------------------------------------------- the networks in torch, from initializers by name

def dense(p, x, name):
    return x @ p[f"{name}.weight"] + p[f"{name}.bias"]


def perceptron(p, x):
    return dense(p, torch.relu(dense(p, x, "first")), "last")


def cnn(p, x):
    for i in range(3):
        x = torch.relu(F.conv2d(x, p[f"conv{i}.weight"], p[f"conv{i}.bias"], padding=1))
        x = F.max_pool2d(x, 2) if i else x
    return dense(p, torch.relu(dense(p, x.flatten(1), "hidden")), "head")


def norms(p, x):
    for i in range(2):
        x = F.conv2d(x, p[f"conv{i}.weight"], padding=1)
        x = F.batch_norm(x, p[f"mean{i}"], p[f"variance{i}"], p[f"scale{i}"], p[f"shift{i}"], True, 0.1, 1e-5)
        x = torch.relu(x)
    return dense(p, x.mean((2, 3)), "head")


def net_with_norms():
    net = networks.Net(0)
    x, channels = "image", 1
    for i, filters in enumerate((8, 16)):
        x = net.add("Conv", x, net.weight(f"conv{i}.weight", filters, channels, 3, 3, fan=4.5 * channels),
                    pads=[1, 1, 1, 1])
        ones = np.ones(filters, np.float32)
        x = net.add("BatchNormalization", x, net.tensor(f"scale{i}", ones), net.zeros(f"shift{i}", filters),
                    net.zeros(f"mean{i}", filters), net.tensor(f"variance{i}", ones))
        x = net.add("Relu", x)
        channels = filters
    y = net.dense(net.add("Flatten", net.add("GlobalAveragePool", x)), "head", channels, 10)
    return net.model("norms", "image", [1, 8, 8], networks.F32, y, [10])


def lstm(p, text):
    """ONNX has the gates in the order i, o, f, c."""
    x = p["embedding"][text]
    w, r, bias = p["lstm.w"][0], p["lstm.r"][0], p["lstm.bias"][0]
    size = r.shape[1]
    h = c = torch.zeros(len(text), size, dtype=w.dtype)
    outputs = []
    for t in range(text.shape[1]):
        gates = x[:, t] @ w.T + h @ r.T + bias[:4 * size] + bias[4 * size:]
        i, o, f, new = gates.split(size, 1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(new)
        h = torch.sigmoid(o) * torch.tanh(c)
        outputs.append(h)
    return dense(p, torch.stack(outputs, 1), "head")


def normalized(p, x, name):
    return F.layer_norm(x, x.shape[-1:], p[f"{name}.scale"], p[f"{name}.shift"], 1e-5)


def attended(p, x, name):
    batch, length, width = x.shape

    def part(what):
        return dense(p, x, f"{name}.{what}").reshape(batch, length, HEADS, width // HEADS).transpose(1, 2)

    mixed = F.scaled_dot_product_attention(part("query"), part("key"), part("value"), is_causal=True)
    return dense(p, mixed.transpose(1, 2).reshape(batch, length, width), f"{name}.out")


def transformer(p, text):
    x = p["embedding"][text] + p["places"]
    for i in range(2):
        x = x + attended(p, normalized(p, x, f"block{i}.first"), f"block{i}")
        inner = torch.relu(dense(p, normalized(p, x, f"block{i}.second"), f"block{i}.up"))
        x = x + dense(p, inner, f"block{i}.down")
    return dense(p, normalized(p, x, "last"), "head")


def letters():
    rng = np.random.default_rng(0)
    text = np.cumsum(rng.integers(0, 5, (96, LENGTH + 1)), 1) % LETTERS
    return text[:, :-1], text[:, 1:]


def images():
    """A bright place for each class: what can hardly be learned would be chaos, in which roundings grow without end."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 10, 96)
    x = 0.1 * rng.random((96, 1, 8, 8), np.float32)
    for image, label in zip(x, labels):
        image[0, label // 2:label // 2 + 3, label % 2 * 4:label % 2 * 4 + 3] += 1
    return x, labels


NETWORKS = {
    "perceptron": (training_models.classifier(), perceptron, training_models.clusters()),
    "cnn": (networks.cnn(), cnn, images()),
    "norms": (net_with_norms(), norms, images()),
    "lstm": (networks.lstm(LETTERS, LENGTH, 32, 48), lstm, letters()),
    "transformer": (networks.transformer(LETTERS, LENGTH, 32, HEADS), transformer, letters()),
}
# Settings here, the one of torch, rate, kind of floats. First steps of RMSprop and Adagrad are as large for a gradient
# that is rounding alone as for any other: in f32 their losses part by up to 1e-2, so they are compared in f64.
OPTIMIZERS = {
    "sgd": ({}, lambda p, rate: torch.optim.SGD(p, rate), 0.02, np.float32),
    "nesterov": ({"decay": 1e-4}, lambda p, rate: torch.optim.SGD(p, rate, 0.9, weight_decay=1e-4, nesterov=True),
                 0.005, np.float32),
    "adam": ({}, lambda p, rate: torch.optim.Adam(p, rate), 1e-3, np.float32),
    "adamw": ({}, lambda p, rate: torch.optim.AdamW(p, rate), 1e-3, np.float32),
    "rmsprop": ({}, lambda p, rate: torch.optim.RMSprop(p, rate), 3e-4, np.float64),
    "adagrad": ({}, lambda p, rate: torch.optim.Adagrad(p, rate), 0.01, np.float64),
}


def of_kind(model, kind):
    """The same model with other floats."""
    made = onnx.ModelProto.FromString(model.SerializeToString())
    for tensor in made.graph.initializer:
        if tensor.data_type == onnx.TensorProto.FLOAT:
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(kind), tensor.name))
    for value in (*made.graph.input, *made.graph.output):
        if value.type.tensor_type.elem_type == onnx.TensorProto.FLOAT:
            value.type.tensor_type.elem_type = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    return made


def trained_in_torch(model, forward, data, variables, optimizer, rate, steps):
    parameters = {t.name: torch.tensor(numpy_helper.to_array(t).copy()) for t in model.graph.initializer}
    for name in variables:
        parameters[name].requires_grad_()
    made = optimizer([parameters[name] for name in variables], rate)
    x, y = (torch.tensor(array) for array in data)
    losses = []
    for step in range(steps):
        at = step * BATCH % len(x)
        scores = forward(parameters, x[at:at + BATCH])
        loss = F.cross_entropy(scores.reshape(-1, scores.shape[-1]), y[at:at + BATCH].reshape(-1))
        made.zero_grad()
        loss.backward()
        made.step()
        losses.append(loss.item())
    return losses, parameters


def compared(network, optimizer, steps):
    """The largest difference of losses and statistics, relative to torch's, and both losses at the end."""
    model, forward, (inputs, target) = NETWORKS[network]
    settings, in_torch, rate, kind = OPTIMIZERS[optimizer]
    model, data = of_kind(model, kind), (inputs.astype(kind) if inputs.dtype == np.float32 else inputs, target)
    trainer = aglow.Trainer(model, "softmax-cross-entropy", optimizer, train=["all", "!*.later"] if
                            network == "transformer" else "all", batch=BATCH, settings=settings,
                            batch_norm_momentum=0.9)
    losses = []
    epochs = -(-steps * BATCH // len(data[0]))
    trainer.fit(*data, epochs=epochs, rate=rate, shuffle=False,
                callbacks=[lambda report: not report.of_epoch and (losses.append(report.loss) or len(losses) == steps)])
    wanted, parameters = trained_in_torch(model, forward, data, trainer.variables, in_torch, rate, steps)
    worst = max(abs(a - b) / abs(b) for a, b in zip(losses, wanted, strict=True))
    for name in trainer.state:
        if name.startswith(("mean", "variance")):
            statistic = parameters[name].numpy()
            worst = max(worst, np.abs(trainer.state[name] - statistic).max() / np.abs(statistic).max())
    return worst, losses[0], losses[-1], wanted[-1]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(NETWORKS)}; without one: all")
    parser.add_argument("--optimizers", nargs="*", choices=OPTIMIZERS, default=list(OPTIMIZERS))
    parser.add_argument("--steps", type=int, default=200)
    arguments = parser.parse_args()
    failed = 0
    print(f"{'network':<12} {'optimizer':<10} {'worst':>8} {'first':>9} {'last':>9} {'torch':>9}")
    for network in arguments.names or NETWORKS:
        for optimizer in arguments.optimizers:
            worst, first, last, wanted = compared(network, optimizer, arguments.steps)
            failed += not worst <= TOLERANCE
            print(f"{network:<12} {optimizer:<10} {worst:8.1e} {first:9.5f} {last:9.5f} {wanted:9.5f}"
                  f"{'' if worst <= TOLERANCE else '  differs'}", flush=True)
    sys.exit(f"{failed} differ by more than {TOLERANCE}" if failed else 0)


if __name__ == "__main__":
    main()
