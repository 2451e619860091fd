#!/usr/bin/env python3
"""Trains three networks and draws how they learn: demo.py [--program build/aglow] [--out build/train-demo] [NAME…]

digits       a CNN on scikit-learn's digits, then a C program that recognises the held-out fifth
lstm         letters of the project's own pages, one after the other
transformer  the same with attention
"""
import argparse
import pathlib
import re
import subprocess
import sys
import time

import numpy as np
import onnx

import aglow
import curves
import networks

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
LENGTH = 32  # letters of a sample


def held_out(x, y, every=5):
    """All but each fifth sample, and each fifth."""
    held = np.arange(len(x)) % every == 0
    return (x[~held], y[~held]), (x[held], y[held])


def draw(path, title, history):
    names = {"loss": [report.loss for report in history.reports],
             "validation loss": [report.validation_loss for report in history.reports]}
    path.write_text(curves.drawing(title, names), encoding="utf-8")
    print(f"  curves: {path}")


def told(what, history, seconds, goal, reached, passed):
    print(f"  {history.epochs} epochs, {history.samples_per_second:.0f} samples/s, {seconds:.1f} s with compiling")
    print(f"  {what}: {reached} (goal: {goal})", flush=True)
    return passed


# ---------------------------------------------------------------- digits

def digits():
    from sklearn.datasets import load_digits
    data = load_digits()
    return held_out((data.images / 16).astype(np.float32)[:, None], data.target)


def c_program(program, out):
    """The trained model as a C program, which prints the digit of each image."""
    source = ROOT / "examples" / "bundle" / "main.c"
    for command in ([program, "compile", out / "digits.onnx", "--dim", "batch=1", "-o", out, "--emit", "bundle"],
                    ["cc", "-s", f"-I{out}", source, out / "digits.o", "-o", out / "digits"]):
        subprocess.run([str(word) for word in command], check=True, stdout=subprocess.DEVNULL)
    return [str(out / "digits"), str(out / "digits.weights.bin")]


def train_digits(program, out):
    start = time.monotonic()
    train, test = digits()
    trainer = aglow.Trainer(networks.cnn(), "softmax-cross-entropy", "adam", batch=64, seed=1)
    history = trainer.fit(*train, epochs=25, rate=2e-3, schedule="cosine", validation=test)
    seconds = time.monotonic() - start
    found = trainer.evaluate(*test)
    trainer.export(out / "digits.onnx")
    draw(out / "digits.svg", "A CNN learns digits", history)
    good = told("accuracy on the held-out fifth", history, seconds, "98 % in 60 s", f"{found.accuracy:.2%}",
                found.accuracy >= 0.98 and seconds < 60)
    images = out / "images"
    images.mkdir(exist_ok=True)
    paths = [images / f"{i:03}.npy" for i in range(len(test[0]))]
    for path, image in zip(paths, test[0]):
        np.save(path, image[None])
    done = subprocess.run(c_program(program, out) + [str(path) for path in paths], stdout=subprocess.PIPE, text=True,
                          check=True)
    right = sum(int(line.split()[0]) == label for line, label in zip(done.stdout.splitlines(), test[1]))
    print(f"  as a C program: {right} of {len(paths)} right", flush=True)
    return good and right == round(found.accuracy * len(paths))


# ---------------------------------------------------------------- text

def text():
    """The pages of the project as numbers of letters, cut into pieces; each next letter is to be told."""
    pages = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs").glob("*.md")) if path.name != "ops.md"]
    letters = re.sub(r"[^ -~\n]", "?", "\n".join(pages))
    known = sorted(set(letters))
    numbers = np.array([known.index(letter) for letter in letters])[:120_001]
    count = (len(numbers) - 1) // LENGTH
    x = numbers[:count * LENGTH].reshape(count, LENGTH)
    y = numbers[1:count * LENGTH + 1].reshape(count, LENGTH)
    return held_out(x, y, 10), known


def train_text(name, model, out, goal, **options):
    (train, test), known = text()
    start = time.monotonic()
    trainer = aglow.Trainer(model(len(known), LENGTH), "softmax-cross-entropy", "adamw", batch=32, clip_norm=1, seed=1,
                            **options)
    history = trainer.fit(*train, epochs=8, rate=4e-3, schedule="cosine,warmup=50", validation=test)
    seconds = time.monotonic() - start
    trainer.export(out / f"{name}.onnx")
    onnx.checker.check_model(onnx.load(out / f"{name}.onnx"))
    draw(out / f"{name}.svg", f"Letters, with {name}", history)
    loss = history.reports[-1].validation_loss
    return told("loss on held-out text", history, seconds, f"{goal} nats a letter", f"{loss:.3f}", loss <= goal)


DEMOS = {
    "digits": train_digits,
    "lstm": lambda program, out: train_text("lstm", networks.lstm, out, 2.1),
    "transformer": lambda program, out: train_text("transformer", networks.transformer, out, 2.1,
                                                   train=["all", "!*.later"]),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(DEMOS)}; without one: all")
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "build" / "aglow")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "build" / "train-demo")
    arguments = parser.parse_args()
    if unknown := [name for name in arguments.names if name not in DEMOS]:
        parser.error(f"there is no demo {unknown[0]}; there are {', '.join(DEMOS)}")
    arguments.out.mkdir(parents=True, exist_ok=True)
    failed = []
    for name in arguments.names or DEMOS:
        print(f"{name}:", flush=True)
        if not DEMOS[name](arguments.program.resolve(), arguments.out.resolve()):
            failed.append(name)
    if failed:
        sys.exit(f"below the goal: {', '.join(failed)}")


if __name__ == "__main__":
    main()
