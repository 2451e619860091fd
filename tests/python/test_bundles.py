"""Bundles for this machine: right at every level and vector width, without a heap, with a header for C and C++."""
import filecmp
import re
import shutil

import numpy as np
import onnx
import pytest

from bundle_models import MODELS
from bundles import HERE, HERE_MACHINES, INCLUDE, STRICT, Bundle, Machine, check, run

SSE2, AVX2, AVX512 = HERE_MACHINES
NATIVE = Machine("native", [])


@pytest.mark.parametrize("machine", HERE_MACHINES, ids=lambda m: m.name)
@pytest.mark.parametrize("name", MODELS)
def test_fast(program, tmp_path, name, machine):
    machine.require()
    Bundle(program, tmp_path, name, machine).verify()


@pytest.mark.parametrize("name,machine", [("convnet", AVX512), ("mlp", AVX2), ("f16", SSE2)],
                         ids=lambda v: getattr(v, "name", v))
def test_unoptimized(program, tmp_path, name, machine):
    machine.require()
    Bundle(program, tmp_path, name, machine, ["-O", "0"]).verify()


def test_options_that_change_code(program, tmp_path):
    bundle = Bundle(program, tmp_path, "convnet", NATIVE, ["--opt-size", "--features", "-avx512f", "--code-model", "large"])
    assert "avx512" not in re.search(r"_FEATURES (.*)", (tmp_path / "out" / "convnet.h").read_text()).group(1)
    bundle.verify()


def test_exports_only_its_interface(program, tmp_path):
    assert Bundle(program, tmp_path, "convnet", NATIVE).exported() == ["convnet", "convnet_check", "convnet_info"]


@pytest.mark.parametrize("compiler", [["cc", "-std=c99"], ["c++", "-std=c++98", "-x", "c++"], ["c++", "-std=c++20", "-x", "c++"]],
                         ids=["c99", "c++98", "c++20"])
def test_header(program, tmp_path, compiler):
    bundle = Bundle(program, tmp_path, "mlp", NATIVE, ["--threads", "--weights", "c"])
    source = tmp_path / "user.c"
    source.write_text('#include "mlp.h"\n#include "aglow/bundle.h"\n'
                      "int use(uint8_t *memory, uint8_t *work);\n"
                      "int use(uint8_t *memory, uint8_t *work) {\n"
                      "  const float *y = MLP_Y(memory);\n  MLP_X(memory)[0] = y[0];\n"
                      "  if (mlp_check(mlp_weights) != MLP_OK) return MLP_BAD_WEIGHTS;\n"
                      "  return MLP_STATUS(mlp_parallel(mlp_weights, memory, work, 0)) + (int)mlp_info.entry_count;\n}\n")
    flags = STRICT if "c99" in compiler[1] or "20" in compiler[1] else ["-Wall", "-Wextra", "-Werror"]
    check(*compiler, *flags, f"-I{tmp_path / 'out'}", f"-I{INCLUDE}", "-c", source, "-o", tmp_path / "user.o")
    assert bundle.exported() == ["mlp", "mlp_check", "mlp_info", "mlp_parallel"]


def test_weights_of_another_model_are_refused(program, tmp_path):
    bundle = Bundle(program, tmp_path, "mlp", NATIVE)
    bundle.link()
    weights = bytearray((tmp_path / "out" / "mlp.weights.bin").read_bytes())
    weights[1234] ^= 1
    (tmp_path / "other.bin").write_bytes(weights)
    said, _ = bundle.run(weights=tmp_path / "other.bin")
    assert said["check"] == 4


@pytest.mark.parametrize("index,status", [(4, 0), (5, 1), (-5, 0), (-6, 1)])
def test_index_outside_is_an_error_code(program, tmp_path, index, status):
    bundle = Bundle(program, tmp_path, "gather", NATIVE)
    bundle.link()
    said, _ = bundle.run(inputs={"i": np.array([0, index, 1], np.int64)})
    assert said["run"] & 15 == status


