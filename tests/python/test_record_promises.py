"""A record that promises a rule or a kernel which nobody wrote does not link, and the linker names the function. Code takes
operators by their records and never asks for a name."""
import re
import shutil
import subprocess

import pytest

CASES = [  # table that opgen prints, source that reads it, namespace of the functions it names
    ("lower/lower_table.inc", "src/lower/lower.cpp", "lowering", "Softmax"),
    ("grad/grad_table.inc", "src/grad/differentiate.cpp", "grad", "Conv"),
    ("reference/reference_table.inc", "src/reference/reference.cpp", "reference", "MatMul"),
    ("backends/kernel_table.inc", "src/backends/cpu/kernels/generic_rows.cpp", "cpu::generic", "TopK"),
]


@pytest.mark.parametrize("table, source, namespace, op", CASES)
def test_missing_function_is_a_link_error(program, sanitized, root, tmp_path, table, source, namespace, op):
    build = program.parent
    compiler = shutil.which("clang++-19") or shutil.which("c++")
    library = build / "libaglow.a"
    if compiler is None or not library.exists():
        pytest.skip("needs the compiler and the library of a build")
    flags = ["-std=c++20", "-O0", "-fPIC"]
    if sanitized:
        flags.append("-fsanitize=address,undefined")
    includes = [f"-I{tmp_path}", f"-I{root}/src", f"-I{build}/generated"]

    changed = tmp_path / table
    changed.parent.mkdir()
    # What opgen prints when a record promises a function of another name than the one that exists.
    rows = (build / "generated" / table).read_text()
    promised = re.sub(rf"AGLOW_ROW\({op}, \w+\)", f"AGLOW_ROW({op}, promisedButMissing)", rows)
    assert promised != rows
    changed.write_text(promised)
    (tmp_path / "main.cpp").write_text("int main() { return 0; }\n")

    def link(with_include):
        objects = []
        for file in [root / source, tmp_path / "main.cpp"]:
            target = tmp_path / (file.stem + ".o")
            subprocess.run([compiler, *flags, *(includes if with_include else includes[1:]), "-c", file, "-o", target],
                           check=True)
            objects.append(target)
        return subprocess.run([compiler, *flags, *objects, library, "-lfmt", "-lpthread", "-o", tmp_path / "out"],
                              capture_output=True, text=True)

    honest = link(with_include=False)
    assert honest.returncode == 0, honest.stderr
    gap = link(with_include=True)
    assert gap.returncode != 0
    assert f"aglow::{namespace}::promisedButMissing" in gap.stderr


def test_code_asks_for_no_operator_by_name(root):
    """Import and dynamic read names of ONNX's operators from files; everything after them has records."""
    listed = (root / "docs" / "ops.md").read_text(encoding="utf-8")
    names = "|".join(re.findall(r"^\| ([A-Z]\w+) \|", listed, re.M))
    assert names.count("|") > 100
    asks = re.compile(rf'(?:[!=]= *|findOp\()"(?:{names})"')
    found = [f"{path.relative_to(root)}:{number}: {line.strip()}"
             for path in sorted((root / "src").rglob("*.[ch]*")) if path.relative_to(root).parts[1] not in ("import", "dynamic")
             for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1) if asks.search(line)]
    assert found == []
