"""Faults of a run: wrong inputs, values out of range, places that cannot be written; and odd but valid inputs."""
import os
import subprocess

import numpy as np
import onnx
import pytest
from bad_models import model, node, zeros
from harness import process

pytestmark = pytest.mark.usefixtures("backend")
X = {"image": zeros(2, 3)}


def relu():
    return model([node("Relu", ["image"])], X)


# ---- inputs that do not fit

@pytest.mark.parametrize("inputs, words", [
    ({"imgae": zeros(2, 3)}, ["imgae", "image"]),
    ({"image": zeros(2, 3), "more": zeros(1)}, ["more"]),
    ({}, ["image"]),
    ({"image": zeros(3, 2)}, ["image", "[2,3]"]),
    ({"image": zeros(6)}, ["image", "[2,3]"]),
    ({"image": zeros(2, 3, dtype=np.float64)}, ["image", "f32"]),
    ({"image": zeros(2, 3, dtype=np.int64)}, ["image", "f32"]),
])
def test_inputs(refusal, inputs, words):
    refusal.refuse(relu(), {1}, *words, inputs=inputs)


@pytest.mark.parametrize("argument", ["image", "image=", "=x.npy", ""])
def test_malformed_argument(refusal, argument):
    path = refusal.write(relu())
    refusal.check(refusal.aglow("run", path, "--input", argument, "--output-dir", refusal.out), {1, 8})


def npy(shape="(2, 3)", descr="'<f4'", body=bytes(24)):
    header = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + body


FILES = {
    "empty": b"", "text": b"not numpy at all", "magic only": b"\x93NUMPY", "no header": b"\x93NUMPY\x01\x00\xff\xff",
    "header too long": b"\x93NUMPY\x02\x00\xff\xff\xff\x7f", "short": npy(body=bytes(20)), "objects": npy(descr="'|O'"),
    "negative": npy("(-2, -3)"), "overflow": npy("(4294967296, 4294967296)"), "huge": npy("(1099511627776,)"),
    "no tuple": npy("6"), "nested": npy("(" * 5000), "unknown type": npy(descr="'<q9'"), "record": npy(descr="[('a', '<f4')]"),
}


@pytest.mark.parametrize("name", FILES)
def test_malformed_npy(refusal, tmp_path, name):
    (tmp_path / "bad.npy").write_bytes(FILES[name])
    outcome = refusal.aglow("run", refusal.write(relu()), "--input", f"image={tmp_path}/bad.npy", "--output-dir",
                            refusal.out, timeout=20 * refusal.slow, memory_mb=2048)
    refusal.check(outcome, {1, 8})


@pytest.mark.parametrize("kind", ["missing", "folder", "fifo", "device"])
def test_npy_that_is_no_file(refusal, tmp_path, kind):
    path = tmp_path / "bad.npy"
    if kind == "folder":
        path.mkdir()
    if kind == "fifo":
        os.mkfifo(path)
    if kind == "device":
        path = "/dev/zero"
    outcome = refusal.aglow("run", refusal.write(relu()), "--input", f"image={path}", "--output-dir", refusal.out,
                            timeout=20 * refusal.slow, memory_mb=2048)
    refusal.check(outcome, {1, 8})


# ---- values known only at run time

def ints(*values):
    return np.array(values, np.int64)


@pytest.mark.parametrize("kind, index", [
    ("Gather", ints(2)), ("Gather", ints(-3)), ("Gather", ints(1 << 40)), ("Gather", ints(-(1 << 63))),
    ("GatherElements", ints(0, 2, 0).reshape(1, 3)), ("GatherND", ints(0, 3).reshape(1, 2)),
])
def test_index_out_of_range(refusal, kind, index):
    inputs = {"x": zeros(2, 3), "i": index}
    outcome = refusal.run(model([node(kind, ["x", "i"])], inputs), inputs)
    unknown = outcome.code == 3 and "E301" in outcome.err
    refusal.check(outcome, {3} if unknown else {2}, "culprit")


@pytest.mark.parametrize("kind, index, updates", [
    ("ScatterElements", ints(5).reshape(1, 1), zeros(1, 1)), ("ScatterND", ints(0, 9).reshape(1, 2), zeros(1))])
def test_scatter_out_of_range(refusal, kind, index, updates):
    inputs = {"x": zeros(2, 3), "i": index, "u": updates}
    outcome = refusal.run(model([node(kind, ["x", "i", "u"])], inputs), inputs)
    unknown = outcome.code == 3 and "E301" in outcome.err
    refusal.check(outcome, {3} if unknown else {2}, "culprit")


