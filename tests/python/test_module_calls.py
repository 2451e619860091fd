"""The Python module: models from every source, inputs in every form, and what comes back."""
import doctest
import pathlib
import runpy
import shutil

import numpy as np
import onnx
import pytest

import map_models
import module_models as models
from caffe2_nets import Net, Op, fill
from conftest import ROOT

aglow = pytest.importorskip("aglow", reason="the module is not built: ./dev test builds it")

X = np.arange(6, dtype=np.float32).reshape(2, 3)
Y = X @ np.arange(6, dtype=np.float32).reshape(3, 2) + 1


@pytest.fixture(params=["interpreter", "cpu"])
def backend(request):
    if request.param not in aglow.backends():
        pytest.skip(f"this build has no {request.param} backend")
    return request.param


def test_models_from_every_source(tmp_path):
    proto = models.affine()
    path = models.save(proto, tmp_path / "affine.onnx")
    for source in (path, str(path), proto.SerializeToString(), bytearray(proto.SerializeToString()), proto):
        np.testing.assert_array_equal(aglow.compile(source)(X), Y)


def test_inputs_in_every_form(backend):
    model = aglow.compile(models.affine(), backend=backend)
    for result in (model(X), model(x=X), model({"x": X}), model.run({"x": X})["y"], model(X, np.ones(2, np.float32)),
                   model(X.tolist())):
        np.testing.assert_array_equal(result, Y)
    np.testing.assert_array_equal(model(X, bias=[0, 5]), Y + np.float32([-1, 4]))


def test_several_outputs_are_a_tuple():
    model = aglow.compile(models.two_outputs())
    a, b = np.float32([1, 2]), np.float32([3, 5])
    total, difference = model(a, b)
    np.testing.assert_array_equal(total, a + b)
    np.testing.assert_array_equal(difference, a - b)
    assert list(model.run({"a": a, "b": b})) == ["sum", "difference"]


def test_inputs_and_outputs_are_described():
    model = aglow.compile(models.affine())
    x, bias = model.inputs
    assert (x.name, x.dtype, x.shape, x.type, x.has_default) == ("x", np.float32, ("rows", 3), "f32[rows,3]", False)
    assert bias.has_default
    assert [(y.name, y.shape) for y in model.outputs] == [("y", ("rows", 2))]
    assert "x: f32[rows,3]" in repr(model)


def test_one_model_runs_for_every_size(backend):
    model = aglow.compile(models.affine(), backend=backend)
    for rows in (0, 1, 4, 2, 1):
        x = np.full((rows, 3), 2, np.float32)
        np.testing.assert_array_equal(model(x), np.full((rows, 2), [13, 19], np.float32))


def test_several_sizes_with_padding(backend):
    model = aglow.compile(models.affine(), backend=backend, dims={"rows": (1, 4)}, pad=True)
    np.testing.assert_array_equal(model(X), Y)
    np.testing.assert_array_equal(model(X[:1]), Y[:1])


def test_outputs_go_into_given_arrays():
    model = aglow.compile(models.two_outputs())
    a, b = np.float32([1, 2]), np.float32([3, 5])
    total = np.zeros(2, np.float32)
    assert model(a, b, out=(total, None))[0] is total
    np.testing.assert_array_equal(total, a + b)
    assert model.run({"a": a, "b": b}, out={"difference": total})["difference"] is total
    np.testing.assert_array_equal(total, a - b)
    with pytest.raises(aglow.UsageError, match="expected float32.2., got float64.2."):
        model(a, b, out=(np.zeros(2), None))
    with pytest.raises(aglow.UsageError, match="did you mean 'difference'"):
        model(a, b, out={"diference": total})


@pytest.mark.parametrize("x", [np.asfortranarray(X), np.repeat(X, 2, axis=1)[:, ::2], X[::-1][::-1], X.astype(">f4")],
                         ids=["fortran", "strides", "reversed", "big-endian"])
def test_any_layout_is_taken(x):
    np.testing.assert_array_equal(aglow.compile(models.affine())(x), Y)


