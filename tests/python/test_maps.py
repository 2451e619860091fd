"""Maps of ai.onnx.ml: JSON in and out of the program, test data, comparisons, bundles."""
import json
import subprocess

import numpy as np
import onnx
import pytest
from map_models import DOUBLE, FLOAT, INT64, STRING, classifier, features, map_type, ml_node, model, zip_map
from onnx import helper, numpy_helper


@pytest.fixture
def run(aglow, tmp_path, backend):
    """run(model, inputs): the outputs, maps as JSON has them; arrays go into .npy files, all else into .json files."""
    def call(proto, inputs):
        onnx.save(proto, tmp_path / "model.onnx")
        words = []
        for name, value in inputs.items():
            if isinstance(value, np.ndarray):
                np.save(tmp_path / f"{name}.npy", value)
            else:
                (tmp_path / f"{name}.json").write_text(json.dumps(value))
            words += ["--input", f"{name}={tmp_path / name}.{'npy' if isinstance(value, np.ndarray) else 'json'}"]
        outcome = aglow("run", tmp_path / "model.onnx", *words, "--output-dir", tmp_path / "out")
        assert outcome.code == 0, outcome.err
        found = []
        for i in range(len(proto.graph.output)):
            file = tmp_path / "out" / f"{i}.json"
            found.append(json.loads(file.read_text()) if file.exists() else np.load(tmp_path / "out" / f"{i}.npy"))
        return found
    return call


@pytest.mark.parametrize("labels", [["no", "yes", "ä, \"b\"\n"], [0, 1, 2], [7, -3, 5], ["c", "a", "b"]], ids=str)
def test_zip_map(run, labels):
    x = np.array([[0.25, 0.5, 1e-7], [1 / 3, -2, 3]], np.float32)
    maps, = run(zip_map(labels), {"x": x})
    assert [list(map(str, sorted(labels)))] * 2 == [list(entries) for entries in maps]
    for entries, row in zip(maps, x):
        assert {str(label): np.float32(entries[str(label)]) for label in labels} == dict(zip(map(str, labels), row))


def test_zip_map_of_odd_shapes(run):
    assert run(zip_map(["a", "b"], [2]), {"x": np.array([1, 2], np.float32)}) == [[{"a": 1, "b": 2}]]
    assert run(zip_map(["a", "b"]), {"x": np.zeros((0, 2), np.float32)}) == [[]]
    # Of equal labels the last one counts.
    assert run(zip_map(["b", "a", "b"]), {"x": np.array([[1, 2, 3]], np.float32)}) == [[{"a": 2, "b": 3}]]
    x = np.array([[np.nan, np.inf, -np.inf]], np.float32)
    assert run(zip_map([1, 2, 3]), {"x": x}) == [[{"1": "NaN", "2": "Infinity", "3": "-Infinity"}]]


@pytest.mark.parametrize("labels", [["setosa", "versicolor", "virginica"], [10, 20, 30]], ids=["words", "numbers"])
def test_classifier(run, labels):
    proto, expected = classifier(labels)
    for rows in (1, 9):
        x = features(rows)
        label, maps = run(proto, {"x": x})
        names, shares = expected(x)
        label = [word.decode() for word in label] if isinstance(labels[0], str) else label.tolist()
        assert label == names
        for entries, row in zip(maps, shares):
            np.testing.assert_allclose([entries[str(name)] for name in labels], row, rtol=1e-5)


VECTORIZERS = [
    ("string_vocabulary", ["a", "c", "b", "a"], STRING, FLOAT, {"a": 1.5, "b": -2, "z": 9}, [[1.5, 0, -2, 1.5]]),
    ("int64_vocabulary", [3, -1, 8], INT64, DOUBLE, {"-1": 1e300, "8": "NaN"}, [[0, 1e300, np.nan]]),
    ("string_vocabulary", ["x", "y"], STRING, INT64, {"y": 2**62 + 1}, [[0, 2**62 + 1]]),
    ("int64_vocabulary", [1, 2], INT64, STRING, {"2": "two"}, [[b"", b"two"]]),
    ("string_vocabulary", ["x"], STRING, FLOAT, {}, [[0]]),
]


@pytest.mark.parametrize("attribute, vocabulary, key, value, given, expected", VECTORIZERS)
def test_dict_vectorizer(run, attribute, vocabulary, key, value, given, expected):
    proto = model([ml_node("DictVectorizer", ["x"], ["y"], **{attribute: vocabulary})], {"x": map_type(key, value)},
                  {"y": helper.make_tensor_type_proto(value, [1, len(vocabulary)])})
    found, = run(proto, {"x": given})
    np.testing.assert_array_equal(found, np.array(expected, found.dtype))


