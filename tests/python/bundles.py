"""Bundles in tests: compiled, linked with bundle_driver.c, and run, here or under qemu."""
import pathlib
import re
import shutil
import subprocess

import numpy as np
import onnx
import pytest

from bundle_models import BF16_TOLERANCE, MODELS, TOLERANCES

HERE = pathlib.Path(__file__).resolve().parent
INCLUDE = HERE.parents[1] / "include"
WRAPPED = [f"-Wl,--wrap={name}" for name in ("malloc", "calloc", "realloc")]
STRICT = ["-Wall", "-Wextra", "-Werror", "-pedantic"]
# What a bundle may leave to the C library: nothing that only a compiler's own library has.
LIBRARY = re.compile(r"(_GLOBAL_OFFSET_TABLE_|mem(cpy|move|set)|getauxval|(exp|log|pow|sin|cos|tan|sinh|cosh|tanh|asin|acos|atan|asinh|acosh"
                     r"|atanh|erf|fmod|floor|ceil|trunc|rint|nearbyint|roundeven|round|fma|sqrt|cbrt|exp2|log2|log10"
                     r"|log1p|expm1|fmin|fmax|ldexp|tgamma|lgamma|atan2|hypot)f?)$")


def host_has(*flags):
    text = pathlib.Path("/proc/cpuinfo").read_text()
    return set(flags) <= set(re.search(r"^(?:flags|Features)\s*:(.*)$", text, re.M).group(1).split())


def run(*command, **options):
    options.setdefault("timeout", 300)
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, **options)


def check(*command, **options):
    done = run(*command, **options)
    assert done.returncode == 0, f"{command[0]}: {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


class Machine:
    """How to compile, link and run for a machine."""

    def __init__(self, name, options, compiler="cc", runner=(), needs=(), linked=()):
        self.name, self.options, self.compiler = name, list(options), compiler
        self.runner, self.needs, self.linked = list(runner), needs, list(linked)

    def require(self):
        if not host_has(*self.needs):
            pytest.skip(f"this processor has no {' '.join(self.needs)}")
        for tool in [self.compiler, *self.runner[:1]]:
            if shutil.which(tool) is None:
                pytest.skip(f"{tool} is not installed")


HERE_MACHINES = [
    Machine("sse2", ["--target", "x86_64-linux-gnu"]),
    Machine("avx2", ["--cpu", "x86-64-v3"], needs=("avx2", "fma")),
    Machine("avx512", ["--cpu", "x86-64-v4"], needs=("avx512f", "avx512bw", "avx512dq", "avx512vl")),
]
AARCH64 = Machine("aarch64", ["--target", "aarch64-linux-gnu", "--cpu", "cortex-a76"], "aarch64-linux-gnu-gcc",
                  ["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"])
RISCV64 = Machine("riscv64", ["--target", "riscv64-linux-gnu"], "riscv64-linux-gnu-gcc",
                  ["qemu-riscv64", "-L", "/usr/riscv64-linux-gnu"])


class Bundle:
    """A model of bundle_models compiled for a machine, in a folder."""
    emit = "bundle"

    def __init__(self, program, folder, name, machine, options=(), batch=None, precision="float"):
        self.program, self.folder, self.name, self.machine = program, folder, name, machine
        self.precision = ["--precision", precision]
        model, self.inputs = MODELS[name](batch) if batch else MODELS[name]()
        self.path = folder / f"{name}.onnx"
        onnx.save(model, self.path)
        self.sizes = ["--dim", f"batch={batch or 5}"] if name == "mlp" else []
        self.compile("out", options)

    def compile(self, out, options, sizes=None):
        check(self.program, "compile", self.path, "-o", self.folder / out, "--emit", self.emit, *self.machine.options,
              *self.precision, *options, *(self.sizes if sizes is None else sizes))

    def link(self, flags=(), libraries=()):
        check(self.machine.compiler, "-std=c99", *STRICT, "-O1", f"-I{INCLUDE}", f"-DBUNDLE={self.name}", *flags, *WRAPPED,
              HERE / "bundle_driver.c", self.folder / "out" / f"{self.name}.o", "-o", self.folder / "driver", *libraries,
              "-lm")

    def run(self, entry=0, inputs=None, weights=None, runner=None):
        """The lines that the driver prints, as a dict, and the outputs' bytes, if there are any."""
        files = []
        for i, value in enumerate((inputs or self.inputs).values()):
            files.append(self.folder / f"in{i}.bin")
            files[-1].write_bytes(value.tobytes())
        text = check(*(self.machine.runner if runner is None else runner), self.folder / "driver", entry,
                     weights or self.folder / "out" / f"{self.name}.weights.bin", *files, cwd=self.folder)
        said = {name: int(value) for name, value in (line.split() for line in text.splitlines())}
        return said, (self.folder / "out0.bin").read_bytes() if "run" in said else None

    def reference(self, inputs=None):
        """What the interpreter gives."""
        words = []
        for name, value in (inputs or self.inputs).items():
            np.save(self.folder / f"{name}.npy", value)
            words += ["--input", f"{name}={self.folder / name}.npy"]
        check(self.program, "run", self.path, "--backend", "interpreter", *self.precision, *words, "--output-dir",
              self.folder / "reference")
        return np.load(self.folder / "reference" / "0.npy")

    def compare(self, got, inputs=None):
        expected = self.reference(inputs)
        relative, absolute = TOLERANCES[self.name] if "bf16" not in self.precision else BF16_TOLERANCE
        values = np.frombuffer(got, expected.dtype).reshape(expected.shape)
        np.testing.assert_allclose(values.astype(np.float64), expected.astype(np.float64), relative, absolute)

    def undefined(self):
        lines = check("nm", "-u", self.folder / "out" / f"{self.name}.o").split("\n")
        return [line.split()[-1] for line in lines if line.strip()]

    def exported(self):
        lines = check("nm", "-g", "--defined-only", self.folder / "out" / f"{self.name}.o").split("\n")
        return sorted(line.split()[-1] for line in lines if line.strip())

    def verify(self):
        """Links, runs and compares; nothing is allocated, and nothing but the C library is needed."""
        self.link()
        said, got = self.run()
        assert said["check"] == 0 and said["run"] == 0 and said["allocations"] == 0, said
        self.compare(got)
        assert [name for name in self.undefined() if not LIBRARY.match(name)] == []
