#!/usr/bin/env python3
"""Recognises handwritten digits with numpy and aglow: digits.py (after `pip install .`)."""
import pathlib

import numpy as np

import aglow

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "digits"


def main():
    model = aglow.compile(FOLDER / "digits.onnx")
    print(model)
    for path in sorted((FOLDER / "images").glob("*.npy")):
        [scores] = model(np.load(path))
        print(f"{path.name}: {scores.argmax()} ({scores.max():.1%})")


if __name__ == "__main__":
    main()
