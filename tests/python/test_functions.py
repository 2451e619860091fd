"""Modules with several functions over one state: on the command line, from Python, and as bundles."""
import json
import re
import subprocess
import sys

import numpy as np
import pytest

from bundles import INCLUDE, STRICT, check
from conftest import ROOT

COUNTER = ROOT / "examples" / "counter" / "counter.graph"
PLAYED = "add gives 4\ncount is 4\nadd gives 42\ncount is 0\n"


@pytest.fixture
def step(tmp_path):
    np.save(tmp_path / "two.npy", np.float32(2))
    return f"step={tmp_path / 'two.npy'}"


# ---- the command line

def test_run_takes_functions_in_order(aglow, backend, step):
    done = aglow("run", COUNTER, "--function", "add,add,reset,add", "--input", step)
    assert (done.code, done.err) == (0, "")
    assert done.out == ("add: total : f32[] = [2]\nadd: total : f32[] = [4]\nadd: total : f32[] = [2]\n"
                        "state count : f32[] = [2]\n")


def test_run_writes_state_after_the_outputs(aglow, step, tmp_path):
    assert aglow("run", COUNTER, "--function", "add,add", "--input", step, "-o", tmp_path / "out").code == 0
    assert [float(np.load(tmp_path / "out" / f"{i}.npy")) for i in range(3)] == [2, 4, 4]


def test_a_function_has_to_be_chosen(aglow, step):
    for command in ("run", "bench"):
        done = aglow(command, COUNTER)
        assert done.code == 1 and "'add', 'reset'" in done.err
    done = aglow("run", COUNTER, "--function", "rest")
    assert done.code == 1 and "did you mean 'reset'" in done.err
    assert aglow("bench", COUNTER, "--function", "add,reset").code == 1


def test_a_function_named_main_needs_no_choice(aglow, tmp_path):
    graph = tmp_path / "two.graph"
    graph.write_text("""module { placeholder @y : f32[] constant @c : f32[] = [3]
      func @other { Save(@c, @y) } func @main { %n = Neg(@c) Save(%n, @y) } }""")
    assert aglow("run", graph).out == "y : f32[] = [-3]\n"
    assert aglow("run", graph, "--function", "other").out == "y : f32[] = [3]\n"


def test_a_model_file_has_main(aglow):
    digits = ROOT / "examples" / "digits"
    image = f"image={digits / 'images' / '7.npy'}"
    assert aglow("run", digits / "digits.onnx", "--input", image, "--function", "main").code == 0
    done = aglow("run", digits / "digits.onnx", "--input", image, "--function", "other")
    assert done.code == 1 and "there is no function 'other'" in done.err


def test_bench_measures_one(aglow, backend):
    done = aglow("bench", COUNTER, "--function", "add", "--runs", "3", "--json", "--instructions")
    assert done.code == 0, done.err
    report = json.loads(done.out)
    assert report["state_bytes"] == 4 and report["backend"] == backend
    assert report["profile"]["instructions"]


def test_inspect_shows_functions_and_state(aglow):
    assert aglow("inspect", COUNTER).out == ("function add\n  input step : f32[]\n  output total : f32[]\n"
                                             "function reset\nstate count : f32[]\n")
    memory = aglow("inspect", COUNTER, "--memory").out
    assert re.findall(r"^function (\w+)$", memory, re.M) == ["add", "reset"] and "state " in memory


def test_text_forms_hold_all_functions(aglow, backend, step, tmp_path):
    assert aglow("compile", COUNTER, "-o", tmp_path, "--emit", "graph,ir,dot,ir-dot", "--verify-each").code == 0
    text = (tmp_path / "counter.ir").read_text()
    assert re.findall(r"^program @(\w+)\(", text, re.M) == ["add", "reset"]
    assert text.count(" = state ") == 1 and "%count = state f32[] = [0]" in text
    for form, extra in (("graph", ("--start-from", "irgen")), ("ir", ())):
        done = aglow("run", tmp_path / f"counter.{form}", "--function", "add,add", "--input", step, *extra)
        assert done.out.endswith("state count : f32[] = [4]\n"), done.err
    only = aglow("compile", COUNTER, "--function", "reset").out
    assert "program @reset()" in only and "@add" not in only


def test_state_is_not_for_onnx(aglow, tmp_path):
    done = aglow("compile", COUNTER, "--function", "add", "-o", tmp_path, "--emit", "onnx")
    assert done.code == 3 and "'count' is state" in done.err


# ---- Python

@pytest.fixture
def module():
    return pytest.importorskip("aglow", reason="the module is not built: ./dev test builds it")


@pytest.mark.parametrize("backend_name", ["interpreter", "cpu"])
def test_python(module, backend_name):
    if backend_name not in module.backends():
        pytest.skip(f"this build has no {backend_name} backend")
    model = module.compile(COUNTER, backend=backend_name)
    assert model.functions == ("add", "reset")
    add = model["add"]
    assert [spec.name for spec in add.inputs] == ["step"] and "step: f32[]" in repr(add)
    assert add(2) == 2 and add(step=2) == 4
    assert model.run({"step": 3}, function="add") == {"total": 7}
    assert model["reset"]() == ()
    assert add(1) == 1

    state = model.state
    assert list(state) == ["count"] and len(state) == 1
    assert state["count"] == 1 and state["count"].dtype == np.float32
    kept = state["count"]
    state["count"] = 40
    assert add(2) == 42 and kept == 1
    state.reset()
    assert state["count"] == 0
    assert "with add, reset" in repr(model)


