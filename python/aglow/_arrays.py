"""Arrays as the compiler takes and gives them.

Kinds that numpy lacks are arrays of ml_dtypes where it is installed. Without it they are raw bits: bfloat16 as uint16;
float8, 4-bit and 2-bit kinds one element a byte, as uint8 or int8. Raw bits are taken as inputs in any case.
Strings are arrays of str objects; bytes that are not UTF-8 are escaped as surrogates, as Python does for file names.
"""
from __future__ import annotations

from typing import Any, Mapping, Optional

import numpy as np

from . import _core

Array = np.ndarray[Any, Any]

ml_dtypes: Any
try:
    import ml_dtypes
except ImportError:
    ml_dtypes = None

# kind of the compiler: (numpy's type of the bits, name in ml_dtypes)
KINDS: dict[str, tuple[str, Optional[str]]] = {
    "f32": ("f4", None), "f64": ("f8", None), "f16": ("f2", None), "bf16": ("u2", "bfloat16"),
    "f8e4m3fn": ("u1", "float8_e4m3fn"), "f8e4m3fnuz": ("u1", "float8_e4m3fnuz"), "f8e5m2": ("u1", "float8_e5m2"),
    "f8e5m2fnuz": ("u1", "float8_e5m2fnuz"), "f8e8m0": ("u1", "float8_e8m0fnu"), "f4e2m1": ("u1", "float4_e2m1fn"),
    "i2": ("i1", "int2"), "i4": ("i1", "int4"), "u2": ("u1", "uint2"), "u4": ("u1", "uint4"),
    "i8": ("i1", None), "i16": ("i2", None), "i32": ("i4", None), "i64": ("i8", None),
    "u8": ("u1", None), "u16": ("u2", None), "u32": ("u4", None), "u64": ("u8", None), "bool": ("?", None),
    "qi8": ("i1", None), "qu8": ("u1", None), "qi16": ("i2", None), "qi32": ("i4", None),
}

_HOST = 1  # of DLPack's devices

# Kinds whose arrays are numpy's own.
NATIVE = frozenset(kind for kind, (_, name) in KINDS.items() if name is None)


NATIVE_DTYPES = {kind: np.dtype(KINDS[kind][0]) for kind in NATIVE}


def bits_of(kind: str) -> np.dtype[Any]:
    """The type in which the elements of a kind lie in memory."""
    return np.dtype(KINDS[kind][0])


def dtype_of(kind: str) -> np.dtype[Any]:
    """The type of arrays that callers see."""
    if kind == "string":
        return np.dtype(object)
    name = KINDS[kind][1]
    narrow = getattr(ml_dtypes, name, None) if name else None
    return bits_of(kind) if narrow is None else np.dtype(narrow)


def _string_bytes(value: Any) -> tuple[tuple[int, ...], list[bytes]]:
    """Shape and bytes of an array of str or bytes."""
    array = value if isinstance(value, np.ndarray) else np.asarray(value, object)
    words = array.ravel().tolist()
    for word in words:
        if not isinstance(word, (str, bytes)):
            raise TypeError(f"expected strings, got {type(word).__name__}")
    if not words and array.dtype.kind not in "SUOT":
        raise TypeError(f"expected strings, got {array.dtype.name}")
    return array.shape, [word if isinstance(word, bytes) else word.encode("utf-8", "surrogateescape") for word in words]


def as_numpy(value: Any) -> Array:
    """An array of numpy, which looks at the memory of another library's array (torch, jax, …) where that is the host's,
    and is a copy of one on a device (cupy)."""
    if isinstance(value, np.ndarray) or not hasattr(value, "__dlpack__"):
        return np.asarray(value)
    if getattr(value, "requires_grad", False):
        value = value.detach()
    try:
        if value.__dlpack_device__()[0] != _HOST:
            value = value.get() if hasattr(value, "get") else value.__array__()
        return np.from_dlpack(value) if not isinstance(value, np.ndarray) else value
    except (BufferError, RuntimeError, TypeError, AttributeError):
        pass
    try:
        return from_pair(*_core.bits_of(value))  # of a kind that numpy lacks
    except TypeError:
        return np.asarray(value)


def dlpack(array: Array) -> Any:
    """An output for another library, which looks at the same memory: `torch.from_dlpack(aglow.dlpack(y))`.

    Arrays of numpy's own types are taken as they are; of bfloat16 and float8, which numpy's DLPack lacks, this is the way.
    """
    kind = kind_of_dtype(array.dtype)
    return array if kind in NATIVE else _core.exported(kind, array.view(bits_of(kind)))


def kind_of_dtype(dtype: np.dtype[Any]) -> str:
    """The kind whose arrays have this type; TypeError where there is none."""
    for kind in KINDS:
        if dtype.newbyteorder("=") == dtype_of(kind):
            return kind
    raise TypeError(f"arrays of {dtype.name} are not supported")


def kind_of(value: Any) -> str:
    """The kind that an array has by itself."""
    array = as_numpy(value)
    return "string" if array.dtype.kind in "SUOT" else kind_of_dtype(array.dtype)


def to_pair(value: Any, kind: str) -> tuple[str, Any]:
    """The kind, and the array as the compiler reads it, without a copy where that is possible.

    Numbers and lists of them become what the kind asks for. TypeError for an array of another type.
    """
    if kind == "any":
        kind = kind_of(value)
    return kind, _string_bytes(value) if kind == "string" else _to_bits(value, kind)


def _to_bits(value: Any, kind: str) -> Array:
    bits, dtype = bits_of(kind), dtype_of(kind)
    if isinstance(value, (bool, int, float, list, tuple)):
        value = np.asarray(value, dtype)
    array = as_numpy(value)
    if array.dtype != dtype and array.dtype != bits:
        if array.dtype.newbyteorder("=") != bits:
            raise TypeError(f"expected {dtype.name}, got {array.dtype.name}")
        array = array.astype(bits)
    if array.dtype != bits:
        # Integers of ml_dtypes are spread over a byte each with undefined upper bits; floats are bits.
        array = array.astype(bits) if kind[0] in "iu" else array.view(bits)
    flags = array.flags
    return array if flags.c_contiguous and flags.aligned else array.copy("C")


def to_map(value: Any, keys: str, kind: str) -> tuple[str, Any]:
    """A dict as the compiler reads it: its keys and its values."""
    if not isinstance(value, Mapping):
        raise TypeError(f"expected a dict, got {type(value).__name__}")
    return "map", (to_pair(list(value), keys), to_pair(list(value.values()), kind))


def from_pair(kind: str, array: Any) -> Array:
    """The array as callers see it."""
    bits: Array = array
    if kind in NATIVE:
        return bits
    if kind == "string":
        shape, words = array
        result = np.empty(len(words), object)
        result[:] = [word.decode("utf-8", "surrogateescape") for word in words]
        return result.reshape(shape)
    dtype = dtype_of(kind)
    if dtype == bits.dtype:
        return bits
    return bits.astype(dtype) if kind[0] in "iu" else bits.view(dtype)
