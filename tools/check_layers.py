#!/usr/bin/env python3
"""Checks the order of the folders: check_layers.py [ROOT].

A folder under src/ includes only folders before it, peers of one row leave each other alone, what belongs to files of
models is seen by those alone that meet such files, subfolders do not include each other in circles, and foreign headers
stay in the folder that wraps them. Each folder has a README of at most 40 lines that names every header, no source file
has more than 800 lines, and the name of a unit test begins with the folder that it tests.

    check_layers.py --folders    prints the folders in order, peers in one line, a folder that few may see as
                                 FOLDER:VIEWER,VIEWER: cmake/folders.cmake builds on it
"""
import fnmatch
import os
import re
import sys

# The pipeline's order; folders in one row are peers.
ORDER = [
    ["support"], ["page"], ["tensor"], ["media"], ["ops"], ["graph"], ["import"], ["rewrite"],
    ["grad", "quant", "optimize", "lower"],
    ["inst"], ["fuse"], ["memory"], ["reference"], ["codegen"], ["backends"], ["compile"], ["report"], ["runtime"], ["dynamic"],
    ["train"], ["python", "cli", "api"], ["serve"],
]
RANK = {folder: rank for rank, row in enumerate(ORDER) for folder in row}

# Folders that only some of those after them may see: what comes between works on graphs, whatever they were read from.
VIEWERS = {"import": ["dynamic", "train", "serve", "python", "cli", "api"]}

# Foreign headers (regular expression on the included path) and the folders that may see them.
FOREIGN = [
    (r"protozero/", ["import"]),
    (r"google/protobuf/|grpc|inference\.(grpc\.)?pb\.h", ["serve/grpc"]),
    (r"boost/|openssl/", ["serve/http"]),
    (r"simdjson", ["serve"]),
    (r"CLI/", ["cli"]),
    (r"nlohmann/", ["quant", "report", "cli", "serve"]),
    (r"llvm/|llvm-c/|clang/|lld/", ["backends/cpu/llvm"]),
    (r"re2/", ["dynamic/strings"]),
    (r"jpeglib|png\.h|webp/|tiffio|openjpeg", ["media"]),
    (r"CL/", ["backends/opencl"]),
    (r"cuda|nvrtc|cublas|cudnn", ["backends/cuda"]),
    (r"Python\.h|nanobind/|pybind11/", ["python"]),
]

MAX_README = 40
MAX_LINES = 800
CODE = (".cpp", ".h", ".inc", ".c", ".cc", ".hpp", ".py", ".sh", ".cmake")
VAGUE = {"utils", "util", "common", "misc", "helpers"}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^">]+)[">]')


def files_below(root, *folders):
    for folder in folders:
        for where, names, files in os.walk(os.path.join(root, folder)):
            names[:] = sorted(n for n in names if n not in ("build", "__pycache__") and not n.startswith("."))
            for name in sorted(files):
                yield os.path.join(where, name)


def include_problem(folder, inner, quoted, target):
    """Why `folder` (with `inner` the path below src/) may not include `target`, or None."""
    for pattern, homes in FOREIGN:
        if re.match(pattern, target) and not any((inner + "/").startswith(home + "/") for home in homes):
            return f"foreign header {target} belongs to {' and '.join(homes)} only"
    if not quoted:
        return None
    other = target.split("/")[0]
    if other == folder or other == "aglow":
        return None
    if other not in RANK or "/" not in target:
        return f'"{target}" does not start with a folder of src/'
    if RANK[other] == RANK[folder]:
        return f"{folder} and {other} are peers and do not include each other"
    if RANK[other] > RANK[folder]:
        return f"{other} comes after {folder}"
    if folder not in VIEWERS.get(other, [folder]):
        return f"{other} is for {', '.join(VIEWERS[other])} only: {folder} works on graphs, wherever they come from"
    return None


def check_includes(root, base):
    """Includes of the files in src/ and of the headers generated for it."""
    problems = []
    for path in files_below(root, base):
        inner = os.path.relpath(path, os.path.join(root, base)).replace(os.sep, "/")
        folder = inner.split("/")[0]
        if "/" not in inner or not path.endswith(CODE):
            continue
        if folder not in RANK:
            problems.append(f"{base}/{inner}: folder {folder} has no place in the order (tools/check_layers.py)")
            continue
        with open(path, encoding="utf-8", errors="replace") as file:
            for number, line in enumerate(file, 1):
                match = INCLUDE.match(line)
                why = match and include_problem(folder, os.path.dirname(inner), match[1] == '"', match[2])
                if why:
                    problems.append(f"{base}/{inner}:{number}: {why}")
    return problems