def test_python_faults(module):
    model = module.compile(COUNTER)
    for body in (lambda: model(2), lambda: model.inputs, lambda: model["ad"], lambda: model.run({}, function="x")):
        with pytest.raises(module.UsageError):
            body()
    with pytest.raises(module.UsageError, match="did you mean 'add'"):
        model["ad"]
    with pytest.raises(module.UsageError):
        model.state["count"] = [1, 2]
    with pytest.raises(KeyError):
        model.state["total"]
    with pytest.raises(KeyError):
        model.state["total"] = 1
    with pytest.raises(TypeError):
        del model.state["count"]


def test_python_takes_the_default_backend(module):
    made = module.compile(ROOT / "examples" / "digits" / "digits.onnx")
    assert made.functions == ("main",) and len(made.state) == 0
    assert module.backends()[-1] == ("cpu" if "cpu" in module.backends() else "interpreter")


# ---- bundles

def test_bundle(program, tmp_path):
    check(program, "compile", COUNTER, "-o", tmp_path, "--emit", "bundle", "--weights", "c")
    header = (tmp_path / "counter.h").read_text()
    assert "counter_add()" in header and "counter_reset()" in header and "#define COUNTER_STATE_BYTES 64" in header
    check("cc", "-std=c11", *STRICT, f"-I{tmp_path}", COUNTER.parent / "bundle.c", tmp_path / "counter_weights.c",
          tmp_path / "counter.o", "-o", tmp_path / "counter")
    assert check(tmp_path / "counter") == PLAYED


LOADED = r"""
#define AGLOW_BUNDLE_LOADER
#include <aglow/bundle.h>
#include <stdio.h>
int main(int count, char **words) {
  aglow_bundle *bundle;
  const char *fault = aglow_bundle_open(words[1], words[2], &bundle);
  aglow_bundle_context *add, *reset;
  if (count != 3 || fault != NULL) { puts(fault); return 1; }
  add = aglow_bundle_context_new(bundle, aglow_bundle_find(bundle, "counter_add"));
  reset = aglow_bundle_context_new(bundle, aglow_bundle_find(bundle, "counter_reset"));
  if (add == NULL || reset == NULL || aglow_bundle_find(bundle, "counter") != -1) return 2;
  *(float *)aglow_bundle_input(add, 0) = 2;
  if (aglow_bundle_run(add) != 0 || aglow_bundle_run(add) != 0) return 3;
  printf("add gives %g\n", *(float *)aglow_bundle_output(add, 0));
  printf("%s is %g\n", bundle->info->states[0].name, *(float *)aglow_bundle_state(bundle, 0));
  *(float *)aglow_bundle_state(bundle, 0) = 40;
  if (add->entry->parallel(bundle->constants, add->mutable_memory, add->activations, bundle->state, NULL) != 0) return 4;
  printf("add gives %g\n", *(float *)aglow_bundle_output(add, 0));
  if (aglow_bundle_run(reset) != 0) return 5;
  printf("%s is %g\n", bundle->info->states[0].name, *(float *)aglow_bundle_state(bundle, 0));
  aglow_bundle_context_free(add);
  aglow_bundle_context_free(reset);
  aglow_bundle_close(bundle);
  return 0;
}
"""


@pytest.mark.parametrize("compiler,name", [(["cc", "-std=gnu99"], "a.c"), (["c++", "-std=c++17"], "a.cpp")])
def test_shared_object(program, tmp_path, compiler, name):
    check(program, "compile", COUNTER, "-o", tmp_path, "--emit", "so", "--threads")
    (tmp_path / name).write_text(LOADED)
    check(*compiler, "-Wall", "-Wextra", "-Werror", f"-I{INCLUDE}", tmp_path / name, "-ldl", "-o", tmp_path / "loaded")
    assert check(tmp_path / "loaded", tmp_path / "counter.so", tmp_path / "counter.weights.bin") == PLAYED


def test_a_bundle_of_one_function(program, tmp_path):
    check(program, "compile", COUNTER, "-o", tmp_path, "--emit", "bundle", "--function", "add")
    assert "int counter(const uint8_t *constants, uint8_t *mutableMem, uint8_t *activations, uint8_t *state);" in \
        (tmp_path / "counter.h").read_text()


def test_a_bundle_refuses_a_missing_state(program, tmp_path):
    check(program, "compile", COUNTER, "-o", tmp_path, "--emit", "bundle", "--weights", "c")
    (tmp_path / "a.c").write_text("""#include "counter.h"
#include <stdio.h>
static _Alignas(64) uint8_t memory[4096];
int main(void) {
  printf("%d %d\\n", counter_state_init(counter_weights, 0), counter_reset(counter_weights, memory, memory + 1024, 0));
  return 0;
}""")
    check("cc", f"-I{tmp_path}", tmp_path / "a.c", tmp_path / "counter_weights.c", tmp_path / "counter.o", "-o",
          tmp_path / "a")
    assert check(tmp_path / "a") == "2 2\n"


# ---- the example's other programs

def test_example_in_python(module, program):
    done = subprocess.run([sys.executable, COUNTER.with_name("counter.py")], capture_output=True, text=True, timeout=120,
                          env={"PYTHONPATH": str(program.parent / "python"), "AGLOW_CACHE_DIR": "off"})
    assert (done.stdout, done.stderr) == (PLAYED, "")


@pytest.mark.parametrize("name", ["counter_c", "counter_cpp"])
def test_example_of_the_interfaces(program, name):
    built = program.parent / "examples" / "counter" / name
    if not built.is_file():
        pytest.skip(f"{built} is not built")
    assert check(built, COUNTER) == PLAYED
    done = subprocess.run([built, "nothing.graph"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 8 and "error[" in done.stderr
