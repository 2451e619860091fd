#!/usr/bin/env python3
"""Tries a wheel in a root that holds Python, numpy and the C library: no compiler, no LLVM, no CMake.

    empty_root.py PYTHON WHEEL [--model MODEL.onnx]

In there pip makes an environment of the wheel; then the module recognises digits, the README's lines of Python run the
model given (which takes an image of 224 x 224), and the program makes a bundle, which a C compiler out here links. Needs
root, for chroot. Exits with 0 where all is right.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
LARGEST_IMPORT = 0.150  # seconds

TRY = """
import glob, json, sys, time
import numpy as np
began = time.perf_counter()
import aglow
took = time.perf_counter() - began
right = 0
model = aglow.compile("/digits/digits.onnx")
for path in glob.glob("/digits/images/*.npy"):
    right += str(model(np.load(path)).argmax()) == path.split("/")[-1][0]
shapes = None
if len(sys.argv) > 1:
    found = {}
    exec(open(sys.argv[1]).read(), found)  # reads model.onnx
    model, x, y = found["model"], found["x"], found["y"]
    if not (verified := model.verify(x)):
        sys.exit(str(verified))
    shapes = [list(one.shape) for one in (y if isinstance(y, tuple) else (y,))]
print(json.dumps({"import_s": took, "right": right, "shapes": shapes}))
"""


def readme_lines():
    block = re.search(r"From \[Python\].*?\n\n((?:    .+\n)+)", (ROOT / "README.md").read_text())[1]
    return "".join(line.strip() + "\n" for line in block.splitlines())


def output_of(*command, **how):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, text=True, **how)
    if done.returncode:
        sys.exit(f"empty_root.py: {' '.join(map(str, command))} ended with {done.returncode}\n{done.stdout}")
    return done.stdout


def copy_with_libraries(root, files):
    """Libraries of the system that the files name, to where they look for them."""
    for file in files:
        shown = subprocess.run(["ldd", str(file)], capture_output=True, text=True).stdout
        for path in re.findall(r"(/\S+) \(0x", shown):
            target = root / path.lstrip("/")
            if not target.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, target)


def make_root(root, python, wheel):
    prefix = pathlib.Path(output_of(python, "-c", "import sys; print(sys.base_prefix)").strip())
    version = output_of(python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])").strip()
    library = prefix / "lib" / f"python{version}"
    left_out = shutil.ignore_patterns("test", "tests", "idlelib", "__pycache__", "site-packages", "dist-packages", "config-*", "*.a")
    shutil.copytree(library, root / library.relative_to("/"), ignore=left_out, symlinks=True)
    binary = root / prefix.relative_to("/") / "bin" / f"python{version}"
    binary.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(prefix / "bin" / f"python{version}", binary)
    copy_with_libraries(root, [prefix / "bin" / f"python{version}", *library.glob("lib-dynload/*.so")])
    # The rest of the C library, which now and then is asked for by name.
    [libc] = root.rglob("libc.so.6")
    for name in ("libpthread.so.0", "libdl.so.2", "librt.so.1", "libutil.so.1", "libstdc++.so.6"):
        for place in ("/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64"):
            if (source := pathlib.Path(place) / name).exists():
                shutil.copy(source, libc.parent / name)
                break
    for folder in ("tmp", "proc", "dev", "wheels"):
        (root / folder).mkdir(exist_ok=True)
    os.mknod(root / "dev" / "null", 0o666 | 0o020000, os.makedev(1, 3))
    shutil.copy(wheel, root / "wheels")
    output_of(python, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--only-binary", ":all:", "-d",
              root / "wheels", "numpy>=1.24")
    # What manylinux takes for granted.
    unpacked = root.parent / "unpacked"
    shutil.unpack_archive(wheel, unpacked, "zip")
    copy_with_libraries(root, [*unpacked.rglob("*.so"), *unpacked.rglob("scripts/aglow")])
    shutil.copytree(ROOT / "examples" / "digits", root / "digits")
    (root / "try.py").write_text(TRY)
    return f"/{binary.relative_to(root)}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("python")
    parser.add_argument("wheel", type=pathlib.Path)
    parser.add_argument("--model", type=pathlib.Path)
    options = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("empty_root.py: needs root, for chroot")
    with tempfile.TemporaryDirectory() as name:
        root = pathlib.Path(name) / "root"
        root.mkdir()
        python = make_root(root, options.python, options.wheel)

        def inside(*command):
            # What is mounted goes with the namespace.
            return output_of("unshare", "--mount", "sh", "-c", 'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"', root,
                             *command, env={"HOME": "/tmp", "PATH": "/venv/bin:/usr/sbin:/usr/bin:/sbin:/bin"})

        inside(python, "-m", "venv", "/venv")
        inside("/venv/bin/pip", "install", "--quiet", "--no-index", "--disable-pip-version-check", "--find-links", "/wheels", "aglow")
        print("   ", inside("/venv/bin/aglow", "--version").splitlines()[0])
        words = ["/try.py"]
        if options.model:
            shutil.copy(options.model, root / "model.onnx")
            (root / "readme.py").write_text(readme_lines())
            words.append("/readme.py")
        inside("/venv/bin/python", *words)  # the first import compiles Python's files
        # Others may use the machine: the best of some.
        found = min((json.loads(inside("/venv/bin/python", *words).splitlines()[-1]) for _ in range(3)),
                    key=lambda run: run["import_s"])
        inside("/venv/bin/aglow", "compile", "/digits/digits.onnx", "-o", "/out", "--emit", "bundle")
        bundle = root / "out"
        output_of("cc", f"-I{bundle}", ROOT / "examples" / "bundle" / "main.c", bundle / "digits.o", "-o", bundle / "digits")
        images = sorted((root / "digits" / "images").glob("*.npy"))
        answers = output_of(bundle / "digits", bundle / "digits.weights.bin", *images).splitlines()
        linked = sum(answer.split()[0] == image.stem for image, answer in zip(images, answers))
        name = pathlib.Path(python).name
        print(f"    {name}, {options.wheel.name}: in an empty root the module recognises {found['right']} of {len(images)} digits, the "
              f"bundle {linked}; import aglow {found['import_s'] * 1e3:.0f} ms" +
              (f"; the README's lines run {options.model}, which gives {found['shapes']}" if options.model else ""))
        if not found["right"] == linked == len(images):
            sys.exit("empty_root.py: not all are right")
        if found["import_s"] > LARGEST_IMPORT:
            print(f"    more than {LARGEST_IMPORT * 1e3:.0f} ms for the import: is the machine loaded?")


if __name__ == "__main__":
    main()
