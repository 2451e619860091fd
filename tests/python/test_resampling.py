"""Resize as torch's exporters write interpolate, and GridSample, against numpy; and numpy against torch, where it is
installed."""
import itertools

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import resampling_oracles as oracles

RANDOM = np.random.default_rng(3)
IMAGES = {axes: RANDOM.uniform(-1, 1, shape).astype(np.float32)
          for axes, shape in {1: (2, 2, 9), 2: (1, 2, 7, 10), 3: (1, 1, 4, 5, 6)}.items()}
# (axes, size, scale factor); the fractional factors leave a part of an element over.
SIZES = [(1, None, (0.55,)), (1, None, (2.3,)), (1, (41,), None), (2, None, (1.5, 1.5)), (2, None, (1.3, 0.6)),
         (2, (11, 3), None), (2, (1, 23), None), (3, None, (1.7, 1.7, 1.7))]
MODES = [("nearest", False), ("linear", False), ("linear", True), ("cubic", False), ("cubic", True)]
INTERPOLATIONS = [(axes, size, factor, mode, aligned) for (axes, size, factor), (mode, aligned) in
                  itertools.product(SIZES, MODES) if mode != "cubic" or axes == 2]
INTERPOLATIONS.append((2, None, (1.1, 1.1), "linear", False))  # 7 elements stay 7
SAMPLES = list(itertools.product(("nearest", "linear", "cubic"), ("zeros", "border", "reflection"), (False, True)))
GRID = RANDOM.uniform(-2.5, 2.5, (1, 4, 6, 2)).astype(np.float32)
GRID.reshape(-1)[:9] = [-1, 1, 0, -2, 2, -1.5, 1.5, 0.5, -0.5]


def run(aglow, tmp_path, nodes, inputs, constants, outputs, opset, backend):
    infos = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
             for name, value in inputs.items()]
    fixed = [numpy_helper.from_array(value, name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, "resampling", infos, [onnx.ValueInfoProto(name=name) for name in outputs], fixed)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    onnx.save(model, tmp_path / "model.onnx")
    given = []
    for name, value in inputs.items():
        np.save(tmp_path / f"{name}.npy", value)
        given.append(f"--input={name}={tmp_path}/{name}.npy")
    outcome = aglow("run", tmp_path / "model.onnx", "--backend", backend, *given, "--output-dir", tmp_path / "out")
    assert outcome.code == 0, outcome.err
    return [np.load(tmp_path / "out" / f"{i}.npy") for i in range(len(outputs))]


def expect_close(got, expected, what):
    assert got.shape == expected.shape, what
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-5 * np.ptp(expected), err_msg=str(what))


@pytest.mark.parametrize("backend", ["interpreter", "cpu"])
def test_resize_is_interpolate(aglow, tmp_path, backend):
    """All of them side by side in one model."""
    nodes, constants = [], {}
    for i, (axes, size, factor, mode, aligned) in enumerate(INTERPOLATIONS):
        constants[f"to{i}"] = np.array((1, 1, *size), np.int64) if size else np.array((1, 1, *factor), np.float32)
        if size:
            constants[f"to{i}"][:2] = IMAGES[axes].shape[:2]
        places = "asymmetric" if mode == "nearest" else "align_corners" if aligned else "half_pixel"
        nodes.append(helper.make_node("Resize", [f"x{axes}", "", *([""] if size else []), f"to{i}"], [f"y{i}"], mode=mode,
                                      coordinate_transformation_mode=places, nearest_mode="floor"))
    got = run(aglow, tmp_path, nodes, {f"x{axes}": x for axes, x in IMAGES.items()}, constants,
              [node.output[0] for node in nodes], 18, backend)
    for y, (axes, size, factor, mode, aligned) in zip(got, INTERPOLATIONS):
        expect_close(y, oracles.interpolate(IMAGES[axes], mode, aligned, size, factor), (axes, size, factor, mode, aligned))