def included_folders(root):
    """{folder below src/: {folder it includes: "file:line" of the first such include}}, subfolders apart."""
    edges = {}
    for path in files_below(root, "src"):
        inner = os.path.relpath(path, os.path.join(root, "src")).replace(os.sep, "/")
        if not path.endswith(CODE):
            continue
        folder = os.path.dirname(inner)
        edges.setdefault(folder, {})
        with open(path, encoding="utf-8", errors="replace") as file:
            for number, line in enumerate(file, 1):
                match = INCLUDE.match(line)
                target = os.path.dirname(match[2]) if match and match[1] == '"' else folder
                if target != folder:
                    edges[folder].setdefault(target, f"src/{inner}:{number}")
    return edges


def check_circles(root):
    """One problem for each pair of folders that include each other, directly or through others."""
    edges = included_folders(root)

    def reached(start):
        found, todo = set(), [start]
        while todo:
            for target in edges.get(todo.pop(), {}):
                if target not in found:
                    found.add(target)
                    todo.append(target)
        return found

    reach = {folder: reached(folder) for folder in edges}
    return [f"{place}: {folder} includes {target}, which leads back to {folder}"
            for folder in sorted(edges) for target, place in sorted(edges[folder].items())
            if folder.split("/")[0] == target.split("/")[0] and folder in reach.get(target, ())]


def check_sizes(root):
    problems = []
    for path in files_below(root, "src", "include", "tests", "bench", "examples", "tools"):
        name, shown = os.path.basename(path), os.path.relpath(path, root)
        readme = name == "README.md" and shown.startswith("src" + os.sep)
        limit = MAX_README if readme else MAX_LINES if name.endswith(CODE) or name == "CMakeLists.txt" else None
        if limit is None:
            continue
        with open(path, "rb") as file:
            lines = file.read().count(b"\n")
        if lines > limit:
            problems.append(f"{shown}: {lines} lines, at most {limit} allowed")
    return problems


def check_folders(root):
    problems = []
    source = os.path.join(root, "src")
    if not os.path.isdir(source):
        return [f"{root}: no src folder"]
    for where, names, _ in os.walk(source):
        problems += [f"{os.path.relpath(os.path.join(where, n), root)}: a folder named {n} says nothing"
                     for n in sorted(names) if n in VAGUE]
    for folder in sorted(os.listdir(source)):
        path = os.path.join(source, folder)
        if os.path.isdir(path) and not os.path.exists(os.path.join(path, "README.md")):
            problems.append(f"src/{folder}: no README.md")
    return problems


def named_files(readme):
    """Patterns of the paths that a README names: `a.h`, `b.*`, `sub/c.h`, `<family>/*_desc.h`."""
    with open(readme, encoding="utf-8") as file:
        words = re.findall(r"`([^`]+)`", file.read())
    return [re.sub(r"<[^>]*>", "*", word) for word in words if "." in word]


def check_named(root):
    """Every header is named by the README of its folder, or of the nearest folder above that has one."""
    problems, patterns = [], {}
    source = os.path.join(root, "src")
    for path in files_below(root, "src"):
        home = os.path.dirname(path)
        while home != source and not os.path.exists(os.path.join(home, "README.md")):
            home = os.path.dirname(home)
        if not path.endswith(".h") or home == source:
            continue
        if home not in patterns:
            patterns[home] = named_files(os.path.join(home, "README.md"))
        inner = os.path.relpath(path, home).replace(os.sep, "/")
        if not any(fnmatch.fnmatchcase(inner, pattern) for pattern in patterns[home]):
            problems.append(f"{os.path.relpath(home, root)}/README.md: {inner} is not named")
    return problems


def check_test_names(root):
    """A unit test's name begins with the folder that it tests."""
    names = sorted(os.path.basename(path) for path in files_below(root, "tests/unit") if path.endswith("_test.cpp"))
    return [f"tests/unit/{name}: no folder of src/ is named {name.split('_')[0]}"
            for name in names if name.split("_")[0] not in RANK]


def check(root):
    return (check_includes(root, "src") + check_includes(root, "build/generated") + check_circles(root) +
            check_sizes(root) + check_folders(root) + check_named(root) + check_test_names(root))


def folders(root):
    """The folders that exist, in order, peers together; with their viewers, where not all may see them."""
    rows = ([":".join([folder, *([",".join(VIEWERS[folder])] if folder in VIEWERS else [])])
             for folder in row if os.path.isdir(os.path.join(root, "src", folder))] for row in ORDER)
    return [row for row in rows if row]


def main():
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    if sys.argv[1:] == ["--folders"]:
        print("\n".join(" ".join(row) for row in folders(here)))
        return 0
    root = sys.argv[1] if len(sys.argv) > 1 else here
    problems = check(root)
    for problem in problems:
        print(problem)
    print(f"layers: {len(problems)} problems" if problems else "layers: in order")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
