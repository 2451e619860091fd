#!/usr/bin/env python3
"""Lets the program recognise the digits in images/ and draws them: show.py [PROGRAM]. Needs only Python itself."""
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


def recognise(program, image):
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([program, "run", HERE / "digits.onnx", "--input", f"image={image}",
                               "--output-dir", folder], stdout=subprocess.DEVNULL)
        if done.returncode:
            sys.exit(f"{program} ended with code {done.returncode}")
        return read_npy(pathlib.Path(folder) / "0.npy")


def drawing(pixels):
    """Eight lines of sixteen characters."""
    marks = [SHADES[min(int(p * len(SHADES)), len(SHADES) - 1)] * 2 for p in pixels]
    return ["".join(marks[row:row + 8]) for row in range(0, 64, 8)]


def main():
    program = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else HERE.parents[1] / "build" / "aglow").resolve()
    images = sorted((HERE / "images").glob("*.npy"))
    right, cards = 0, []
    for image in images:
        answer = recognise(program, image)
        digit = max(range(10), key=answer.__getitem__)
        right += str(digit) == image.stem
        cards.append(drawing(read_npy(image)) + [f"a {digit} ({100 * answer[digit]:.1f} %)".center(16)])
    for at in range(0, len(cards), ACROSS):
        print()
        for line in zip(*cards[at:at + ACROSS]):
            print("   ".join(line).rstrip())
    print(f"\n{right} of {len(images)} digits recognised")
    return 0 if right == len(images) else 1


if __name__ == "__main__":
    sys.exit(main())