CASTS = [
    ({}, FLOAT, {"4": 1.5, "-2": 2}, [[2, 1.5]]),
    ({"cast_to": "TO_INT64"}, FLOAT, {"1": 1.9, "2": -1.9}, [[1, -1]]),
    ({"cast_to": "TO_STRING"}, FLOAT, {"1": 1.5, "2": -2}, [[b"1.500000", b"-2.000000"]]),
    ({"cast_to": "TO_FLOAT"}, STRING, {"1": "1.5", "2": "-2e1"}, [[1.5, -20]]),
    ({"cast_to": "TO_STRING"}, STRING, {"2": "b", "1": "a"}, [[b"a", b"b"]]),
    ({"map_form": "SPARSE", "max_map": 5}, FLOAT, {"3": 1, "0": 2, "7": 3}, [[2, 0, 0, 1, 0]]),
    ({"map_form": "SPARSE", "max_map": 3, "cast_to": "TO_INT64"}, STRING, {"1": "12"}, [[0, 12, 0]]),
    ({}, FLOAT, {}, [[]]),
]


@pytest.mark.parametrize("attributes, value, given, expected", CASTS)
def test_cast_map(run, attributes, value, given, expected):
    kind = {"TO_INT64": INT64, "TO_STRING": STRING}.get(attributes.get("cast_to"), FLOAT)
    proto = model([ml_node("CastMap", ["x"], ["y"], **attributes)], {"x": map_type(INT64, value)},
                  {"y": helper.make_tensor_type_proto(kind, [1, None])})
    found, = run(proto, {"x": given})
    np.testing.assert_array_equal(found, np.array(expected, found.dtype))


def test_maps_inside_of_branches(run):
    """A branch that makes maps, and a vectorizer after a computed product."""
    branches = [helper.make_graph([ml_node("ZipMap", ["x"], [name], classlabels_strings=labels)], name, [],
                                  [onnx.ValueInfoProto(name=name)]) for name, labels in (("up", ["a", "b"]), ("down", ["c", "d"]))]
    proto = zip_map(["a", "b"])
    proto.graph.node[0].CopyFrom(helper.make_node("If", ["which"], ["maps"], then_branch=branches[0], else_branch=branches[1]))
    proto.graph.input.append(helper.make_tensor_value_info("which", onnx.TensorProto.BOOL, []))
    x = np.array([[1, 2]], np.float32)
    assert run(proto, {"x": x, "which": np.array(True)}) == [[{"a": 1, "b": 2}]]
    assert run(proto, {"x": x, "which": np.array(False)}) == [[{"c": 1, "d": 2}]]
    nodes = [ml_node("DictVectorizer", ["x"], ["row"], string_vocabulary=["a", "b"]),
             helper.make_node("MatMul", ["row", "w"], ["raw"]),
             ml_node("ZipMap", ["raw"], ["maps"], classlabels_int64s=[4, 2])]
    proto = model(nodes, {"x": map_type(STRING, FLOAT)}, {"maps": zip_map([1]).graph.output[0].type},
                  [numpy_helper.from_array(np.array([[1, 2], [3, 4]], np.float32), "w")])
    assert run(proto, {"x": {"b": 2, "a": 1}}) == [[{"2": 10, "4": 7}]]


def test_outputs_are_shown(aglow, tmp_path):
    onnx.save(zip_map(["no", "yes"]), tmp_path / "m.onnx")
    np.save(tmp_path / "x.npy", np.array([[0.25, 0.75], [1, 0]], np.float32))
    outcome = aglow("run", tmp_path / "m.onnx", "--input", f"x={tmp_path}/x.npy")
    assert outcome.out == ("maps[0] : map(string, f32) = {'no': 0.25, 'yes': 0.75}\n"
                           "maps[1] : map(string, f32) = {'no': 1, 'yes': 0}\n"), outcome.err
    outcome = aglow("inspect", tmp_path / "m.onnx", "--support")
    assert "ai.onnx.ml::ZipMap" in outcome.out and "NO" not in outcome.out
    outcome = aglow("inspect", tmp_path / "m.onnx")
    assert "maps : sequence(map(string, f32[]))" in outcome.out


# ---- test data and comparisons