def test_weights_in_c(program, tmp_path):
    bundle = Bundle(program, tmp_path, "convnet", NATIVE, ["--weights", "c"])
    out = tmp_path / "out"
    assert not (out / "convnet.weights.bin").exists()
    shutil.copy(HERE / "bundle_driver.c", tmp_path)
    (tmp_path / "dump.c").write_text('#include <stdio.h>\n#include "convnet.h"\nint main(void) {\n'
                                     "  if (convnet_check(convnet_weights) != CONVNET_OK) return 1;\n"
                                     "  return fwrite(convnet_weights, CONVNET_CONSTANTS_BYTES, 1, stdout) != 1;\n}\n")
    check("cc", "-std=c99", *STRICT, f"-I{out}", tmp_path / "dump.c", out / "convnet_weights.c", out / "convnet.o", "-o",
          tmp_path / "dump")
    check("sh", "-c", f"{tmp_path}/dump > {tmp_path}/weights.bin")
    bundle.link()
    said, got = bundle.run(weights=tmp_path / "weights.bin")
    assert said["check"] == 0
    bundle.compare(got)


def test_entries_for_several_batches_share_weights(program, tmp_path):
    bundle = Bundle(program, tmp_path, "mlp", NATIVE)
    alone = (tmp_path / "out" / "mlp.weights.bin").stat().st_size
    bundle.compile("out", [], ["--batch", "1,4,8"])
    assert (tmp_path / "out" / "mlp.weights.bin").stat().st_size <= alone + 1024
    assert bundle.exported() == ["mlp_b1", "mlp_b4", "mlp_b8", "mlp_check", "mlp_info"]
    bundle.link()
    for entry, batch in enumerate((1, 4, 8)):
        inputs = MODELS["mlp"](batch)[1]
        said, got = bundle.run(entry, inputs)
        assert said["run"] == 0
        bundle.compare(got, inputs)
    bundle.compile("dims", [], ["--dim", "batch=1,4,8"])
    headers = [re.sub(r"#define MLP_OPTIONS .*", "", (tmp_path / folder / "mlp.h").read_text()) for folder in ("out", "dims")]
    assert headers[0] == headers[1]
    for name in ("mlp.o", "mlp.weights.bin"):
        assert filecmp.cmp(tmp_path / "out" / name, tmp_path / "dims" / name, shallow=False), name


@pytest.mark.parametrize("name, sizes", [("mlp", {"batch": 4096}), ("branches", {})])
def test_parallel_for_of_the_host(name, sizes, program, tmp_path):
    """Units of work done one by one, last first, give the same bits as all at once."""
    bundle = Bundle(program, tmp_path, name, NATIVE, **sizes)
    bundle.link()
    _, alone = bundle.run()
    bundle.compile("out", ["--threads"])
    bundle.link()
    said, spread = bundle.run()
    assert said["run"] == 0 and said["units"] > 1
    assert spread == alone


def test_a_fault_of_one_beside_others_is_that_of_its_instruction(program, tmp_path):
    bundle = Bundle(program, tmp_path, "branches", NATIVE, ["--threads"])
    bundle.link()
    text = check(program, "compile", bundle.path, "--stop-after", "memory")
    # Instructions are numbered as the program's lines; bodies of fused ones do not count.
    lines = [line for line in text.partition("program @")[2].splitlines()[1:] if re.match(r"  [^ }]", line)]
    number = next(i for i, line in enumerate(lines) if " Gather @out" in line)
    assert any(lines[i].startswith("  beside ") for i in (number, number + 1))
    said, _ = bundle.run(inputs=bundle.inputs | {"i": np.array([4, 0, 16, -2], np.int64)})
    assert said["run"] == 1 | number << 4


