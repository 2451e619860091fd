"""tools/check_layers.py finds each kind of breach, and nothing in a tree that keeps the rules."""
import check_layers
import pytest


@pytest.fixture
def tree(tmp_path):
    """tree({path: text}): a checkout with these files, and a README in each folder of src/."""
    def make(files):
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        for folder in (tmp_path / "src").iterdir():
            readme = folder / "README.md"
            if not readme.exists():
                readme.write_text("# folder: `*.h`\n")
        return str(tmp_path)
    return make


def test_order_is_kept(tree):
    root = tree({"src/support/a.h": "#include <vector>\n",
                 "src/graph/b.cpp": '#include "support/a.h"\n#include "graph/c.h"\n#include <fmt/format.h>\n',
                 "src/import/d.cpp": '#include <protozero/pbf_reader.hpp>\n#include "graph/b.h"\n',
                 "src/backends/cpu/llvm/e.cpp": "#include <llvm/IR/Module.h>\n",
                 "src/dynamic/f.h": '#include "import/onnx/parts.h"\n#include "runtime/x.h"\n',
                 "src/cli/main.cpp": '#include <CLI/CLI.hpp>\n#include "runtime/x.h"\n'})
    assert check_layers.check(root) == []


@pytest.mark.parametrize("path, line, words", [
    ("src/support/a.h", '#include "tensor/type.h"', "tensor comes after support"),
    ("src/graph/a.cpp", '  #  include "inst/x.h"', "inst comes after graph"),
    ("src/optimize/a.cpp", '#include "lower/x.h"', "peers"),
    ("src/cli/a.cpp", '#include "serve/x.h"', "serve comes after cli"),
    ("src/graph/a.cpp", "#include <protozero/pbf_reader.hpp>", "belongs to import"),
    ("src/runtime/a.h", "#include <nlohmann/json.hpp>", "belongs to quant and report and cli and serve"),
    ("src/compile/a.h", "#include <CLI/CLI.hpp>", "belongs to cli"),
    ("src/runtime/a.h", '#include "import/onnx/parts.h"', "import is for dynamic"),
    ("src/compile/a.cpp", '#include "import/model_file.h"', "compile works on graphs"),
    ("src/codegen/clike/a.cpp", "#include <llvm/IR/Module.h>", "belongs to backends/cpu/llvm"),
    ("src/backends/cpu/llvm_like/a.cpp", "#include <llvm/IR/Module.h>", "belongs to backends/cpu/llvm"),
    ("src/graph/a.cpp", '#include "b.h"', "does not start with a folder"),
    ("src/odd/a.cpp", "int x;", "has no place in the order"),
    ("src/graph/utils/a.h", "int x;", "says nothing"),
    ("build/generated/graph/views.h", '#include "reference/x.h"', "reference comes after graph"),
])
def test_breach_is_named(tree, path, line, words):
    problems = check_layers.check(tree({"src/support/ok.h": "\n", path: "// first\n" + line + "\n"}))
    assert len(problems) == 1, problems
    assert words in problems[0] and problems[0].startswith(path.rsplit("/", 1)[0].split("/a")[0])


def test_circle_of_subfolders(tree):
    root = tree({"src/import/file.cpp": '#include "import/onnx/model.h"\n', "src/import/onnx/model.h": "\n"})
    assert check_layers.check(root) == []
    root = tree({"src/import/onnx/model.h": '#include "import/caffe2/net.h"\n',
                 "src/import/caffe2/net.h": '\n#include "import/file.h"\n'})
    assert check_layers.check(root) == [
        "src/import/file.cpp:1: import includes import/onnx, which leads back to import",
        "src/import/caffe2/net.h:2: import/caffe2 includes import, which leads back to import/caffe2",
        "src/import/onnx/model.h:1: import/onnx includes import/caffe2, which leads back to import/onnx"]


def test_folders_are_printed_with_their_viewers(tree):
    root = tree({"src/lower/a.h": "\n", "src/import/b.h": "\n", "src/optimize/c.h": "\n", "src/graph/d.h": "\n"})
    assert check_layers.folders(root) == [["graph"], ["import:dynamic,train,serve,python,cli,api"],
                                          ["optimize", "lower"]]


def test_sizes(tree):
    root = tree({"src/support/long.cpp": "\n" * 801, "src/support/fits.cpp": "\n" * 800,
                 "src/support/README.md": "\n" * 41, "tests/unit/support_long_test.cpp": "\n" * 900})
    problems = check_layers.check(root)
    assert [p.split(":")[0] for p in problems] == ["src/support/README.md", "src/support/long.cpp",
                                                   "tests/unit/support_long_test.cpp"]


def test_unit_tests_are_named_after_folders(tree):
    root = tree({"src/support/a.h": "\n", "tests/unit/support_a_test.cpp": "\n", "tests/unit/kernels.h": "\n",
                 "tests/unit/kernels_a_test.cpp": "\n"})
    assert check_layers.check(root) == ["tests/unit/kernels_a_test.cpp: no folder of src/ is named kernels"]


def test_readme_names_every_header(tree):
    root = tree({"src/support/README.md": "`file.h`, `size.*`, `<family>/*_desc.h`\n", "src/support/file.h": "\n",
                 "src/support/size.h": "\n", "src/support/conv/tile_desc.h": "\n", "src/support/conv/tile.h": "\n",
                 "src/support/conv/tile.cpp": "\n", "src/support/new.h": "\n"})
    assert check_layers.check(root) == ["src/support/README.md: new.h is not named",
                                        "src/support/README.md: conv/tile.h is not named"]


def test_missing_readme(tmp_path):
    (tmp_path / "src" / "graph").mkdir(parents=True)
    assert check_layers.check(str(tmp_path)) == ["src/graph: no README.md"]


def test_missing_source(tmp_path):
    assert len(check_layers.check(str(tmp_path))) == 1
