"""What models tell of themselves, files they write, and the ways to hold them: contexts, pickles, tasks."""
import asyncio
import pickle
import re
import subprocess

import numpy as np
import pytest

import module_models as models
from conftest import ROOT

aglow = pytest.importorskip("aglow", reason="the module is not built: ./dev test builds it")

X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture(scope="module")
def conv():
    return aglow.compile(ROOT / "docs" / "tour" / "conv.onnx", dims={"batch": 1})


def test_inspection(conv):
    found = conv.inspect()
    assert found.operators["Conv"] >= 1 and found.parameters > 0 and found.nodes == sum(found.operators.values())
    assert found.unsupported == () and "Conv" in str(found) and "<table>" in found._repr_html_()
    strange = models.model([models.node("Strange", "x", "y")], [models.value("x", [2])], [models.value("y", [2])])
    with pytest.raises(aglow.Error):
        aglow.compile(strange)


def test_memory(conv):
    assert conv.memory().input_bytes == 64 and conv.memory().output_bytes == 128
    memory = aglow.compile(models.heavy(16, 3)).memory()
    assert memory.function == "main" and memory.arena_bytes >= memory.live_bytes > 0 and memory.buffers
    for buffer in memory.buffers:
        assert 0 <= buffer.offset and buffer.offset + buffer.bytes <= memory.arena_bytes and buffer.first <= buffer.last
    assert "activations" in str(memory) and "<svg" in memory._repr_svg_()


def test_profile(conv):
    profile = conv.profile(np.zeros((1, 1, 4, 4), np.float32), runs=3)
    assert profile.runs == 3 and profile.steps and profile.seconds > 0 and profile.peak_flops > 0
    assert abs(sum(step.share for step in profile.steps) - 1) < 1e-6
    assert "ms" in str(profile) and "<table>" in profile._repr_html_()
    with pytest.raises(aglow.UsageError, match="runs is 0"):
        conv.profile(np.zeros((1, 1, 4, 4), np.float32), runs=0)


def test_profile_of_an_open_size():
    steps = aglow.compile(models.affine()).profile(X).steps
    assert any("MatMul" in step.instruction for step in steps)


def test_verification():
    model = aglow.compile(models.affine())
    found = model.verify(X)
    assert found and found.against == "interpreter" and found.outputs[0].max_abs == 0
    wrong = model.verify(X, against=np.zeros((2, 2), np.float32))
    assert not wrong and wrong.outputs[0].beyond == 4 and "differ" in str(wrong)
    assert model.verify(X, against=np.zeros((2, 2), np.float32), atol=100)
    assert "[2,2]" in model.verify(X, against=np.zeros(3, np.float32)).outputs[0].fault
    assert model.verify(X, against=lambda x: x @ np.arange(6, dtype=np.float32).reshape(3, 2) + 1)
    with pytest.raises(aglow.UsageError):
        model.verify(X, against="nobody")


def test_saved_and_loaded(tmp_path):
    model = aglow.compile(models.affine(), dims={"rows": 2})
    for name in ("affine.aglow", "affine.graph", "affine.ir"):
        model.save(tmp_path / name)
        again = (aglow.load if name.endswith(".aglow") else aglow.compile)(tmp_path / name)
        outputs = again(X, np.ones(2, np.float32)) if len(again.inputs) == 2 else again(X)
        np.testing.assert_array_equal(outputs, model(X))
    with pytest.raises(aglow.UsageError, match="ending"):
        model.save(tmp_path / "affine.txt")


def test_what_the_cache_keeps_can_be_written(tmp_path):
    """What the cache gives of a graph is code that is loaded, and not what files are written from."""
    graph = aglow.Graph()
    main = graph.function("main")
    main.output("y", main.relu(main.input("x", "f32", (2, 3)) @ np.ones((3, 2), np.float32)))
    for turn in ("first", "second"):
        model = aglow.compile(graph, cache=tmp_path / "cache")
        outputs = model(X)
        model.save(tmp_path / f"{turn}.aglow")
        np.testing.assert_array_equal(aglow.load(tmp_path / f"{turn}.aglow")(X), outputs)
        model.emit(tmp_path / turn, name="affine")
        assert (tmp_path / turn / "affine.h").is_file()


def test_a_package_is_not_emitted(tmp_path):
    aglow.compile(models.affine(), dims={"rows": 1}).save(tmp_path / "a.aglow")
    with pytest.raises(aglow.UsageError, match="the model that it was made from"):
        aglow.load(tmp_path / "a.aglow").emit(tmp_path)


def test_inputs_with_defaults_are_not_in_the_way():
    model = aglow.compile(models.affine())
    assert repr(model) == "<aglow.Model model(x: f32[rows,3], 1 with defaults) -> (y: f32[rows,2])>"
    with pytest.raises(aglow.UsageError, match=r"takes 'x' f32\[rows,3\], 1 with defaults"):
        model()


def test_bundles(tmp_path):
    model = aglow.compile(models.affine(), dims={"rows": 2})
    model.emit(tmp_path / "out", name="affine")
    assert {path.name for path in (tmp_path / "out").iterdir()} >= {"affine.h", "affine.o"}
    assert b"affine" in subprocess.run(["nm", tmp_path / "out" / "affine.o"], capture_output=True, check=True).stdout
    with pytest.raises(aglow.UsageError, match="bundle"):
        model.emit(tmp_path / "out", "cake")