def proto_of(maps, key):
    """A SequenceProto of maps."""
    sequence = onnx.SequenceProto(name="maps", elem_type=onnx.SequenceProto.MAP)
    for entries in maps:
        proto = sequence.map_values.add()
        proto.key_type = key
        if key == STRING:
            proto.string_keys.extend(name.encode() for name in entries)
        else:
            proto.keys.extend(entries)
        values = [np.array(value, np.float32) for value in entries.values()]
        proto.values.CopyFrom(numpy_helper.from_list(values, "", onnx.SequenceProto.TENSOR))
    return sequence


@pytest.mark.parametrize("labels", [["b", "a"], [3, 1]], ids=["words", "numbers"])
def test_verify_against_test_data(aglow, tmp_path, labels):
    key = STRING if isinstance(labels[0], str) else INT64
    x = np.array([[0.5, 0.25], [1, 2]], np.float32)
    onnx.save(zip_map(labels), tmp_path / "m.onnx")
    (tmp_path / "d").mkdir()
    (tmp_path / "d/input_0.pb").write_bytes(numpy_helper.from_array(x, "x").SerializeToString())

    def verify(maps):
        (tmp_path / "d/output_0.pb").write_bytes(proto_of(maps, key).SerializeToString())
        return aglow("verify", tmp_path / "m.onnx", "--against", tmp_path / "d")

    right = [dict(zip(labels, row)) for row in x.tolist()]
    outcome = verify(right)
    assert outcome.code == 0 and "2 x map(" in outcome.out and "agrees" in outcome.out, outcome.err + outcome.out
    outcome = verify([right[0], {**right[1], labels[0]: 1.5}])
    assert outcome.code == 5 and f"[1][{labels[0]}]" in outcome.out and "DIFFERS at 1 of 4 elements" in outcome.out
    outcome = verify([right[0], {labels[0]: 1.0}])
    assert outcome.code == 5 and "[1] has other keys" in outcome.out
    outcome = verify(right[:1])
    assert outcome.code == 5 and "a sequence of 2; expected a sequence of 1" in outcome.out


def test_verify_map_inputs(aglow, tmp_path):
    """A MapProto as input, and the files of `aglow run` as what is expected."""
    proto = model([ml_node("DictVectorizer", ["x"], ["y"], string_vocabulary=["a", "b"])], {"x": map_type(STRING, FLOAT)},
                  {"y": helper.make_tensor_type_proto(FLOAT, [1, 2])})
    onnx.save(proto, tmp_path / "m.onnx")
    (tmp_path / "d").mkdir()
    entry = proto_of([{"b": 2.0}], STRING).map_values[0]
    (tmp_path / "d/input_0.pb").write_bytes(entry.SerializeToString())
    (tmp_path / "d/output_0.pb").write_bytes(numpy_helper.from_array(np.array([[0, 2]], np.float32)).SerializeToString())
    outcome = aglow("verify", tmp_path / "m.onnx", "--against", tmp_path / "d")
    assert outcome.code == 0, outcome.err + outcome.out
    onnx.save(zip_map(["a", "b"]), tmp_path / "z.onnx")
    np.save(tmp_path / "x.npy", np.array([[0.1, 0.2]], np.float32))
    words = [tmp_path / "z.onnx", "--input", f"x={tmp_path}/x.npy"]
    assert aglow("run", *words, "--output-dir", tmp_path / "out").code == 0
    outcome = aglow("verify", *words, "--against", tmp_path / "out", "--atol", "0", "--rtol", "0")
    assert outcome.code == 0 and "agrees" in outcome.out, outcome.err
    assert aglow("verify", *words, "--backend", "cpu,interpreter").code == 0


BAD_INPUTS = [
    ('{"a": 1', 8, "expected JSON"),
    ("[1]", 8, "expected an object, got array"),
    ('{"a": "one"}', 8, "expected a number, got string"),
    ('{"a": [1]}', 8, "expected a number, got array"),
    ("", 8, "expected JSON"),
    (None, 8, "E801"),
]


@pytest.mark.parametrize("text, code, words", BAD_INPUTS)
def test_bad_json(aglow, tmp_path, text, code, words):
    proto = model([ml_node("DictVectorizer", ["x"], ["y"], string_vocabulary=["a", "b"])], {"x": map_type(STRING, FLOAT)},
                  {"y": helper.make_tensor_type_proto(FLOAT, [1, 2])})
    onnx.save(proto, tmp_path / "m.onnx")
    if text is not None:
        (tmp_path / "x.json").write_text(text)
    outcome = aglow("run", tmp_path / "m.onnx", "--input", f"x={tmp_path}/x.json")
    assert outcome.code == code and words in outcome.err, outcome.err