def test_special_values_as_the_reference(refusal):
    x = np.array([np.nan, np.inf, -np.inf, 1e-40, -1e-40, 0.0, -0.0, 3e38], np.float32)
    nodes = [node("Add", ["x", "x"], ["s"]), node("Max", ["x", "z"], ["m"]), node("Relu", ["x"], ["r"]),
             node("Mul", ["x", "h"], ["p"])]
    special = model(nodes, {"x": x}, {"z": zeros(8), "h": np.full(8, 0.5, np.float32)}, outputs=["s", "m", "r", "p"])
    outcome = refusal.run(special, {"x": x})
    assert outcome.code == 0, outcome.err
    with np.errstate(all="ignore"):
        expected = [x + x, np.maximum(x, 0), np.maximum(x, 0), x * np.float32(0.5)]
    for index, value in enumerate(expected):
        np.testing.assert_array_equal(np.load(refusal.out / f"{index}.npy"), value)


# ---- names

@pytest.mark.parametrize("name", ["int", "a b", "x=1=", "é漢字", "../../x", "%s%n", "a\nb", "-x", "'\"`$(true)"])
def test_names_that_are_no_identifiers(refusal, name):
    inputs = {name: np.full((2, 3), -1, np.float32)}
    odd = model([node("Relu", [name], ["while"], "return"), node("Neg", ["while"], ["y"], name)], inputs)
    outcome = refusal.run(odd, inputs)
    assert outcome.code == 0, outcome.err
    assert (np.load(refusal.out / "0.npy") == 0).all()


def test_name_that_is_not_utf8(refusal, tmp_path):
    data = relu().SerializeToString().replace(b"image", b"\xff\xfe\x80im")
    np.save(tmp_path / "x.npy", zeros(2, 3))
    outcome = refusal.aglow("run", refusal.write(data), "--input", b"\xff\xfe\x80im=" + os.fsencode(tmp_path / "x.npy"),
                            "--output-dir", refusal.out)
    assert outcome.code == 0, outcome.err


def test_name_of_one_mebibyte(refusal):
    long = "n" * (1 << 20)
    outcome = refusal.run(model([node("Relu", ["image"], [long], long), node("Neg", [long])], X), X)
    assert outcome.code == 0, outcome.err[:1000]


def test_long_name_in_a_message_is_bounded(refusal):
    long = "n" * (1 << 20)
    refusal.refuse(model([node("Softmax", ["image"], name=long, axis=9)], X), {2}, "nnnn", inputs=X)


# ---- places to write

def test_output_folder_is_made(refusal):
    refusal.out = refusal.folder / "new" / "deep"
    outcome = refusal.run(relu(), X)
    assert outcome.code == 0, outcome.err
    assert [path.name for path in refusal.out.iterdir()] == ["0.npy"]


def test_output_folder_is_a_file(refusal, tmp_path):
    refusal.out.write_text("precious")
    refusal.refuse(relu(), {8}, inputs=X)
    assert refusal.out.read_text() == "precious"


def test_disk_full(refusal, program, tmp_path):
    """No file may grow beyond a block: the write fails as on a full disk, and nothing is left behind."""
    big = {"image": zeros(100, 100)}
    path = refusal.write(model([node("Relu", ["image"])], big))
    np.save(tmp_path / "x.npy", big["image"])
    refusal.out.mkdir()
    limited = ["sh", "-c", 'trap "" XFSZ; ulimit -f 8; exec "$@"', "sh"]
    outcome = process.run([*limited, program, "run", path, "--input", f"image={tmp_path}/x.npy", "--output-dir",
                           refusal.out], timeout=20 * refusal.slow)
    refusal.check(outcome, {8})


# ---- the command line

@pytest.mark.parametrize("arguments", [["frobnicate"], ["run"], ["run", "--nonsense"], ["--nonsense"]])
def test_usage(refusal, arguments):
    outcome = refusal.aglow(*arguments)
    assert outcome.code == 1, outcome.err
    assert outcome.err and not outcome.out


def test_help_goes_to_stdout(refusal):
    outcome = refusal.aglow("--help")
    assert outcome.code == 0 and "run" in outcome.out and outcome.err == ""


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["run", "--help"], ["ops"]])
def test_stdout_on_a_full_disk(program, arguments):
    with open("/dev/full", "wb") as full:
        done = subprocess.run([program, *arguments], stdout=full, stderr=subprocess.PIPE, timeout=60)
    assert done.returncode == 8 and b"stdout cannot be written" in done.stderr


def test_same_bytes_every_time(refusal, root):
    digits = root / "examples" / "digits"
    images = {"image": np.load(digits / "images" / "7.npy")}
    model_proto = onnx.load(digits / "digits.onnx")
    first = refusal.run(model_proto, images)
    assert first.code == 0, first.err
    before = (refusal.out / "0.npy").read_bytes()
    assert refusal.run(model_proto, images).code == 0
    assert (refusal.out / "0.npy").read_bytes() == before