def test_read_only_arrays_are_taken():
    x = X.copy()
    x.flags.writeable = False
    np.testing.assert_array_equal(aglow.compile(models.affine())(x), Y)


def test_unaligned_arrays_are_taken():
    bytes_of = np.zeros(X.nbytes + 1, np.uint8)
    x = bytes_of[1:].view(np.float32).reshape(2, 3)
    x[:] = X
    assert not x.flags.aligned
    np.testing.assert_array_equal(aglow.compile(models.affine())(x), Y)


def test_values_are_always_the_same():
    model = aglow.compile(models.reshape(), values={"shape": [2, 3]})
    x = np.arange(6, dtype=np.float32)
    assert model(x).shape == (2, 3)
    assert "Reshape" in model.graph()


def test_an_input_that_decides_a_shape_may_change_in_place(backend):
    model = aglow.compile(models.reshape(), backend=backend)
    x, shape = np.arange(6, dtype=np.float32), np.array([2, 3])
    assert model(x, shape).shape == (2, 3)
    shape[:] = 3, 2
    assert model(x, shape).shape == (3, 2)
    shape[:] = 2, 3
    assert model(x, shape).shape == (2, 3)


def test_results_are_nobody_elses():
    model = aglow.compile(models.unary("Identity"))
    x = np.zeros(3, np.float32)
    y = model(x)
    y += 1
    assert not x.any() and not model(x).any()
    constant = aglow.compile(models.model([models.node("Add", "one one", "y")], [], [models.value("y", [1])],
                                          {"one": np.ones(1, np.float32)}))
    first = constant()
    first += 1
    assert constant() == [2]


def test_scalars_and_sequences_and_optionals():
    scalar = aglow.compile(models.unary("Neg", shape=()))
    assert scalar(2.5).shape == () and scalar(np.float32(2.5)) == -2.5
    element = onnx.helper.make_tensor_type_proto(models.F32, None)
    sequence = onnx.helper.make_sequence_type_proto(element)
    optional = onnx.helper.make_optional_type_proto(element)
    model = aglow.compile(models.model([models.node("SequenceAt", "s i", "y"), models.node("Identity", "s", "t")],
                                       [onnx.helper.make_value_info("s", sequence),
                                        models.value("i", [], onnx.TensorProto.INT64)],
                                       [models.value("y"), onnx.helper.make_value_info("t", sequence)]))
    assert model.inputs[0].is_sequence
    y, t = model([np.zeros(2, np.float32), np.ones(3, np.float32)], 1)
    np.testing.assert_array_equal(y, np.ones(3))
    assert [item.shape for item in t] == [(2,), (3,)]
    has = aglow.compile(models.model([models.node("OptionalHasElement", "o", "y")],
                                     [onnx.helper.make_value_info("o", optional)],
                                     [models.value("y", [], onnx.TensorProto.BOOL)]))
    assert has(np.zeros(1, np.float32)) and not has(None) and not has()


def test_strings():
    text = onnx.TensorProto.STRING
    model = aglow.compile(models.model([models.node("StringConcat", "a b", "y")],
                                       [models.value("a", ["n"], text), models.value("b", [1], text)],
                                       [models.value("y", ["n"], text)]))
    assert model.inputs[0].dtype == object
    for a in (["ä", "b"], np.array(["ä", "b"]), np.array(["ä".encode(), b"b"], object), np.array(["ä", "b"], object)):
        y = model(a, ["!"])
        assert y.dtype == object and y.tolist() == ["ä!", "b!"]
    assert model(np.zeros(0, "U1"), ["!"]).shape == (0,)
    with pytest.raises(aglow.UsageError, match="expected strings, got int"):
        model([1, 2], ["!"])


