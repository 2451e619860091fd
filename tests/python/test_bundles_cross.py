"""Bundles for other processors, run by qemu: no runtime of that processor but its C library."""
import pytest

from bundle_models import MODELS
from bundles import AARCH64, LIBRARY, RISCV64, Bundle, Machine, check


@pytest.mark.parametrize("name", MODELS)
def test_aarch64(program, tmp_path, name):
    AARCH64.require()
    Bundle(program, tmp_path, name, AARCH64).verify()


@pytest.mark.parametrize("name", ["convnet", "int8"])
def test_aarch64_unoptimized(program, tmp_path, name):
    AARCH64.require()
    Bundle(program, tmp_path, name, AARCH64, ["-O", "0"]).verify()


def aarch64_with(feature):
    return Machine(feature, ["--target", "aarch64-linux-gnu", "--cpu", "cortex-a76", "--features", f"+{feature}"],
                   AARCH64.compiler, [AARCH64.runner[0], "-cpu", "max", *AARCH64.runner[1:]])


@pytest.mark.parametrize("name", ["int8", "quantized"])
def test_aarch64_that_multiplies_unsigned_by_signed_bytes(program, tmp_path, name):
    aarch64_with("i8mm").require()
    Bundle(program, tmp_path, name, aarch64_with("i8mm")).verify()


@pytest.mark.parametrize("name", ["convnet", "mlp"])
def test_aarch64_that_multiplies_bf16(program, tmp_path, name):
    aarch64_with("bf16").require()
    Bundle(program, tmp_path, name, aarch64_with("bf16"), precision="bf16").verify()


@pytest.mark.parametrize("feature,name,precision,instruction", [("i8mm", "int8", "float", "usmmla"),
                                                                ("bf16", "mlp", "bf16", "bfmmla")])
def test_aarch64_multiplies_blocks(program, tmp_path, feature, name, precision, instruction):
    """Two rows by two columns with one instruction, where there is one."""
    for machine, multiplies in [(AARCH64, False), (aarch64_with(feature), True)]:
        bundle = Bundle(program, tmp_path, name, machine, precision=precision)
        bundle.compile("code", ["--emit", "asm"])
        assert (instruction in (tmp_path / "code" / f"{name}.s").read_text()) == multiplies


@pytest.mark.parametrize("name", ["convnet", "mlp", "quantized", "f16"])
def test_riscv64(program, tmp_path, name):
    RISCV64.require()
    Bundle(program, tmp_path, name, RISCV64).verify()


def test_digits(program, root, tmp_path):
    AARCH64.require()
    digits, out = root / "examples" / "digits", tmp_path
    check(program, "compile", digits / "digits.onnx", "-o", out, "--emit", "bundle", *AARCH64.options)
    check(AARCH64.compiler, f"-I{out}", root / "examples" / "bundle" / "main.c", out / "digits.o", "-o", out / "digits")
    answers = check(*AARCH64.runner, out / "digits", out / "digits.weights.bin", *sorted((digits / "images").glob("*.npy")))
    assert [line.split()[0] for line in answers.splitlines()] == ["0", "1", "2", "3", "4", "5", "7", "9"]


@pytest.mark.parametrize("machine,runner", [
    (AARCH64, [AARCH64.runner[0], "-cpu", "cortex-a53", *AARCH64.runner[1:]]),
    (Machine("avx2", ["--cpu", "x86-64-v3"], runner=["qemu-x86_64"]), ["qemu-x86_64", "-cpu", "core2duo"]),
], ids=["aarch64", "x86-64"])
def test_code_for_more_than_the_processor_has_is_refused(program, tmp_path, machine, runner):
    """The check itself runs on any processor."""
    machine.require()
    bundle = Bundle(program, tmp_path, "mlp", machine)
    bundle.link()
    assert bundle.run(runner=runner) == ({"check": 3}, None)


@pytest.mark.parametrize("target", ["aarch64-linux-gnu", "riscv64-linux-gnu", "x86_64-linux-gnu"])
@pytest.mark.parametrize("name", ["convnet", "int8", "f16"])
def test_needs_no_foreign_library(program, tmp_path, name, target):
    """Also without the compilers of those machines."""
    bundle = Bundle(program, tmp_path, name, Machine(target, ["--target", target]))
    assert [symbol for symbol in bundle.undefined() if not LIBRARY.match(symbol)] == []