THREADS = r"""
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "convnet.h"
#include "aglow/bundle.h"
extern const uint8_t convnet_weights[CONVNET_CONSTANTS_BYTES];
static uint8_t *memory[3];
static void *work(void *which) {
  uint8_t *mine = memory[*(int *)which], *activations;
  int i;
  void *place;
  if (posix_memalign(&place, 64, CONVNET_ACTIVATIONS_BYTES) != 0) return which;
  activations = (uint8_t *)place;
  for (i = 0; i < 200; ++i) {
    memset(activations, *(int *)which + i, CONVNET_ACTIVATIONS_BYTES);
    if (convnet(convnet_weights, mine, activations) != CONVNET_OK) return which;
  }
  return NULL;
}
int main(void) {
  static int numbers[3] = {0, 1, 2};
  pthread_t threads[2];
  void *fault = NULL;
  int i, j;
  for (i = 0; i < 3; ++i) {
    if (posix_memalign((void **)&memory[i], 64, CONVNET_MUTABLE_BYTES) != 0) return 2;
    for (j = 0; j < (int)CONVNET_X_ELEMENTS; ++j) CONVNET_X(memory[i])[j] = (float)((i * 7 + j) % 11);
  }
  memcpy(memory[2], memory[0], CONVNET_MUTABLE_BYTES);
  for (i = 0; i < 2; ++i) pthread_create(&threads[i], NULL, work, &numbers[i]);
  for (i = 0; i < 2; ++i) pthread_join(threads[i], fault == NULL ? &fault : NULL);
  if (fault != NULL || work(&numbers[2]) != NULL) return 3;
  if (memcmp(memory[0], memory[1], CONVNET_MUTABLE_BYTES) == 0) return 4;
  return memcmp(memory[0], memory[2], CONVNET_MUTABLE_BYTES) != 0;
}
"""


def test_calls_at_the_same_time(program, tmp_path):
    Bundle(program, tmp_path, "convnet", NATIVE, ["--weights", "c"])
    out = tmp_path / "out"
    (tmp_path / "threads.c").write_text("#define _POSIX_C_SOURCE 200809L\n" + THREADS)
    check("cc", "-std=c99", *STRICT, f"-I{out}", f"-I{INCLUDE}", tmp_path / "threads.c", out / "convnet_weights.c",
          out / "convnet.o", "-o", tmp_path / "threads", "-pthread", "-lm")
    check(tmp_path / "threads")


LOADER = r"""
#define _POSIX_C_SOURCE 200809L
#define AGLOW_BUNDLE_LOADER
#include <stdio.h>
#include <string.h>
#include "aglow/bundle.h"
int main(int count, char **words) {
  aglow_bundle *bundle;
  aglow_bundle_context *context;
  const char *fault = aglow_bundle_open(words[1], words[2], &bundle);
  int64_t i;
  if (fault != NULL) {
    printf("%s\n", fault);
    return 1;
  }
  context = aglow_bundle_context_new(bundle, 0);
  if (context == NULL || aglow_bundle_context_new(bundle, 1) != NULL || count != 4) return 2;
  for (i = 0; i < context->entry->input_count; ++i)
    printf("in %s %s\n", context->entry->inputs[i].name, context->entry->inputs[i].type);
  FILE *file = fopen(words[3], "rb");
  if (fread(aglow_bundle_input(context, 0), 1, (size_t)context->entry->inputs[0].bytes, file) == 0) return 3;
  fclose(file);
  printf("run %d\n", aglow_bundle_run(context));
  file = fopen("out.bin", "wb");
  fwrite(aglow_bundle_output(context, 0), 1, (size_t)context->entry->outputs[0].bytes, file);
  fclose(file);
  aglow_bundle_context_free(context);
  aglow_bundle_close(bundle);
  return 0;
}
"""


def test_shared_object_and_loader(program, tmp_path):
    bundle = Bundle(program, tmp_path, "mlp", NATIVE)
    check(program, "compile", bundle.path, "-o", tmp_path / "so", "--emit", "so", *bundle.sizes)
    assert sorted(p.name for p in (tmp_path / "so").iterdir()) == ["mlp.h", "mlp.so", "mlp.weights.bin"]
    (tmp_path / "loader.c").write_text(LOADER)
    for compiler in (["cc", "-std=c99"], ["c++", "-x", "c++"]):
        check(*compiler, *STRICT[:3], f"-I{INCLUDE}", tmp_path / "loader.c", "-o", tmp_path / "loader", "-ldl")
    (tmp_path / "in.bin").write_bytes(bundle.inputs["x"].tobytes())
    files = [tmp_path / "so" / "mlp.so", tmp_path / "so" / "mlp.weights.bin", tmp_path / "in.bin"]
    assert check(tmp_path / "loader", *files, cwd=tmp_path) == "in x f32[5,33]\nrun 0\n"
    bundle.compare((tmp_path / "out.bin").read_bytes())
    (tmp_path / "bad.bin").write_bytes(bytes(files[1].stat().st_size))
    refused = run(tmp_path / "loader", files[0], tmp_path / "bad.bin", files[2], cwd=tmp_path)
    assert (refused.returncode, refused.stdout) == (1, "the weights are not those the code was made for\n")