def test_maps(backend):
    """Sequences of maps are lists of dicts, and a map is a dict."""
    for labels in (["ä", "b"], [7, 3]):
        model = aglow.compile(map_models.zip_map(labels), backend=backend)
        assert model.outputs[0].is_map and model.outputs[0].is_sequence and model.outputs[0].dtype == np.float32
        maps = model(np.array([[0.5, 2], [1 / 3, np.inf]], np.float32))
        assert maps == [{labels[0]: 0.5, labels[1]: 2}, {labels[0]: float(np.float32(1 / 3)), labels[1]: np.inf}]
        assert all(type(value) is float for entries in maps for value in entries.values())
        assert model(np.zeros((0, 2), np.float32)) == []
    proto, expected = map_models.classifier(["no", "yes", "maybe"])
    x = map_models.features(5)
    label, maps = aglow.compile(proto, backend=backend)(x)
    names, shares = expected(x)
    assert label.tolist() == names and list(maps[0]) == ["maybe", "no", "yes"]
    np.testing.assert_allclose([[entries[name] for name in ["no", "yes", "maybe"]] for entries in maps], shares, rtol=1e-5)


@pytest.mark.parametrize("value, kind", [(map_models.FLOAT, 1.5), (map_models.INT64, 3), (map_models.STRING, "ü")])
def test_maps_as_inputs(value, kind):
    node = map_models.ml_node("DictVectorizer", ["entries"], ["y"], string_vocabulary=["a", "b"])
    proto = map_models.model([node], {"entries": map_models.map_type(map_models.STRING, value)},
                             {"y": onnx.helper.make_tensor_type_proto(value, [1, 2])})
    model = aglow.compile(proto)
    assert model.inputs[0].is_map and not model.inputs[0].is_sequence
    empty = "" if isinstance(kind, str) else 0
    for y in (model({"b": kind, "c": kind}), model(entries={"b": kind}), model({"entries": {"b": kind}}),
              model.run({"entries": {"b": kind}})["y"]):
        assert y.tolist() == [[empty, kind]]
    assert model({}).tolist() == [[empty, empty]]
    with pytest.raises(aglow.UsageError, match="expected a dict, got float"):
        model(1.5)
    with pytest.raises(aglow.UsageError, match="input 'entries'"):
        model({1: kind, 2: kind})


NARROW = ["bfloat16", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float4_e2m1fn", "int4",
          "uint4", "int2", "uint2"]


@pytest.mark.parametrize("name", NARROW)
def test_narrow_kinds(name, monkeypatch):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    dtype = np.dtype(getattr(ml_dtypes, name))
    element = onnx.helper.np_dtype_to_tensor_dtype(dtype)
    proto = models.model(
        [models.node("Identity", "x", "y")], [models.value("x", ["n"], element)], [models.value("y", ["n"], element)],
        opset=25)
    x = np.array([0, 1, 0.5 if name[0] in "bf" else 1], np.float32).astype(dtype)
    model = aglow.compile(proto)
    assert model.inputs[0].dtype == dtype
    y = model(x)
    assert y.dtype == dtype
    np.testing.assert_array_equal(y.astype(np.float32), x.astype(np.float32))
    # Without the package they are bits.
    from aglow import _arrays
    monkeypatch.setattr(_arrays, "ml_dtypes", None)
    raw = np.uint16 if name == "bfloat16" else np.int8 if name.startswith("int") else np.uint8
    bits = x.astype(raw) if "int" in name else x.view(raw)
    y = aglow.compile(proto)(bits)
    assert y.dtype == raw
    np.testing.assert_array_equal(y, bits)


@pytest.mark.parametrize("dtype", ["float16", "float64", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64",
                                   "uint64", "bool"])
def test_plain_kinds(dtype):
    x = np.array([0, 1, 1], dtype)
    model = aglow.compile(models.unary("Identity", onnx.helper.np_dtype_to_tensor_dtype(x.dtype)))
    y = model(x)
    assert y.dtype == x.dtype
    np.testing.assert_array_equal(y, x)


def test_both_representations_as_text(tmp_path):
    model = aglow.compile(models.affine())
    graph = model.graph(dims={"rows": 2})
    assert graph.startswith("module {") and "MatMul" in graph and "placeholder @x : f32[2,3]" in graph
    assert "func @main" in model.graph(after="lower", dims={"rows": 2})
    program = model.program(dims={"rows": 2})
    assert program.startswith("declare {") and "program @main" in program
    for text, name in ((graph, "affine.graph"), (program, "affine.ir")):
        (tmp_path / name).write_text(text)
        read = aglow.compile(tmp_path / name, backend=aglow.backends()[-1])
        np.testing.assert_array_equal(read(X) if len(read.inputs) == 1 else read(x=X, bias=[1, 1]), Y)
    with pytest.raises(aglow.UsageError, match="program, and no graph"):
        model.graph(after="memory", dims={"rows": 2})
    with pytest.raises(aglow.UsageError, match="'lowr'"):
        model.graph(after="lowr", dims={"rows": 2})
    with pytest.raises(aglow.UsageError) as caught:
        model.graph()
    assert caught.value.code == "E104"


