"""Values of ONNX models as Python objects and as the program's files, and their comparison.

A value is a numpy array, a list of values (a sequence) or None (an empty optional). In files, types that numpy lacks
travel as raw bits: bfloat16 as uint16; float8, 4-bit and 2-bit types one element a byte; strings as |S.
"""
import os

import numpy as np
import onnx
from onnx import helper, numpy_helper


class Mismatch(Exception):
    """A value is not the expected one."""


# ---- from protobuf

def from_proto(proto):
    """The value of a TensorProto, SequenceProto or OptionalProto; values that are none of these stay what they are."""
    if isinstance(proto, onnx.TensorProto):
        return numpy_helper.to_array(proto)
    if isinstance(proto, onnx.SequenceProto):
        items = {onnx.SequenceProto.TENSOR: proto.tensor_values, onnx.SequenceProto.SEQUENCE: proto.sequence_values,
                 onnx.SequenceProto.OPTIONAL: proto.optional_values}
        return [from_proto(item) for item in items[proto.elem_type]]
    if isinstance(proto, onnx.OptionalProto):
        kind = {onnx.OptionalProto.TENSOR: "tensor_value", onnx.OptionalProto.SEQUENCE: "sequence_value",
                onnx.OptionalProto.OPTIONAL: "optional_value"}.get(proto.elem_type)
        return from_proto(getattr(proto, kind)) if kind else None
    return proto


def read_proto(path, type_proto):
    """The value in a .pb file of a test data set; the model's type tells which message it holds."""
    kinds = {"tensor_type": onnx.TensorProto, "sequence_type": onnx.SequenceProto, "optional_type": onnx.OptionalProto}
    proto = kinds[type_proto.WhichOneof("value")]()
    with open(path, "rb") as file:
        proto.ParseFromString(file.read())
    return from_proto(proto)


def element_type(type_proto):
    """The number of the element type at the bottom of tensor, sequence and optional types."""
    kind = type_proto.WhichOneof("value")
    if kind == "tensor_type":
        return type_proto.tensor_type.elem_type
    return element_type(getattr(type_proto, kind).elem_type) if kind in ("sequence_type", "optional_type") else 0


# ---- to and from the program's files

def raw_bits(array):
    """The array as numpy can store it."""
    if array.dtype == object or array.dtype.kind in "SU":
        words = [word if isinstance(word, bytes) else str(word).encode() for word in array.ravel().tolist()]
        return np.array(words or [b""], "S")[:len(words)].reshape(array.shape)
    if array.dtype.isbuiltin == 1:
        return array
    name = array.dtype.name
    if name.startswith(("int", "uint")):
        return array.astype(np.int8 if name.startswith("int") else np.uint8)
    return array.view(np.uint16 if array.dtype.itemsize == 2 else np.uint8)


def save(base, value):
    """Writes base.npy, or the folder base for a sequence; returns what follows NAME= on the command line."""
    if value is None:
        return "@none"
    if isinstance(value, (list, tuple)):
        os.makedirs(base)
        for index, item in enumerate(value):
            save(os.path.join(base, str(index)), item)
        return base
    np.save(base + ".npy", raw_bits(np.asarray(value)), allow_pickle=False)
    return base + ".npy"


def load(base, element):
    """Reads what `save` or the program has written; Mismatch when it is missing or of another type."""
    if os.path.exists(base + ".none"):
        return None
    if os.path.isdir(base):
        return [load(os.path.join(base, str(index)), element) for index in range(len(os.listdir(base)))]
    try:
        array = np.load(base + ".npy", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise Mismatch(f"{os.path.basename(base)}.npy: {error}") from None
    dtype = helper.tensor_dtype_to_np_dtype(element)
    if dtype == object or dtype.isbuiltin == 1:
        return array
    stored = raw_bits(np.zeros(0, dtype)).dtype
    if array.dtype != stored:
        raise Mismatch(f"{dtype} travels as {stored}, got {array.dtype}")
    return array.astype(dtype) if dtype.name.startswith(("int", "uint")) else array.view(dtype)


# ---- comparison, by the rules of onnx's own runner

def compare(expected, got, rtol, atol, where="output"):
    if isinstance(expected, (list, tuple)) and isinstance(got, (list, tuple)):
        if len(expected) != len(got):
            raise Mismatch(f"{where}: {len(got)} elements, expected {len(expected)}")
        for index, pair in enumerate(zip(expected, got)):
            compare(*pair, rtol, atol, f"{where}[{index}]")
    elif isinstance(expected, np.ndarray) and isinstance(got, np.ndarray):
        compare_arrays(expected, got, rtol, atol, where)
    elif expected is not None or got is not None:
        raise Mismatch(f"{where}: {type(got).__name__}, expected {type(expected).__name__}")


def compare_arrays(expected, got, rtol, atol, where):
    if expected.shape != got.shape:
        raise Mismatch(f"{where}: shape {got.shape}, expected {expected.shape}")
    if expected.dtype == object or expected.dtype.kind in "SU":
        if raw_bits(expected).tolist() != raw_bits(got).tolist():
            raise Mismatch(f"{where}: strings differ")
        return
    if expected.dtype != got.dtype:
        raise Mismatch(f"{where}: {got.dtype}, expected {expected.dtype}")
    if expected.dtype.name == "bfloat16":
        rtol = max(rtol, 2 ** -6)
    if expected.dtype.isbuiltin != 1:
        expected, got = expected.astype(np.float32), got.astype(np.float32)
    try:
        np.testing.assert_allclose(got, expected, rtol=rtol, atol=atol)
    except AssertionError as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        raise Mismatch(f"{where}: " + ", ".join(lines[1:4])) from None
