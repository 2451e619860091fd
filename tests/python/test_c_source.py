"""Bundles as portable C: any compiler takes them without a word, and they compute what the interpreter does."""
import concurrent.futures
import re
import shutil
import subprocess

import numpy as np
import onnx
import pytest

from bundle_models import MODELS
from bundles import HERE, INCLUDE, STRICT, WRAPPED, Bundle, Machine, check, run
from test_functions import COUNTER

ANY = Machine("any", [])
ROOT = HERE.parents[1]
COMPILERS = {"gcc": ["gcc", "-std=c99", "-O3"], "clang": ["clang-19", "-std=c99", "-O3"], "c11": ["gcc", "-std=c11", "-O1"],
             "checked": ["gcc", "-std=c99", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]}


class Source(Bundle):
    """A model as C, linked with the driver of other bundles."""
    emit = "c"

    def link(self, compiler=COMPILERS["gcc"], **_):
        check(*compiler, *STRICT, f"-I{INCLUDE}", f"-DBUNDLE={self.name}", *WRAPPED, HERE / "bundle_driver.c",
              self.folder / "out" / f"{self.name}.c", "-o", self.folder / "driver", "-lm")

    def verify(self, compiler):
        self.link(compiler)
        said, got = self.run()
        assert said["check"] == 0 and said["run"] == 0 and said["allocations"] == 0, said
        self.compare(got)


@pytest.mark.parametrize("name", MODELS)
def test_computes_what_the_interpreter_does(program, tmp_path, name):
    Source(program, tmp_path, name, ANY).verify(COMPILERS["gcc"])


@pytest.mark.parametrize("compiler", [name for name in COMPILERS if name != "gcc"])
@pytest.mark.parametrize("name", ["convnet", "mlp", "int8", "f16", "gather"])
def test_takes_any_compiler(program, tmp_path, name, compiler):
    Source(program, tmp_path, name, ANY).verify(COMPILERS[compiler])


def test_the_text_needs_no_vectors_and_goes_to_the_screen(program, tmp_path):
    bundle = Source(program, tmp_path, "convnet", ANY)
    text = (tmp_path / "out" / "convnet.c").read_text()
    assert "intrin" not in text and "vector" not in text.split("*/", 1)[1] and "GLOBAL" not in text
    assert check(program, "compile", bundle.path, "--emit", "c") == text


def test_other_weights_and_wrong_indices_are_told(program, tmp_path):
    bundle = Source(program, tmp_path, "gather", ANY)
    bundle.link()
    said, _ = bundle.run(inputs={"i": np.array([0, 5, 1], np.int64)})
    assert said["run"] & 15 == 1
    weights = bytearray((tmp_path / "out" / "gather.weights.bin").read_bytes())
    weights[3] ^= 1
    (tmp_path / "other.bin").write_bytes(weights)
    assert bundle.run(weights=tmp_path / "other.bin")[0]["check"] == 4


def test_the_program_may_look_after_each_step(program, tmp_path):
    bundle = Source(program, tmp_path, "convnet", ANY)
    (tmp_path / "hooks.h").write_text("#include <stdio.h>\n#define AGLOW_STEP(number) fprintf(stderr, \"step %d\\n\", number)\n")
    bundle.link([*COMPILERS["gcc"], "-D_POSIX_C_SOURCE=200809L", "-include", tmp_path / "hooks.h"])
    np.save(tmp_path / "x.npy", bundle.inputs["x"])
    (tmp_path / "in0.bin").write_bytes(bundle.inputs["x"].tobytes())
    done = run(tmp_path / "driver", 0, tmp_path / "out" / "convnet.weights.bin", tmp_path / "in0.bin", cwd=tmp_path)
    steps = [int(line.split()[1]) for line in done.stderr.splitlines()]
    assert len(steps) >= 5 and steps == sorted(steps)


@pytest.mark.parametrize("name", ["fits", "add_i32", "i32_of", "kernel_0", "run_0", "constants", "state", "tolower"])
def test_names(program, tmp_path, name):
    """Whatever a model is called, its C file has other names for what is its own."""
    onnx.save(MODELS["gather"]()[0], tmp_path / "gather.onnx")
    for model in (COUNTER, tmp_path / "gather.onnx"):
        check(program, "compile", model, "-o", tmp_path / model.stem, "--emit", "c", "--name", name)
        host, = (tmp_path / model.stem).glob("*.c")
        assert host.stem.rstrip("_") == name
        check("gcc", "-std=c99", *STRICT, "-fsyntax-only", host)


