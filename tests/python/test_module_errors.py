"""The Python module: every fault is an exception of its kind that carries code, place and hint."""
import pickle

import numpy as np
import onnx
import pytest

import module_models as models

aglow = pytest.importorskip("aglow", reason="the module is not built: ./dev test builds it")

X = np.zeros((2, 3), np.float32)


@pytest.mark.parametrize("call, code, words", [
    (lambda m: m(X.astype(np.float64)), "E102", "input 'x': expected float32, got float64"),
    (lambda m: m(X, X, X), "E102", "3 inputs were given, the model takes 2"),
    (lambda m: m(X, weight=X), "E102", "the model has no input 'weight'"),
    (lambda m: m(X, bais=X), "E102", "did you mean 'bias'"),
    (lambda m: m(), "E103", "input 'x' .* was not given"),
    (lambda m: m(X[0]), "E102", "expected f32.rows,3."),
    (lambda m: m([X, "a"]), "E102", "input 'x'"),
    (lambda m: m(object()), "E102", "input 'x': expected float32, got object"),
])
def test_wrong_inputs(call, code, words):
    with pytest.raises(aglow.UsageError, match=words) as caught:
        call(aglow.compile(models.affine()))
    assert caught.value.code == code and caught.value.exit == 1
    assert isinstance(caught.value, ValueError)


def test_sizes_that_contradict_each_other():
    model = aglow.compile(models.two_outputs())
    with pytest.raises(aglow.Error, match="'a'|'b'") as caught:
        model(np.zeros(2, np.float32), np.zeros(3, np.float32))
    assert "2" in str(caught.value) and "3" in str(caught.value)


@pytest.mark.parametrize("source, kind, code", [
    (b"", aglow.BadModelError, "E201"), (b"no model", aglow.BadModelError, "E201"),
    ("/no/such/file.onnx", aglow.FileError, "E801"), (3, aglow.UsageError, "E101"),
])
def test_sources_that_are_no_models(source, kind, code):
    with pytest.raises(kind) as caught:
        aglow.compile(source)
    assert caught.value.code == code


def test_all_faults_at_once():
    nodes = [onnx.helper.make_node("Frobnicate", ["x"], ["a"], name="first"),
             onnx.helper.make_node("Defenestrate", ["a"], ["y"], name="second")]
    with pytest.raises(aglow.UnsupportedError) as caught:
        aglow.compile(models.model(nodes, [models.value("x", [1])], [models.value("y", [1])]))
    error = caught.value
    assert isinstance(error, NotImplementedError) and error.exit == 3
    assert {fault.code for fault in error.errors} == {"E301"} and len(error.errors) == 2
    assert "first" in str(error) and "second" in str(error) and "2 errors" in str(error)
    assert all(fault.exit == 3 for fault in error.errors)


def test_limits():
    with pytest.raises(aglow.ResourceError) as caught:
        aglow.compile(models.unary("Neg", shape=(1000,)), memory_limit=100)
    assert caught.value.code == "E401" and isinstance(caught.value, MemoryError)


def test_options():
    for options, words in (({"backend": "gpu"}, "no backend 'gpu'"), ({"disable": ["no-such-pass"]}, "no-such-pass"),
                           ({"pad": True}, "pad needs sizes"), ({"values": {"z": 1}}, "no input 'z'")):
        with pytest.raises(aglow.UsageError, match=words):
            aglow.compile(models.affine(), **options)


def test_faults_at_run_time():
    model = aglow.compile(models.model([models.node("Gather", "x i", "y")],
                                       [models.value("x", [3]), models.value("i", [1], onnx.TensorProto.INT64)],
                                       [models.value("y", [1])]))
    assert model(np.float32([1, 2, 3]), [2]) == [3]
    with pytest.raises(aglow.BadModelError) as caught:
        model(np.float32([1, 2, 3]), [7])
    assert caught.value.code == "E208"
    assert model(np.float32([1, 2, 3]), [1]) == [2]


def test_exceptions_are_values():
    fault = aglow.Fault("E801", 8, "words", "model.onnx", "look again")
    for kind in (aglow.FileError, aglow.ResourceError, aglow.InternalError, aglow.DeviceError, aglow.MismatchError):
        error = pickle.loads(pickle.dumps(kind([fault._replace(exit=kind.exit)])))
        assert type(error) is kind and isinstance(error, aglow.Error)
        assert (error.code, error.where, error.message, error.hint) == ("E801", "model.onnx", "words", "look again")
        assert str(error) == "[E801] model.onnx: words\n  hint: look again"


def test_names_that_are_not_utf8():
    data = models.unary("Neg").SerializeToString().replace(b"\x01x", b"\x01\xff")
    model = aglow.compile(data)
    assert model(np.float32([1])) == [-1]
    assert model({model.inputs[0].name: np.float32([1])}) == [-1]
