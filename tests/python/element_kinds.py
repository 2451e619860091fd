"""Element kinds as numpy has them, for tests that compare with it."""
import re

import ml_dtypes
import numpy as np

FLOATS = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "bf16": ml_dtypes.bfloat16,
          "f8e4m3fn": ml_dtypes.float8_e4m3fn, "f8e5m2": ml_dtypes.float8_e5m2, "f8e8m0": ml_dtypes.float8_e8m0fnu,
          "f4e2m1": ml_dtypes.float4_e2m1fn, "f8e4m3fnuz": ml_dtypes.float8_e4m3fnuz, "f8e5m2fnuz": ml_dtypes.float8_e5m2fnuz}


class Kind:
    """An element kind: what numpy computes with, and how its files hold it."""

    def __init__(self, name):
        self.name = name
        self.is_float = name in FLOATS
        if self.is_float:
            self.dtype = np.dtype(FLOATS[name])
            self.file = self.dtype if self.dtype.isbuiltin == 1 else np.dtype(f"u{self.dtype.itemsize}")
        elif name == "bool":
            self.dtype = self.file = np.dtype(bool)
        else:
            sign, width = re.fullmatch(r"q?([iu])(\d+)", name).groups()
            self.bits, self.signed = int(width), sign == "i"
            self.dtype = self.file = np.dtype(f"{sign}{max(self.bits, 8) // 8}")

    def wide(self, array):
        """What oracles compute with: float64, int64 or bool, of values that the kind has."""
        if self.is_float:
            return np.asarray(array, float).astype(self.dtype).astype(float)
        if self.name == "bool":
            return np.asarray(array).astype(bool)
        array = np.asarray(array).astype(np.int64)
        if self.bits == 64:
            return array
        array = array & (1 << self.bits) - 1
        return np.where(array >> self.bits - 1 & 1, array - (1 << self.bits), array) if self.signed else array

    def draw(self, random, shape, low, high):
        if self.is_float:
            return self.wide(random.uniform(low, high, shape))
        if self.name == "bool":
            return random.random(shape) < 0.5
        least, most = (-(1 << self.bits - 1), (1 << self.bits - 1) - 1) if self.signed else (0, (1 << self.bits) - 1)
        return random.integers(max(low, least), min(high, most), shape, endpoint=True)

    def save(self, path, wide):
        np.save(path, np.asarray(wide).astype(self.dtype).view(self.file))

    def load(self, path):
        array = np.load(path)
        assert array.dtype == self.file, f"{path} holds {array.dtype}, not {self.file}"
        return self.wide(array.view(self.dtype))

    def tolerance(self):
        """The distance of neighbours around 1; a few of them for the kinds that compute in themselves."""
        if not self.is_float:
            return 0.0
        return float(ml_dtypes.finfo(self.dtype).eps) * (8 if self.name in ("f32", "f64") else 1)