def test_models_pickle_by_their_source(tmp_path):
    path = models.save(models.affine(), tmp_path / "affine.onnx")
    model = aglow.compile(path, threads=1)
    data = pickle.dumps(model)
    assert len(data) < 2000 and str(path).encode() in data
    again = pickle.loads(data)
    np.testing.assert_array_equal(again(X), model(X))
    assert repr(again) == repr(model)
    of_bytes = pickle.loads(pickle.dumps(aglow.compile(models.affine())))
    np.testing.assert_array_equal(of_bytes(X), model(X))


def test_state_is_pickled_with_the_model():
    counter = aglow.compile(ROOT / "examples" / "counter" / "counter.graph")
    counter["add"](3)
    again = pickle.loads(pickle.dumps(counter))
    assert float(again["add"](1)) == 4 and float(counter["add"](1)) == 4


def test_a_closed_model_is_gone():
    with aglow.compile(models.affine()) as model:
        model(X)
        add = model["main"]
    for call in (lambda: model(X), lambda: add(X), lambda: model.graph(), lambda: model.memory()):
        with pytest.raises(aglow.UsageError, match="closed"):
            call()


def test_runs_beside_other_tasks():
    model = aglow.compile(models.affine())

    async def several():
        return await asyncio.gather(*(model.arun(X + i) for i in range(4)), model["main"].arun(x=X))

    outputs = asyncio.run(several())
    for i in range(4):
        np.testing.assert_array_equal(outputs[i], model(X + i))
    np.testing.assert_array_equal(outputs[4], model(X))


def test_the_lines_of_the_readme(tmp_path, monkeypatch, capsys):
    block = re.search(r"From \[Python\].*?\n\n((?:    .+\n)+)", (ROOT / "README.md").read_text())[1]
    lines = [line.strip() for line in block.splitlines()]
    assert len(lines) == 5 and lines[0].startswith("import aglow")
    model = models.model([models.node("GlobalAveragePool", "image", "y")], [models.value("image", ["batch", 3, 224, 224])],
                         [models.value("y")])
    models.save(model, tmp_path / "model.onnx")
    monkeypatch.chdir(tmp_path)
    found = {}
    exec("\n".join(lines), found)
    assert found["y"].shape == (1, 3, 1, 1) and "ms in" in capsys.readouterr().out


@pytest.mark.parametrize("options, words", [({"threads": -1}, "threads is -1"), ({"opt_level": 9}, "opt_level is 9"),
                                            ({"opt_level": -1}, "opt_level is -1"), ({"threads": "2"}, "threads is '2'"),
                                            ({"threads": 1.5}, "threads is 1.5; expected a whole number"),
                                            ({"memory_limit": -1}, "memory_limit is -1"),
                                            ({"dims": {"row": 4}}, "did you mean 'rows'"),
                                            ({"dims": {"rows": "four"}}, "'four'; expected a whole number")])
def test_numbers_out_of_range(options, words):
    with pytest.raises(aglow.UsageError, match=words):
        aglow.compile(models.affine(), **options)


@pytest.mark.parametrize("call", [lambda model: model(X, x=X), lambda model: model({"x": X}, x=X),
                                  lambda model: model["main"](X, x=X)])
def test_an_input_given_twice(call):
    with pytest.raises(aglow.UsageError, match="'x' was given twice"):
        call(aglow.compile(models.affine()))


class Foreign:
    """An array of another library: only DLPack tells of it."""

    def __init__(self, array):
        self._array = array

    def __dlpack__(self, **how):
        return self._array.__dlpack__(**how)

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()


def test_arrays_of_other_libraries():
    model = aglow.compile(models.affine())
    expected = model(X)
    np.testing.assert_array_equal(model(Foreign(X.copy())), expected)
    np.testing.assert_array_equal(np.from_dlpack(Foreign(model(X))), expected)


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float32"])
def test_kinds_that_numpy_lacks_go_by_dlpack(dtype):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    graph = aglow.Graph()
    main = graph.function()
    main.output("y", main.transpose(main.input("x", np.dtype(getattr(ml_dtypes, dtype, np.float32)), (2, 3)), perm=[1, 0]))
    x = np.arange(6).reshape(2, 3).astype(getattr(ml_dtypes, dtype, np.float32))
    y = aglow.compile(graph)(Foreign(aglow.dlpack(x)))
    assert y.dtype == x.dtype and y.tolist() == x.T.tolist()
    assert Foreign(aglow.dlpack(y)).__dlpack_device__()[0] == 1


def test_calls_of_changing_sizes_and_layouts():
    model = aglow.compile(models.affine())
    weights = np.arange(6, dtype=np.float32).reshape(3, 2)
    for rows in (1, 5, 2, 1, 7, 2):
        for _ in range(3):
            x = np.random.default_rng(rows).standard_normal((rows, 3)).astype(np.float32)
            np.testing.assert_allclose(model(x), x @ weights + 1, rtol=1e-5, atol=1e-5)
            np.testing.assert_allclose(model(np.asfortranarray(x)), x @ weights + 1, rtol=1e-5, atol=1e-5)
    results = [model(X) for _ in range(3)]
    assert results[0] is not results[1] and not np.shares_memory(results[1], results[2])
    results[1][:] = 0  # outputs are the caller's
    np.testing.assert_array_equal(model(X), results[2])


@pytest.mark.parametrize("wrong", [X.astype(np.float64), X[:, :2].copy(), X.ravel(), X.astype(">f4")])
def test_other_arrays_after_a_good_call(wrong):
    model = aglow.compile(models.affine())
    for _ in range(2):
        model(X)
    if wrong.dtype == np.dtype(">f4"):
        np.testing.assert_array_equal(model(wrong), model(X))
        return
    with pytest.raises(aglow.UsageError):
        model(wrong)