def test_caffe2_nets(tmp_path):
    net = Net("net", [Op("FC", ["x", "w", "b"], ["y"]), Op("Relu", ["y"], ["y"])], ["x", "w", "b"], ["y"])
    weights = np.arange(6, dtype=np.float32).reshape(2, 3)
    init = Net("init", [fill("w", weights), fill("b", np.float32([1, -100]))], [], ["w", "b"])
    (tmp_path / "net.pb").write_bytes(net.binary())
    (tmp_path / "init.pb").write_bytes(init.binary())
    expected = np.maximum(X @ weights.T + np.float32([1, -100]), 0)
    for model in (aglow.compile(tmp_path / "net.pb", init=tmp_path / "init.pb"),
                  aglow.compile(net.binary(), init=init.binary())):
        np.testing.assert_array_equal(model(X), expected)
        np.testing.assert_array_equal(model(x=X[:1]), expected[:1])
    with pytest.raises(aglow.UsageError, match="init net"):
        aglow.compile(models.affine(), init=init.binary())


def test_graphs_are_exported(tmp_path):
    aglow.compile(models.affine()).export(tmp_path / "out.onnx", after="lower", dims={"rows": 2})
    read = aglow.compile(tmp_path / "out.onnx")
    np.testing.assert_array_equal(read({spec.name: X if spec.name == "x" else np.ones(2, np.float32)
                                        for spec in read.inputs}), Y)
    with pytest.raises(aglow.FileError):
        aglow.compile(models.affine()).export(tmp_path / "no" / "out.onnx", dims={"rows": 2})


def test_the_package_describes_itself():
    assert aglow.__version__ == aglow._core.version
    assert "interpreter" in aglow.backends() and "Conv" in aglow.ops()
    assert "exit code 3" in aglow.explain("e301")
    assert (pathlib.Path(aglow.__file__).parent / "py.typed").exists()
    for name in aglow.__all__:
        assert hasattr(aglow, name)


def test_the_example(capsys):
    runpy.run_path(str(ROOT / "examples" / "python" / "digits.py"), run_name="__main__")
    lines = capsys.readouterr().out.splitlines()[1:]
    assert len(lines) == 8 and all(line.startswith(f"{line[0]}.npy: {line[0]} ") for line in lines)


def test_the_documentation(monkeypatch, tmp_path):
    monkeypatch.chdir(shutil.copytree(ROOT / "docs" / "tour", tmp_path / "tour"))
    shutil.copy(ROOT / "examples" / "counter" / "counter.graph", ".")
    failed, examples = doctest.testfile(str(ROOT / "docs" / "python.md"), module_relative=False)
    assert failed == 0 and examples > 10


def test_strings_come_as_str_objects():
    text = onnx.TensorProto.STRING
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("StringConcat", ["x", "x"], ["y"])], "g",
        [onnx.helper.make_tensor_value_info("x", text, [None])], [onnx.helper.make_tensor_value_info("y", text, [None])])
    model = aglow.compile(onnx.helper.make_model(graph, ir_version=10, opset_imports=[onnx.helper.make_opsetid("", 20)]))
    for x in (np.array(["a", "ä"], object), np.array(["a", "ä"]), ["a", "ä"], np.array([b"a", "ä".encode()])):
        y = model(x)
        assert y.dtype == object and y.tolist() == ["aa", "ää"]
    assert model([b"\xff"]).tolist() == ["\udcff\udcff"]  # no text, but the same bytes when it is given again
    with pytest.raises(aglow.UsageError, match="expected strings, got float"):
        model([1.5])
