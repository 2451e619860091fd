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


def test_pkg_config(root, prefix, tmp_path):
    """A C compiler alone links the shared library by what pkg-config says, also where the folder was moved to."""
    if shutil.which("pkg-config") is None:
        pytest.skip("there is no pkg-config")
    moved = tmp_path / "moved"
    shutil.copytree(prefix, moved, symlinks=True)
    ask = ["env", f"PKG_CONFIG_PATH={moved / 'lib' / 'pkgconfig'}", "pkg-config"]
    assert call(*ask, "--modversion", "aglow").strip() == call(moved / "bin" / "aglow", "--version").split()[1]
    flags = call(*ask, "--cflags", "--libs", "aglow").split()
    digits = root / "examples" / "digits"
    call("cc", "-std=c99", root / "examples" / "embed" / "main.c", *flags, f"-Wl,-rpath,{moved / 'lib'}", "-o", tmp_path / "c")
    shown = call(tmp_path / "c", digits / "digits.onnx", digits / "images" / "7.npy")
    assert re.fullmatch(EXPECTED.format(7), shown)


def test_the_shared_library_shows_the_c_interface_alone(root, prefix):
    library = prefix / "lib" / "libaglow.so"
    declared = set(re.findall(r"\b(aglow_\w+)\(", (root / "include" / "aglow" / "aglow.h").read_text()))
    seen = {line.split()[-1] for line in call("nm", "-D", "--defined-only", library).splitlines()}
    assert seen == declared
    assert "LLVM" not in call("readelf", "-d", library)


def test_the_archive(prefix, tmp_path):
    """The component static, with all libraries that Aglow itself links."""
    (tmp_path / "main.c").write_text('#include <aglow/aglow.h>\nint main(void) { return aglow_version()[0] == 0; }\n')
    (tmp_path / "CMakeLists.txt").write_text("""cmake_minimum_required(VERSION 3.25)
project(archive LANGUAGES C CXX)
find_package(aglow REQUIRED COMPONENTS static)
add_executable(main main.c)
target_link_libraries(main PRIVATE aglow::static)
""")
    call("cmake", "-S", tmp_path, "-B", tmp_path / "build", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}")
    call("cmake", "--build", tmp_path / "build")
    call(tmp_path / "build" / "main")
    (tmp_path / "CMakeLists.txt").write_text("""cmake_minimum_required(VERSION 3.25)
project(none LANGUAGES C CXX)
find_package(aglow REQUIRED COMPONENTS nothing)
""")
    done = subprocess.run(["cmake", "-S", tmp_path, "-B", tmp_path / "none", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}"],
                          capture_output=True, text=True, timeout=300)
    assert done.returncode != 0 and "no component 'nothing'" in done.stderr


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
