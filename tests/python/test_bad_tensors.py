"""Initializers whose sizes or places do not fit: refused with code 2 before anything is allocated or opened."""
import os

import numpy as np
import pytest
from bad_models import model, node, zeros
from onnx import TensorProto

X = {"x": zeros(2, 3)}


def tensor(dims=(2, 3), data_type=TensorProto.FLOAT, **fields):
    """An initializer named culprit; the fields are set as they are."""
    proto = TensorProto(name="culprit", data_type=data_type, dims=dims)
    for name, value in fields.items():
        if isinstance(value, list):
            getattr(proto, name).extend(value)
        else:
            setattr(proto, name, value)
    return proto


def with_tensor(proto):
    return model([node("Add", ["x", "culprit"], name="sum")], X, [proto])


def test_a_good_tensor(refusal):
    outcome = refusal.run(with_tensor(tensor(raw_data=np.ones((2, 3), np.float32).tobytes())), X)
    assert outcome.code == 0, outcome.err
    assert (np.load(refusal.out / "0.npy") == 1).all()


BAD = {
    "product overflows 64 bits": tensor([1 << 32, 1 << 32], raw_data=bytes(8)),
    "bytes overflow 64 bits": tensor([1 << 62], raw_data=bytes(8)),
    "largest dims": tensor([(1 << 63) - 1, 2], raw_data=bytes(8)),
    "many dims": tensor([1 << 16] * 64, raw_data=bytes(8)),
    "negative dim": tensor([-1], raw_data=bytes(4)),
    "two negative dims": tensor([-2, -3], raw_data=bytes(24)),
    "raw data short": tensor(raw_data=bytes(23)),
    "raw data long": tensor(raw_data=bytes(28)),
    "raw data missing": tensor(),
    "8 GiB in a few bytes": tensor([1 << 31], raw_data=bytes(10)),
    "8 GiB without data": tensor([1 << 31]),
    "too few floats": tensor(float_data=[1.0] * 5),
    "too many floats": tensor(float_data=[1.0] * 7),
    "floats in another field": tensor(int32_data=[1] * 6),
    "strings as raw data": tensor(data_type=TensorProto.STRING, raw_data=bytes(6)),
    "4-bit data short": tensor(data_type=TensorProto.INT4, raw_data=bytes(2)),
    "unknown element type": tensor(data_type=99, raw_data=bytes(24)),
    "undefined element type": tensor(data_type=0, raw_data=bytes(24)),
}


@pytest.mark.parametrize("name", BAD)
def test_initializer(refusal, name):
    codes = {2, 3} if BAD[name].data_type == TensorProto.STRING else {2}
    refusal.refuse(with_tensor(BAD[name]), codes, "culprit", inputs=X)


@pytest.mark.parametrize("name", ["product overflows 64 bits", "raw data short", "8 GiB without data", "negative dim"])
def test_constant_node(refusal, name):
    proto = TensorProto()
    proto.CopyFrom(BAD[name])
    proto.name = ""
    nodes = [node("Constant", [], ["w"], value=proto), node("Add", ["x", "w"], name="sum")]
    refusal.refuse(model(nodes, X), {2}, "culprit", inputs=X)


# ---- data outside of the model file

def external(**entries):
    proto = tensor()
    proto.data_location = TensorProto.EXTERNAL
    for key, value in entries.items():
        entry = proto.external_data.add()
        entry.key, entry.value = key, str(value)
    return with_tensor(proto)


@pytest.fixture
def folder(refusal):
    """The model's folder with a file of 24 good bytes, and another such file outside."""
    path = refusal.folder / "model"
    path.mkdir()
    (path / "data.bin").write_bytes(np.ones(6, np.float32).tobytes())
    (refusal.folder / "outside.bin").write_bytes(np.ones(6, np.float32).tobytes())
    return path


def refuse_external(refusal, codes={2}, **entries):
    path = refusal.write(external(**entries), "model/model.onnx")
    refusal.check(refusal.run(path, X), codes, "culprit")


@pytest.mark.parametrize("entries", [
    {"location": "data.bin"}, {"location": "data.bin", "offset": 0, "length": 24}, {"location": "./data.bin"}])
def test_external_data(refusal, folder, entries):
    outcome = refusal.run(refusal.write(external(**entries), "model/model.onnx"), X)
    assert outcome.code == 0, outcome.err
    assert (np.load(refusal.out / "0.npy") == 1).all()


@pytest.mark.parametrize("location", ["../outside.bin", "sub/../../outside.bin", "..", ".", "", "sub", "/dev/zero"])
def test_external_place(refusal, folder, location):
    (folder / "sub").mkdir()
    refuse_external(refusal, location=location)


def test_external_absolute(refusal, folder):
    refuse_external(refusal, location=refusal.folder / "outside.bin")
    refuse_external(refusal, location=folder / "data.bin")


def test_external_missing_file(refusal, folder):
    refuse_external(refusal, {2, 8}, location="nothing.bin")


def test_external_links(refusal, folder):
    os.symlink(refusal.folder / "outside.bin", folder / "leaf.bin")
    refuse_external(refusal, location="leaf.bin")
    os.symlink(refusal.folder, folder / "parent")
    refuse_external(refusal, location="parent/outside.bin")
    os.link(refusal.folder / "outside.bin", folder / "hard.bin")
    refuse_external(refusal, location="hard.bin")


def test_external_fifo(refusal, folder):
    os.mkfifo(folder / "fifo.bin")
    refuse_external(refusal, location="fifo.bin")


@pytest.mark.parametrize("entries", [
    {"offset": 4}, {"offset": 25}, {"offset": 1 << 62, "length": 24}, {"offset": (1 << 63) - 4, "length": 24},
    {"offset": -4}, {"length": -24}, {"length": 20}, {"length": 28}, {"length": 1 << 40}, {"offset": "many"},
    {"offset": "99999999999999999999999"}, {"length": ""}])
def test_external_range(refusal, folder, entries):
    refuse_external(refusal, location="data.bin", **entries)


def test_external_without_location(refusal, folder):
    refuse_external(refusal, offset=0)
