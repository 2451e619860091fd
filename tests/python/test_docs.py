"""The documentation says what the program does: examples are run, tables are compared, links lead somewhere."""
import json
import re
import runpy
import shlex
import shutil
import sys

import pytest

from conftest import ROOT

sys.path.insert(0, str(ROOT / "tools"))
import docs_site  # noqa: E402

DOCUMENTS = sorted(p.relative_to(ROOT).as_posix() for p in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])


def text_of(document):
    return (ROOT / document).read_text(encoding="utf-8")


def examples(text):
    """The commands of all console blocks with the output that the document shows."""
    for block in re.findall(r"^```console\n(.*?)^```$", text, re.M | re.S):
        for example in re.split(r"^\$ ", block, flags=re.M)[1:]:
            command, _, output = example.partition("\n")
            yield command, output


def matches(shown, output):
    """Whether they are the same; a line of `...` stands for any number of lines."""
    lines = (r"(?:.*\n)*?" if line == "...\n" else re.escape(line) for line in shown.splitlines(keepends=True))
    return re.fullmatch("".join(lines), output) is not None


def test_a_wildcard_stands_for_lines():
    assert matches("a\n...\nd\n", "a\nb\nc\nd\n") and matches("a\n...\n", "a\n")
    assert not matches("a\n...\nd\n", "a\nb\n") and not matches("a.\n", "ab\n") and not matches("a\n", "a\nb\n")


@pytest.mark.parametrize("document", [d for d in DOCUMENTS if "```console" in text_of(d)])
def test_examples(document, aglow, tmp_path):
    folder = tmp_path / "tour"
    shutil.copytree(ROOT / "docs" / "tour", folder)
    shutil.copytree(ROOT / "examples" / "digits", folder / "digits")
    wrong = []
    for command, shown in examples(text_of(document)):
        name, *arguments = shlex.split(command)
        assert name == "aglow", f"{document}: only aglow can be run in a console block, not '{name}'"
        outcome = aglow(*arguments, cwd=folder)
        output = outcome.out + outcome.err
        if not matches(shown, output) or (outcome.code != 0) != ("error[" in shown):
            wrong.append(f"$ {command}\n--- {document} shows\n{shown}--- exit code {outcome.code}\n{output}")
    assert not wrong, "\n\n".join(wrong)


def test_the_tours_files_are_what_their_script_makes():
    import numpy
    import onnx
    made = runpy.run_path(str(ROOT / "docs" / "tour" / "make_model.py"))
    assert onnx.load(ROOT / "docs" / "tour" / "conv.onnx") == made["model"]()
    assert numpy.array_equal(numpy.load(ROOT / "docs" / "tour" / "x.npy"), made["image"]())
    assert onnx.load(ROOT / "docs" / "tour" / "clusters.onnx") == made["classifier"]()
    for name, seed in (("train", 1), ("test", 2)):
        arrays = numpy.load(ROOT / "docs" / "tour" / f"{name}.npz")
        wanted = made["clusters"](seed)
        assert set(arrays) == set(wanted)
        for key, array in wanted.items():
            numpy.testing.assert_array_equal(arrays[key], array)


@pytest.mark.parametrize("document", DOCUMENTS)
def test_links(document):
    prose = re.sub(r"^```.*?^```$", "", text_of(document), flags=re.M | re.S)
    targets = (target.partition("#")[0] for target in re.findall(r"\]\(([^)\s]+)\)", prose) if "://" not in target)
    broken = [target for target in targets if target and not ((ROOT / document).parent / target).exists()]
    assert not broken, f"{document} links to files that do not exist: {broken}"


def test_the_site_has_all_its_pages(tmp_path):
    """What ./dev docs gathers, also from folders of sources: links lead somewhere, and what is listed is there."""
    assert docs_site.gather(tmp_path) == []
    listed = re.findall(r": (\S+\.md)$", text_of("mkdocs.yml"), re.M)
    assert len(listed) > 20 and all((tmp_path / page).is_file() for page in listed)
    assert {page for page in listed if page.startswith("docs/")} >= \
        {f"docs/{p.name}" for p in (ROOT / "docs").glob("*.md") if p.name != "README.md"}, "mkdocs.yml lacks a page"


