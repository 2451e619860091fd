#!/usr/bin/env python3
"""Compiles digits.onnx into a C program, lets it recognise the digits in images/ and draws them: show.py [PROGRAM].

Needs Python itself and a C compiler."""
import ast
import pathlib
import struct
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SHADES = " .:-=+*#%@"
ACROSS = 4


def read_npy(path):
    """The values of a float32 file of numpy's, in order."""
    data = path.read_bytes()
    if data[:8] != b"\x93NUMPY\x01\x00":
        raise ValueError(f"{path}: no npy file of version 1.0")
    length = struct.unpack("<H", data[8:10])[0]
    header = ast.literal_eval(data[10:10 + length].decode("latin-1"))
    if header["descr"] != "<f4" or header["fortran_order"]:
        raise ValueError(f"{path}: float32 in C order expected, got {header}")
    body = data[10 + length:]
    return struct.unpack(f"<{len(body) // 4}f", body)


def build(program, folder):
    """Compiles the model to a bundle and links it with examples/bundle/main.c; gives the commands, for show."""
    source = HERE.parent / "bundle" / "main.c"
    commands = [[program, "compile", HERE / "digits.onnx", "-o", folder, "--emit", "bundle"],
                ["cc", "-s", "-Wl,--gc-sections", f"-I{folder}", source, folder / "digits.o", "-o", folder / "digits"]]
    for command in commands:
        done = subprocess.run(command)
        if done.returncode:
            sys.exit(f"{command[0]} ended with code {done.returncode}")
    return [" ".join(str(word).replace(str(folder), "out").replace(f"{HERE.parents[1]}/", "") for word in command)
            for command in commands]


def recognise(folder, images):
    """One (digit, percentage) for each image."""
    done = subprocess.run([folder / "digits", folder / "digits.weights.bin", *images], stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"the compiled model ended with code {done.returncode}")
    return [line.split() for line in done.stdout.splitlines()]


def drawing(pixels):
    """Eight lines of sixteen characters."""
    marks = [SHADES[min(int(p * len(SHADES)), len(SHADES) - 1)] * 2 for p in pixels]
    return ["".join(marks[row:row + 8]) for row in range(0, 64, 8)]


def main():
    program = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else HERE.parents[1] / "build" / "aglow").resolve()
    images = sorted((HERE / "images").glob("*.npy"))
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for command in build(program, folder):
            print("  " + command)
        answers = recognise(folder, images)
        sizes = [(folder / file).stat().st_size for file in ("digits", "digits.weights.bin")]
    right, cards = 0, []
    for image, (digit, percent) in zip(images, answers):
        right += digit == image.stem
        cards.append(drawing(read_npy(image)) + [f"a {digit} ({percent} %)".center(16)])
    for at in range(0, len(cards), ACROSS):
        print()
        for line in zip(*cards[at:at + ACROSS]):
            print("   ".join(line).rstrip())
    print(f"\nthe program: {sizes[0]} bytes, stripped; its weights: {sizes[1]} bytes; it needs the C library alone")
    print(f"{right} of {len(images)} digits recognised")
    return 0 if right == len(images) else 1


if __name__ == "__main__":
    sys.exit(main())
