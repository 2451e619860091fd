"""Debug information: gdb stops at a line of the instructions and knows the operands; perf's map names the nodes."""
import functools
import os
import pathlib
import re
import shutil
import subprocess

import pytest

from bundles import check


@pytest.fixture(scope="module")
def build(program, root, tmp_path_factory):
    """build(LEVEL): a folder with the digits program, compiled with -g."""
    @functools.lru_cache
    def call(level):
        folder = tmp_path_factory.mktemp(f"level{level}")
        check(program, "compile", root / "examples" / "digits" / "digits.onnx", "-o", folder, "--emit", "bundle", "-g", "-O",
              level)
        check("cc", f"-I{folder}", root / "examples" / "bundle" / "main.c", folder / "digits.o", "-o", folder / "digits")
        return folder
    return call


def instructions(folder):
    """(line, text) of everything that computes."""
    lines = (folder / "digits.ir").read_text().splitlines()
    return [(number, line) for number, line in enumerate(lines, 1) if re.match(r"  (\w+ )@(out|inout) ", line)]


@pytest.mark.parametrize("level", ["0", "3"])
def test_gdb_stops_at_an_instruction(build, root, level):
    if shutil.which("gdb") is None:
        pytest.skip("gdb is not installed")
    folder = build(level)
    text = (folder / "digits.ir").read_text()
    for number, line in instructions(folder)[1:3]:
        operands = re.findall(r"@\w+ %([\w.]+)", line)
        commands = [f"break digits.ir:{number}", f"run digits.weights.bin {root}/examples/digits/images/3.npy", "frame"]
        commands += [f"print {re.sub('[^A-Za-z0-9]', '_', name)}" for name in operands]
        said = check("gdb", "-batch", "-nx", *(word for c in commands for word in ("-ex", c)), folder / "digits", cwd=folder)
        assert f"at digits.ir:{number}\n{number}\t{line}" in said
        addresses = re.findall(r"^\$\d+ = \(f32 \*\) 0x[0-9a-f]+ <(\w+)(?:\+(\d+))?>$", said, re.M)
        assert len(addresses) == len(operands), said
        for name, (where, offset) in zip(operands, addresses):
            placed = re.search(rf"%{re.escape(name)} = alloc .* at (\d+)$", text, re.M)
            if placed:
                assert (where, int(offset or 0)) == ("activations", int(placed.group(1)))
            else:
                assert where in ("weights", "memory", "activations")


def test_every_instruction_has_its_line(build):
    folder = build("3")
    lines = check("objdump", "--dwarf=decodedline", folder / "digits.o")
    known = {int(n) for n in re.findall(r"^digits\.ir\s+(\d+)\s", lines, re.M)}
    assert {number for number, _ in instructions(folder)} <= known


def test_results_do_not_depend_on_it(build, root):
    said = check(build("3") / "digits", build("3") / "digits.weights.bin", root / "examples/digits/images/7.npy")
    assert said.split()[0] == "7"


@pytest.mark.parametrize("options", [["--opt-size"], ["-O", "1"], ["--threads"], ["--target", "aarch64-linux-gnu"]],
                         ids=" ".join)
def test_goes_with_other_options(program, root, options):
    assert "digits.ir" in check(program, "compile", root / "examples/digits/digits.onnx", "-g", "--emit", "asm", *options)


def test_perf_map(program, root):
    command = [program, "run", root / "examples/digits/digits.onnx", "--backend", "cpu", "--input",
               f"image={root}/examples/digits/images/3.npy"]
    child = subprocess.Popen(command, env={**os.environ, "AGLOW_PERF": "1"}, stdout=subprocess.PIPE, text=True)
    out, _ = child.communicate(timeout=120)
    path = pathlib.Path(f"/tmp/perf-{child.pid}.map")
    try:
        lines = path.read_text().splitlines()
    finally:
        path.unlink(missing_ok=True)
    assert child.returncode == 0 and "0.99" in out
    assert all(re.fullmatch(r"[0-9a-f]+ [0-9a-f]+ [\w.]+", line) for line in lines)
    names = [line.split()[2] for line in lines]
    assert "model" in names and any("softmax" in name for name in names) and any("conv" in name for name in names)