def test_named_tests_are_there():
    documents = [ROOT / document for document in ["CONTRIBUTING.md", *DOCUMENTS]]
    for document in [*documents, *(ROOT / "src").rglob("README.md")]:
        for name in re.findall(r"`(?:tests/unit/)?([\w*<>]+_test\.cpp)`", document.read_text(encoding="utf-8")):
            pattern = re.sub("<.*?>", "*", name)
            assert list((ROOT / "tests" / "unit").glob(pattern)), f"{document}: there is no test {name}"


def test_errors(aglow):
    if not (ROOT / "docs/errors.md").exists():
        pytest.fail("docs/errors.md does not exist")
    rows = []
    for line in aglow("explain").out.splitlines():
        code, title = line.split(maxsplit=1)
        head, explanation = aglow("explain", code).out.strip().split("\n\n", 1)
        exit_code = re.fullmatch(rf"{code}: {re.escape(title)} \(exit code (\d+)\)", head).group(1)
        rows.append("| `{}` | {} | {} | {} |".format(code, exit_code, title, explanation.replace("|", "\\|")))
    shown = [line for line in text_of("docs/errors.md").splitlines() if line.startswith("| `E")]
    assert shown == rows, "the table of docs/errors.md has to be:\n" + "\n".join(rows)


def test_operators(program):
    generated = program.parent / "generated" / "ops.md"
    if not generated.is_file():
        pytest.skip(f"{generated} does not exist: the program under test lies outside of its build folder")
    assert text_of("docs/ops.md") == generated.read_text(encoding="utf-8"), \
        "the records have changed: cp build/generated/ops.md docs/ops.md"


def test_caffe2_operators(aglow):
    names = json.loads(aglow("ops", "--json").out)["caffe2_operators"]
    lists = "\n".join(line for line in text_of("docs/caffe2.md").splitlines() if line.startswith("| "))
    shown = set(re.findall(r"`(\w+)`", lists))
    assert shown == set(names), f"docs/caffe2.md lacks {set(names) - shown} and has too much: {shown - set(names)}"


def test_options(aglow):
    """docs/command-line.md names every command and option, under the command or among the common ones."""
    sections = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", text_of("docs/command-line.md"), re.M | re.S))
    common = next(section for title, section in sections.items() if title.startswith("Options of "))
    listed = aglow("--help").out.partition("Subcommands:")[2].partition("Examples:")[0]
    commands = re.findall(r"^  ([a-z-]+) ", listed, re.M)
    assert len(commands) >= 15
    missing = []
    for command in commands:
        own = sections[f"`aglow {command}`"]
        options = re.findall(r"^  (?:-\w,)?(--[a-z-]+)", aglow(command, "--help").out, re.M)
        missing += [f"{command} {o}" for o in options if o != "--help" and f"`{o}" not in own and f"`{o}" not in common]
    assert not missing, f"docs/command-line.md does not describe: {missing}"


def test_passes(aglow, tmp_path):
    """docs/command-line.md has the phases and passes in the order in which they run."""
    model = ROOT / "docs" / "tour" / "conv.onnx"
    (tmp_path / "data").mkdir()
    shutil.copy(ROOT / "docs" / "tour" / "x.npy", tmp_path / "data")
    profile = tmp_path / "profile.json"
    assert aglow("profile", model, "--data", tmp_path / "data", "-o", profile).code == 0
    timing = aglow("compile", model, "--dim", "batch=1", "--lanes", "8", "--fuse", "--timing", "--recompute", "1G", "--precision", "int8",
                   "--profile", profile).err.splitlines()[1:]
    ran = list(dict.fromkeys(line.split()[0] for line in timing if not line.startswith(" ")))
    passes = {phase: [line.split()[1] for line in timing if line.startswith(phase + " ")] for phase in ran}
    rows = re.findall(r"^\| `([a-z-]+)` \| [a-z]+ \| (.*?) \| .* \|$", text_of("docs/command-line.md"), re.M)
    shown = {phase: re.findall(r"`(.+?)`", names) for phase, names in rows}
    assert shown.pop("import") == []
    # Phases for devices with memory of their own.
    timing = aglow("compile", model, "--dim", "batch=1", "--timing", "--backend", "interpreter", "--device-memory", "1G").err.splitlines()[1:]
    for phase in ["pieces", "transfers"]:
        assert shown.pop(phase) == [line.split()[1] for line in timing if line.startswith(phase + " ")]
    assert shown == passes and list(shown) == ran
