"""Bundles for devices in tests."""
import os
import pathlib
import re

from bundles import check

HERE = pathlib.Path(__file__).resolve().parent
WARNINGS = ["-Wall", "-Wextra", "-Werror", "-pedantic", "-O1"]


class DeviceBundle:
    """Compiled, linked with device_bundle_driver.c, and run."""

    def __init__(self, program, folder, path, *options, backend="opencl", **environment):
        self.folder, self.name = folder, path.stem
        check(program, "compile", path, "-o", folder / "out", "--emit", "bundle", "--backend", backend, *options,
              env={**os.environ, **environment})
        self.header = (folder / "out" / f"{self.name}.h").read_text()

    def number(self, macro):
        return int(re.search(rf"#define {self.name.upper()}_{macro} (\d+)", self.header).group(1))

    def build(self, entry, language="c99", loader=("-lOpenCL",)):
        out, compiler = self.folder / "out", ["gcc", "-std=c99"] if language == "c99" else ["g++", "-x", "c++"]
        upper = entry.upper()
        macros = [f"-DBUNDLE={self.name}", f'-DHEADER="{self.name}.h"', f"-DENTRY={entry}",
                  f"-DCONSTANTS_BYTES={self.name.upper()}_CONSTANTS_BYTES", f"-DMUTABLE_BYTES={upper}_MUTABLE_BYTES"]
        if "_STATE_BYTES" in self.header:
            macros.append(f"-DSTATE_BYTES={self.name.upper()}_STATE_BYTES")
        check(*compiler, *WARNINGS, f"-I{out}", *macros, HERE / "device_bundle_driver.c", out / f"{self.name}.c", "-o",
              self.folder / "driver", *loader)

    def run(self, memory, calls=1, weights=None, **environment):
        (self.folder / "in.bin").write_bytes(memory)
        return check(self.folder / "driver", weights or self.folder / "out" / f"{self.name}.weights.bin", calls,
                     self.folder / "in.bin", cwd=self.folder, env={**os.environ, **environment}).splitlines()

    def memory(self, values):
        """Inputs at their offsets: values by macro."""
        entry = bytearray(self.number("MUTABLE_BYTES"))
        for name, value in values.items():
            at = self.number(f"{name}_OFFSET")
            entry[at:at + value.nbytes] = value.tobytes()
        return bytes(entry)

    def output(self, name, like):
        at = self.number(f"{name}_OFFSET")
        return (self.folder / "out.bin").read_bytes()[at:at + like.nbytes]
