"""The installed package: another CMake project finds it, builds against it in C and C++, and recognises digits."""
import re
import shutil
import subprocess

import pytest

EXPECTED = r"probabilities: {} \(\d+\.\d %\)\n"


def call(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def prefix(program, sanitized, tmp_path_factory):
    if not (program.parent / "CMakeCache.txt").is_file():
        pytest.skip("the program under test lies outside of its build folder")
    if sanitized:
        pytest.skip("a library with sanitizers asks the same of its users")
    folder = tmp_path_factory.mktemp("prefix")
    call("cmake", "--install", program.parent, "--prefix", folder)
    return folder


@pytest.fixture(scope="module")
def programs(root, prefix, tmp_path_factory):
    # Copied, so that nothing of the checkout is found by accident.
    source, build = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("build")
    shutil.copytree(root / "examples" / "embed", source, dirs_exist_ok=True)
    call("cmake", "-S", source, "-B", build, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}")
    call("cmake", "--build", build, "-j", 2)
    return build


def test_the_program_is_installed(prefix):
    assert call(prefix / "bin" / "aglow", "--version").startswith("aglow ")


def test_no_library_is_looked_for_in_the_working_folder(program, prefix):
    """An empty place in the list of folders is the one that a program happens to be called in."""
    built = [program, *program.parent.glob("aglow_llvm.so")]
    installed = [prefix / "bin" / "aglow", *prefix.rglob("aglow_llvm.so")]
    assert len(built) == len(installed)
    for file in built + installed:
        for places in re.findall(r"\(R(?:UN)?PATH\).*\[(.*)\]", call("readelf", "-d", file)):
            assert all(places.split(":")), f"{file}: {places}"


def test_headers_stand_alone(prefix, tmp_path):
    for name, compiler in (("a.c", ["cc", "-std=c99"]), ("a.cpp", ["c++", "-std=c++17"])):
        source = tmp_path / name
        source.write_text('#include <aglow/aglow.h>\n' + ("#include <aglow/aglow.hpp>\n" if name == "a.cpp" else "") +
                          "int main(void) { return 0; }\n")
        call(*compiler, "-Wall", "-Wextra", "-pedantic", "-Werror", "-fsyntax-only", "-I", prefix / "include", source)


@pytest.mark.parametrize("program_name", ["embed_c", "embed_cpp"])
def test_digits(root, programs, program_name):
    digits = root / "examples" / "digits"
    for label in (0, 7):
        shown = call(programs / program_name, digits / "digits.onnx", digits / "images" / f"{label}.npy")
        assert re.fullmatch(EXPECTED.format(label), shown)


def test_memory_is_bound_once(root, programs):
    digits = root / "examples" / "digits"
    images = [digits / "images" / f"{label}.npy" for label in (1, 2, 3)]
    shown = call(programs / "embed_cpp", digits / "digits.onnx", *images)
    assert re.fullmatch("".join(EXPECTED.format(label) for label in (1, 2, 3)), shown)


@pytest.mark.parametrize("program_name", ["embed_c", "embed_cpp"])
def test_errors_have_text(programs, program_name, tmp_path):
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(b"junk")
    done = subprocess.run([programs / program_name, broken, broken], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert re.search(r"error\[E2\d\d\]", done.stderr)