@pytest.mark.parametrize("backend", ["interpreter", "cpu"])
def test_grid_sample(aglow, tmp_path, backend):
    nodes = [helper.make_node("GridSample", ["x", "grid"], [f"y{i}"], mode=mode, padding_mode=padding,
                              align_corners=int(aligned)) for i, (mode, padding, aligned) in enumerate(SAMPLES)]
    got = run(aglow, tmp_path, nodes, {"x": IMAGES[2], "grid": GRID}, {}, [node.output[0] for node in nodes], 20, backend)
    for y, sample in zip(got, SAMPLES):
        expect_close(y, oracles.grid_sample(IMAGES[2], GRID, *sample), sample)


def resized(aglow, tmp_path, x, opset, backend="interpreter", **attributes):
    """One axis, by the attribute `size` or `scale`."""
    size, scale = attributes.pop("size", None), attributes.pop("scale", None)
    to = np.array([1, 1, size], np.int64) if size else np.array([1, 1, scale], np.float32)
    operands = ["x", "to"] if opset == 10 else ["x", "roi", *([""] if size else []), "to"]
    roi = np.array(attributes.pop("roi", []), np.float32)
    node = helper.make_node("Resize", operands, ["y"], **attributes)
    x = np.asarray(x, np.float32).reshape(1, 1, -1)
    constants = {"to": to} | ({} if opset == 10 else {"roi": roi})
    return run(aglow, tmp_path, [node], {"x": x}, constants, ["y"], opset, backend)[0].ravel().tolist()


def test_opset_10_takes_the_upper_element_where_an_axis_shrinks(aglow, tmp_path):
    assert resized(aglow, tmp_path, [1, 2, 3, 4], 10, scale=0.6) == [1, 3]
    assert resized(aglow, tmp_path, [1, 2, 3, 4], 10, scale=0.5) == [1, 3]
    assert resized(aglow, tmp_path, [1, 2, 3], 10, scale=1.5) == [1, 1, 2, 3]


def test_opset_10_grows_and_shrinks_at_once(aglow, tmp_path):
    x = np.arange(8, dtype=np.float32).reshape(1, 1, 2, 4)
    node = helper.make_node("Resize", ["x", "scales"], ["y"], mode="nearest")
    scales = {"scales": np.array([1, 1, 1.5, 0.6], np.float32)}
    assert run(aglow, tmp_path, [node], {"x": x}, scales, ["y"], 10, "interpreter")[0].tolist() == [[[[0, 2], [0, 2], [4, 6]]]]


def test_places_that_are_whole_are_not_rounded_away(aglow, tmp_path):
    """(19 + 0.5) * 17 / 39 - 0.5 is 8."""
    for coordinates in ("half_pixel_symmetric", "half_pixel"):
        y = resized(aglow, tmp_path, range(17), 19, size=39, coordinate_transformation_mode=coordinates, nearest_mode="floor")
        assert y == [max(((2 * i + 1) * 17 - 39) // 78, 0) for i in range(39)] and y[19] == 8


def test_crops_have_the_width_of_the_result(aglow, tmp_path):
    y = resized(aglow, tmp_path, [0, 1, 2, 3, 4], 13, scale=0.7, mode="linear", roi=[0, 0, 0.25, 1, 1, 0.75],
                coordinate_transformation_mode="tf_crop_and_resize")
    assert y == [1, 2, 3]


def test_numpy_agrees_with_torch():
    torch = pytest.importorskip("torch")
    function = torch.nn.functional
    for axes, size, factor, mode, aligned in INTERPOLATIONS:
        name = mode if mode == "nearest" else "bicubic" if mode == "cubic" else ("linear", "bilinear", "trilinear")[axes - 1]
        settings = {} if mode == "nearest" else dict(align_corners=aligned)
        y = function.interpolate(torch.from_numpy(IMAGES[axes]), size, factor, name, **settings).numpy()
        expect_close(oracles.interpolate(IMAGES[axes], mode, aligned, size, factor), y, (axes, size, factor, mode, aligned))
    for mode, padding, aligned in SAMPLES:
        name = {"linear": "bilinear", "cubic": "bicubic"}.get(mode, mode)
        y = function.grid_sample(torch.from_numpy(IMAGES[2]), torch.from_numpy(GRID), name, padding, aligned).numpy()
        expect_close(oracles.grid_sample(IMAGES[2], GRID, mode, padding, aligned), y, (mode, padding, aligned))