def test_what_the_file_defines_is_its_own(program, tmp_path):
    """Functions and macros that kernels are written in are names that no model gets."""
    check(program, "compile", COUNTER, "-o", tmp_path, "--emit", "c", "--name", "probe")
    plain, text = tmp_path / "plain.c", (tmp_path / "probe.c").read_text()
    plain.write_text("".join(f"{line}\n" for line in text.splitlines() if line.startswith("#include")))
    macros, those = (set(re.findall(r"#define (\w+)", check("gcc", "-std=c99", "-dM", "-E", file)))
                     for file in (tmp_path / "probe.c", plain))
    functions = set(re.findall(r"(\w+)\([^()]*\) ?{", check("gcc", "-std=c99", "-P", "-E", tmp_path / "probe.c")))
    names = sorted(macros - those | functions - {"for", "while", "if", "switch"})
    assert {"add_i32", "i64_of", "NARROW_FLOAT", "widen", "kernel_0", "aglow_fits"} <= set(names)
    names = [name for name in names if not re.match("probe|PROBE|AGLOW_|_", name)]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        said = list(pool.map(lambda name: check(program, "compile", COUNTER, "--emit", "c", "--name", name), names))
    given = {name: re.match(r"/\* (\w+):", text).group(1) for name, text in zip(names, said)}
    assert all(given[name] != name for name in names), given


def test_entries_for_several_batches(program, tmp_path):
    bundle = Source(program, tmp_path, "mlp", ANY)
    bundle.compile("out", [], ["--batch", "1,4"])
    bundle.link()
    for entry, batch in enumerate((1, 4)):
        inputs = MODELS["mlp"](batch)[1]
        said, got = bundle.run(entry, inputs)
        assert said["run"] == 0
        bundle.compare(got, inputs)


def test_state_stays_from_call_to_call(program, tmp_path):
    check(program, "compile", COUNTER, "-o", tmp_path, "--emit", "c", "--weights", "c")
    check("gcc", "-std=c11", *STRICT, f"-I{tmp_path}", ROOT / "examples/counter/bundle.c", tmp_path / "counter.c",
          tmp_path / "counter_weights.c", "-o", tmp_path / "counter", "-lm")
    objects = tmp_path / "objects"
    check(program, "compile", COUNTER, "-o", objects, "--emit", "bundle", "--weights", "c")
    check("gcc", "-std=c11", f"-I{objects}", ROOT / "examples/counter/bundle.c", objects / "counter.o",
          objects / "counter_weights.c", "-o", objects / "counter", "-lm")
    assert check(tmp_path / "counter") == check(objects / "counter")


@pytest.mark.parametrize("options", [["--emit", "c,bundle"], ["--emit", "c", "--threads"], ["--emit", "c", "-g"]])
def test_nothing_else_goes_with_it(program, tmp_path, options):
    done = run(program, "compile", ROOT / "examples/digits/digits.onnx", "-o", tmp_path / "out", *options)
    assert done.returncode == 1 and "--emit c" in done.stderr
    assert not (tmp_path / "out").exists()


def test_other_targets_are_pointed_to_it(program, tmp_path):
    done = run(program, "compile", ROOT / "examples/digits/digits.onnx", "-o", tmp_path / "out", "--emit", "bundle",
               "--target", "thumbv7em-none-eabi")
    assert done.returncode == 1 and "--emit c writes C" in done.stderr


def example(name, script, program, folder, *words):
    return subprocess.run([ROOT / "examples" / name / script, *words], capture_output=True, text=True, timeout=300,
                          env={"PATH": "/usr/bin:/bin:/usr/local/bin", "AGLOW": str(program), "OUT": str(folder)})


IMAGES = sorted((ROOT / "examples/digits/images").glob("*.npy"))


@pytest.fixture(scope="module")
def webassembly(program, tmp_path_factory):
    folder = tmp_path_factory.mktemp("webassembly")
    done = example("webassembly", "build.sh", program, folder)
    assert done.returncode == 0, done.stderr
    return folder


# Addresses of 32 bits.
def test_webassembly_in_node(webassembly):
    if shutil.which("node") is None:
        pytest.skip("node is not installed")
    text = check("node", ROOT / "examples/webassembly/digits.js", webassembly / "digits.wasm", *IMAGES)
    assert [line.split()[0] for line in text.splitlines()] == [path.stem for path in IMAGES]


def test_webassembly_in_a_browser(webassembly):
    webdriver = pytest.importorskip("selenium.webdriver")
    from selenium.webdriver.support.wait import WebDriverWait
    if not (shutil.which("chromium") and shutil.which("chromedriver")):
        pytest.skip("no browser")
    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = webdriver.ChromeService(executable_path=shutil.which("chromedriver"))
    with webdriver.Chrome(options=options, service=service) as browser:
        browser.get((webassembly / "digits.html").as_uri())
        WebDriverWait(browser, 20).until(lambda b: b.execute_script("return !!window.drawAll"))
        for path in IMAGES:
            browser.execute_script("drawAll(arguments[0])", np.load(path).ravel().tolist())
            assert browser.find_element("id", "answer").text[0] == path.stem
        assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []


def test_microcontroller_under_qemu(program, tmp_path):
    for tool in ("arm-none-eabi-gcc", "qemu-system-arm"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    for path in IMAGES[:3]:
        done = example("microcontroller", "run.sh", program, tmp_path, path)
        assert done.returncode == 0 and f"digit {path.stem}" in done.stderr, done.stdout + done.stderr
