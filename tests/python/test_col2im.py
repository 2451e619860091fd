"""Col2Im against plain loops: windows that overlap, leave gaps, and lie on the padding."""
import itertools

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

# image, block, and attributes
CASES = [
    ((5, 6), (3, 3), {}),
    ((5, 6), (2, 3), {"pads": [1, 0, 2, 1]}),
    ((7, 9), (3, 2), {"dilations": [2, 3], "pads": [1, 1, 0, 2]}),
    ((8, 9), (2, 3), {"strides": [2, 3]}),
    ((7, 8), (3, 3), {"strides": [2, 2], "pads": [1, 1, 1, 1]}),
    ((9, 7), (5, 4), {"strides": [3, 2], "pads": [2, 3, 1, 0]}),
    ((9, 9), (2, 1), {"strides": [3, 2]}),
    ((9, 10), (3, 2), {"strides": [2, 1], "dilations": [2, 3]}),
    ((9, 9), (2, 2), {"strides": [1, 3], "dilations": [4, 1], "pads": [3, 2, 0, 5]}),
    ((12, 12), (9, 9), {}),
    ((4, 4), (2, 2), {"strides": [1000, 1000]}),
    ((11,), (4,), {"strides": [2], "pads": [3, 2]}),
    ((41,), (3,), {"pads": [2, 2]}),
    ((4, 70), (2, 5), {"dilations": [1, 3], "pads": [1, 4, 0, 7]}),
    ((3, 4, 5), (2, 2, 3), {"strides": [1, 2, 1], "pads": [0, 1, 1, 0, 1, 1]}),
]


def windows_of(image, block, attributes):
    rank = len(image)
    strides, dilations = (attributes.get(name, [1] * rank) for name in ("strides", "dilations"))
    pads = attributes.get("pads", [0] * 2 * rank)
    count = [(image[i] + pads[i] + pads[i + rank] - dilations[i] * (block[i] - 1) - 1) // strides[i] + 1 for i in range(rank)]
    return count, strides, dilations, pads


def by_definition(x, channels, image, block, attributes):
    count, strides, dilations, pads = windows_of(image, block, attributes)
    taps = x.reshape(len(x), channels, *block, *count)
    y = np.zeros((len(x), channels, *image))
    for tap, window in itertools.product(np.ndindex(*block), np.ndindex(*count)):
        place = [w * s - p + t * d for w, s, p, t, d in zip(window, strides, pads, tap, dilations)]
        if all(0 <= at < extent for at, extent in zip(place, image)):
            y[(slice(None), slice(None), *place)] += taps[(slice(None), slice(None), *tap, *window)]
    return y


def model_of(cases, values, kind, folder):
    """The model and the arguments of a run."""
    nodes, inputs, outputs, constants, arguments = [], [], [], [], []
    elem = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    for i, ((image, block, attributes), x) in enumerate(zip(cases, values)):
        np.save(folder / f"x{i}.npy", x)
        arguments += ["--input", f"x{i}={folder}/x{i}.npy"]
        constants += [numpy_helper.from_array(np.array(image), f"i{i}"), numpy_helper.from_array(np.array(block), f"b{i}")]
        nodes.append(helper.make_node("Col2Im", [f"x{i}", f"i{i}", f"b{i}"], [f"y{i}"], **attributes))
        inputs.append(helper.make_tensor_value_info(f"x{i}", elem, x.shape))
        outputs.append(helper.make_tensor_value_info(f"y{i}", elem, None))
    graph = helper.make_graph(nodes, "windows", inputs, outputs, constants)
    onnx.save(helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 18)]), folder / "m.onnx")
    return [folder / "m.onnx", *arguments]


def shape_of(image, block, attributes):
    return 2, 3 * int(np.prod(block)), int(np.prod(windows_of(image, block, attributes)[0]))


@pytest.mark.parametrize("backend", ["interpreter", "cpu"])
@pytest.mark.parametrize("kind", ["float32", "float16", "int32"])
def test_windows_add_up(aglow, tmp_path, backend, kind):
    random = np.random.default_rng(3)
    values = [random.integers(-8, 8, shape_of(*case)).astype(kind) for case in CASES]
    outcome = aglow("run", *model_of(CASES, values, kind, tmp_path), "--backend", backend, "--output-dir",
                    tmp_path / "out", timeout=300)
    assert outcome.code == 0, outcome.err
    for i, (case, x) in enumerate(zip(CASES, values)):
        want = by_definition(x, 3, *case).astype(kind)
        got = np.load(tmp_path / "out" / f"{i}.npy")
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got, want, err_msg=str(case))


def test_taps_add_up_in_their_order(aglow, tmp_path):
    """The same bits for every number of threads; those of the interpreter where it adds tap after tap as well, and not
    all of them in double."""
    random = np.random.default_rng(4)
    cases = [((60, 90), (3, 3), {"pads": [1, 1, 1, 1]}), ((5, 1200), (2, 4), {}), *CASES]
    words = model_of(cases, [random.normal(size=shape_of(*case)).astype("float32") for case in cases], "float32", tmp_path)
    for name, options in {"plain": ["--backend", "interpreter"], "one": ["--threads", "1"], "five": ["--threads", "5"]}.items():
        outcome = aglow("run", *words, *options, "--output-dir", tmp_path / name, timeout=300)
        assert outcome.code == 0, outcome.err
    for i, case in enumerate(cases):
        want, one, five = (np.load(tmp_path / name / f"{i}.npy") for name in ("plain", "one", "five"))
        assert one.tobytes() == five.tobytes(), case
        np.testing.assert_allclose(one, want, rtol=1e-5, atol=1e-5, err_msg=str(case))
        assert i > 1 or one.tobytes() == want.tobytes(), case