def test_what_does_not_fit(aglow, tmp_path):
    proto = model([ml_node("CastMap", ["x"], ["y"])], {"x": map_type(INT64, FLOAT)},
                  {"y": helper.make_tensor_type_proto(FLOAT, [1, None])})
    onnx.save(proto, tmp_path / "m.onnx")
    outcome = aglow("run", tmp_path / "m.onnx")
    assert outcome.code == 1 and "--input 'x=FILE.json'" in outcome.err, outcome.err
    (tmp_path / "x.json").write_text('{"one": 1}')
    outcome = aglow("run", tmp_path / "m.onnx", "--input", f"x={tmp_path}/x.json")
    assert outcome.code == 8 and "expected keys that are integers, got 'one'" in outcome.err
    # Columns and labels that differ in number; a key that is not a column.
    onnx.save(zip_map(["a", "b"]), tmp_path / "z.onnx")
    np.save(tmp_path / "x.npy", np.zeros((1, 3), np.float32))
    outcome = aglow("run", tmp_path / "z.onnx", "--input", f"x={tmp_path}/x.npy")
    assert outcome.code == 2 and "expected f32[rows,2], a column for each class label, got f32[1,3]" in outcome.err
    proto.graph.node[0].attribute.append(helper.make_attribute("map_form", "SPARSE"))
    onnx.save(proto, tmp_path / "m.onnx")
    (tmp_path / "x.json").write_text('{"-1": 1}')
    outcome = aglow("run", tmp_path / "m.onnx", "--input", f"x={tmp_path}/x.json")
    assert outcome.code == 2 and "expected keys that are columns, got -1" in outcome.err
    # A whole program takes no maps.
    outcome = aglow("compile", tmp_path / "m.onnx", "-o", tmp_path / "out")
    assert outcome.code == 3 and "E302" in outcome.err


# ---- bundles

DRIVER = r"""
#include <stdio.h>
#include <string.h>
#include "model.h"
static _Alignas(64) uint8_t weights[MODEL_CONSTANTS_BYTES + 1], memory[MODEL_MUTABLE_BYTES], work[MODEL_ACTIVATIONS_BYTES];
int main(void) {
  static const float x[] = {%s};
  static const %s keys[] = MODEL_PROBABILITIES_KEYS;
  FILE *file = fopen("out/model.weights.bin", "rb");
  if (file == NULL || fread(weights, 1, MODEL_CONSTANTS_BYTES, file) != MODEL_CONSTANTS_BYTES) return 1;
  memcpy(MODEL_X(memory), x, MODEL_X_BYTES);
  if (model(weights, memory, work) != MODEL_OK) return 2;
  for (int i = 0; i < MODEL_PROBABILITIES_ELEMENTS; ++i)
    printf("%s %%.9g\n", keys[i %% MODEL_PROBABILITIES_KEYS_COUNT], MODEL_PROBABILITIES(memory)[i]);
  %s
  return 0;
}
"""


@pytest.mark.parametrize("labels", [["se\"to\\sa", "??/versi", "ä"], [10, -2**63, 30]], ids=["words", "numbers"])
def test_bundle(program, tmp_path, labels):
    """The probabilities are a table whose columns the header names, and named labels are numbers of words."""
    proto, expected = classifier(labels)
    onnx.save(proto, tmp_path / "model.onnx")
    subprocess.run([program, "compile", tmp_path / "model.onnx", "-o", tmp_path / "out", "--emit", "bundle", "--dim", "n=3"],
                   check=True)
    x = features(3)
    words = isinstance(labels[0], str)
    label = ('static const char *const words[] = MODEL_LABEL_WORDS; for (int i = 0; i < 3; ++i) puts(words[MODEL_LABEL(memory)[i]]);'
             if words else 'for (int i = 0; i < 3; ++i) printf("%lld\\n", (long long)MODEL_LABEL(memory)[i]);')
    source = DRIVER % (", ".join(map(repr, x.ravel().tolist())), "char *const" if words else "long long",
                       "%s" if words else "%lld", label)
    (tmp_path / "main.c").write_text(source)
    subprocess.run(["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-trigraphs", f"-I{tmp_path}/out", tmp_path / "main.c",
                    tmp_path / "out/model.o", "-o", tmp_path / "main", "-lm"], check=True)
    lines = subprocess.run([tmp_path / "main"], cwd=tmp_path, check=True, capture_output=True, text=True).stdout.splitlines()
    names, shares = expected(x)
    for line, name, share in zip(lines, labels * 3, shares.ravel(), strict=False):
        found, number = line.rsplit(" ", 1)
        assert found == str(name)
        np.testing.assert_allclose(float(number), share, rtol=1e-4)
    assert lines[9:] == list(map(str, names))
