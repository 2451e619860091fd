"""Tokenizer of com.microsoft, against plain Python: characters, separators, and what a pattern finds."""
import re

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

TEXTS = np.array([["Hello World, hello", "", "  "], ["äöü-α", "a,b;;c", "one  two"]])


def model(shape, **attributes):
    node = helper.make_node("Tokenizer", ["x"], ["y"], domain="com.microsoft", **attributes)
    graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("x", TensorProto.STRING, shape)],
                              [helper.make_tensor_value_info("y", TensorProto.STRING, None)])
    return helper.make_model(graph, ir_version=8,
                             opset_imports=[helper.make_opsetid("", 15), helper.make_opsetid("com.microsoft", 1)])


@pytest.fixture
def run(aglow, tmp_path):
    """run(texts, **attributes): the tokens; run.outcome is what the program said."""
    def call(texts, **attributes):
        onnx.save(model(texts.shape, **{"mark": 0, "mincharnum": 1, "pad_value": "#", **attributes}), tmp_path / "m.onnx")
        np.save(tmp_path / "x.npy", np.char.encode(texts, "utf-8") if texts.size else texts.astype("S1"))
        call.outcome = aglow("run", tmp_path / "m.onnx", "--input", f"x={tmp_path}/x.npy", "--output-dir", tmp_path / "out")
        return np.load(tmp_path / "out" / "0.npy") if call.outcome.code == 0 else None
    return call


def expected(texts, cut, mark=False, pad="#"):
    rows = [cut(text) for text in texts.ravel().tolist()]
    width = max(map(len, rows))
    if width == 0:
        return np.zeros((*texts.shape, 0), "S1")
    marked = [["\x02", *row, "\x03"] if mark else row for row in rows]
    filled = [row + [pad] * (width + 2 * mark - len(row)) for row in marked]
    return np.char.encode(np.array(filled).reshape(*texts.shape, -1), "utf-8")


CUTS = {
    "characters": ({"separators": [""]}, list),
    "any": ({"tokenexp": "."}, list),
    "blanks": ({"separators": [" "]}, lambda text: [word for word in text.split(" ") if word]),
    "two separators": ({"separators": [" ", "[,;-]+"]}, lambda text: [word for word in re.split("[ ,;-]+", text) if word]),
    "words": ({"tokenexp": "[a-zA-Z]+"}, lambda text: re.findall("[a-zA-Z]+", text)),
    "longest": ({"tokenexp": "l|lo|llo"}, lambda text: re.findall("llo|lo|l", text)),
    "long ones": ({"separators": [" "], "mincharnum": 5}, lambda text: [word for word in text.split(" ") if len(word) >= 5]),
    "long matches": ({"tokenexp": "[a-z]+", "mincharnum": 3}, lambda text: re.findall("[a-z]{3,}", text)),
    "nothing": ({"tokenexp": "[0-9]+"}, lambda text: []),
}


@pytest.mark.parametrize("mark", [False, True], ids=["plain", "marked"])
@pytest.mark.parametrize("name", CUTS)
def test_tokens(run, name, mark):
    attributes, cut = CUTS[name]
    for texts in (TEXTS, TEXTS[1], TEXTS[0, 1:2]):
        found = run(texts, mark=int(mark), **attributes)
        assert found is not None, run.outcome.err
        wanted = expected(texts, cut, mark)
        assert found.shape == wanted.shape
        np.testing.assert_array_equal(found, wanted)


def test_no_strings(run):
    for shape, result in (((0,), (0,)), ((3, 0), (3, 0))):
        assert run(np.zeros(shape, "U1"), separators=[" "]).shape == result, run.outcome.err


FAULTS = [
    ({"separators": [" "], "mincharnum": 0}, 2, "expected a positive attribute 'mincharnum', got 0"),
    ({}, 2, "expected one of the attributes 'separators' and 'tokenexp'"),
    ({"separators": ["["]}, 2, "is not a regular expression"),
    ({"tokenexp": ".", "mincharnum": 2}, 2, "expected 'mincharnum' 1 for tokens that are characters, got 2"),
]


@pytest.mark.parametrize("attributes, code, words", FAULTS)
def test_faults(run, attributes, code, words):
    run(TEXTS, **attributes)
    assert run.outcome.code == code and words in run.outcome.err, run.outcome.err


def test_bytes_that_are_no_text(aglow, tmp_path):
    onnx.save(model([1], mark=0, mincharnum=1, pad_value="", separators=[" "]), tmp_path / "m.onnx")
    np.save(tmp_path / "x.npy", np.array([b"a\xff"]))
    outcome = aglow("run", tmp_path / "m.onnx", "--input", f"x={tmp_path}/x.npy")
    assert outcome.code == 2 and "is not UTF-8" in outcome.err