def test_same_model_same_bytes(program, tmp_path):
    everything = ["--emit", "bundle,so,asm,llvm,ir,graph"]
    bundle = Bundle(program, tmp_path, "convnet", NATIVE)
    for out in ("one", "two"):
        check(program, "compile", bundle.path, "-o", tmp_path / out, *everything)
    names = sorted(p.name for p in (tmp_path / "one").iterdir())
    assert len(names) >= 8
    for name in names:
        assert filecmp.cmp(tmp_path / "one" / name, tmp_path / "two" / name, shallow=False), name
    for path in (tmp_path / "one").iterdir():
        assert str(tmp_path).encode() not in path.read_bytes(), path.name


def test_names_become_identifiers(program, tmp_path):
    model, _ = MODELS["mlp"](2)
    for node in model.graph.node:
        node.input[:] = ["a */ b??/\n" if name == "x" else name for name in node.input]
    model.graph.input[0].name = "a */ b??/\n"
    onnx.save(model, tmp_path / "2-while.onnx")
    check(program, "compile", tmp_path / "2-while.onnx", "-o", tmp_path, "--emit", "bundle", "--dim", "batch=2")
    (tmp_path / "user.c").write_text('#include "m_2_while.h"\nint bytes = M_2_WHILE_A____B_____BYTES;\n')
    check("cc", "-std=c99", *STRICT, "-trigraphs", "-c", tmp_path / "user.c", "-o", tmp_path / "user.o")
    check(program, "compile", tmp_path / "2-while.onnx", "-o", tmp_path, "--emit", "obj", "--dim", "batch=2", "--name",
          "while", "--prefix", "")
    assert (tmp_path / "while_.o").exists()
    check(program, "compile", tmp_path / "2-while.onnx", "-o", tmp_path, "--emit", "obj", "--dim", "batch=2", "--name",
          "net", "--prefix", "acme_")
    assert (tmp_path / "acme_net.o").exists()


def test_macros_of_the_header_are_defined_once(program, tmp_path):
    """Whatever the inputs are called: like the macros of another input, or like one of the header's own."""
    header = (Bundle(program, tmp_path, "mlp", NATIVE).folder / "out" / "mlp.h").read_text()
    own = [name.lower() for name in re.findall(r"^#define MLP_(\w+)", header, re.M)]
    names = list(dict.fromkeys(["mask", "mask_offset", "MASK", "mask_2", "x_elements_2", *own, *(f"{name}_bytes" for name in own)]))
    assert {"status", "x_offset", "x_bytes_bytes"} < set(names)
    values = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1]) for name in [*names, "out"]]
    node = onnx.helper.make_node("Sum", names, ["out"])
    graph = onnx.helper.make_graph([node], "g", values[:-1], values[-1:])
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)]), tmp_path / "odd.onnx")
    check(program, "compile", tmp_path / "odd.onnx", "-o", tmp_path, "--emit", "bundle")
    macros = re.findall(r"^#define (\w+)", (tmp_path / "odd.h").read_text(), re.M)
    assert sorted(set(macros)) == sorted(macros)
    (tmp_path / "user.c").write_text('#include "odd.h"\nint offset = ODD_MASK_OFFSET, status = ODD_STATUS(17);\n')
    for compiler in (["cc", "-std=c99"], ["c++", "-std=c++20", "-x", "c++"]):
        check(*compiler, *STRICT, "-c", tmp_path / "user.c", "-o", tmp_path / "user.o")
