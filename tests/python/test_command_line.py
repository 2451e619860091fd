"""The command line as people and scripts meet it: words that are wrong, defaults, pipes, terminals, JSON."""
import io
import json
import os
import pty
import re
import shutil
import subprocess

import numpy as np
import pytest
from module_models import affine, heavy, model, node, save, two_outputs, unary, value
from onnx import TensorProto

from conftest import ROOT

DIGITS = ROOT / "examples" / "digits" / "digits.onnx"


@pytest.fixture
def rows(tmp_path):
    """A model with an open size, and a value for its input."""
    np.save(tmp_path / "x.npy", np.ones((4, 3), np.float32))
    return save(affine(), tmp_path / "model.onnx"), tmp_path / "x.npy"


def piped(program, *arguments, data=b"", **options):
    return subprocess.run([program, *map(str, arguments)], input=data, capture_output=True, timeout=60, check=False,
                          **options)


# ---------------------------------------------------------------- wrong words

@pytest.mark.parametrize("word, hint", [("insect", "did you mean 'inspect'?"), ("frobnicate", "aglow --help lists them")])
def test_an_unknown_command_is_named(aglow, word, hint):
    outcome = aglow(word, "model.onnx")
    assert outcome.code == 1 and f"there is no command '{word}'" in outcome.err and hint in outcome.err


def test_an_unknown_option_has_a_neighbour(aglow):
    outcome = aglow("bench", DIGITS, "--thread", "2")
    assert outcome.code == 1 and "did you mean '--threads'?" in outcome.err, outcome.err


def test_an_unknown_size_is_an_error_that_lists_the_names(aglow, rows):
    for command in ("run", "bench", "compile", "inspect", "verify"):
        outcome = aglow(command, rows[0], "--dim", "batch=4")
        assert outcome.code == 1 and "the model has no dimension 'batch'" in outcome.err, outcome.err
        assert "its inputs leave open: rows" in outcome.err
    assert "did you mean 'rows'?" in aglow("compile", rows[0], "--dim", "row=4").err
    assert "have no sizes with names" in aglow("compile", DIGITS, "--dim", "batch=4").err


def test_what_is_given_twice_is_an_error(aglow, rows):
    path, x = rows
    outcome = aglow("run", path, "--input", f"x={x}", "--input", f"x={x}")
    assert outcome.code == 1 and "--input: 'x' is given twice" in outcome.err, outcome.err
    assert "--dim: 'rows' is given twice" in aglow("compile", path, "--dim", "rows=1", "--dim", "rows=2").err
    assert "--shape: 'x' is given twice" in aglow("compile", path, "--shape", "x=1x3", "--shape", "x=2x3").err


# ---------------------------------------------------------------- open sizes

@pytest.mark.parametrize("words", [("bench", "--runs", "1"), ("inspect", "--memory"), ("inspect", "--dot", "-")])
def test_open_sizes_are_one(aglow, rows, words):
    outcome = aglow(words[0], rows[0], *words[1:])
    assert outcome.code == 0, outcome.err
    assert outcome.err == "note: open sizes are taken as 1: rows; --dim and --shape give others\n"
    assert aglow(words[0], rows[0], *words[1:], "--dim", "rows=2").err == ""


def test_sizes_without_names_are_one(aglow, tmp_path):
    path = save(unary("Relu", shape=[None, 3, "n"]), tmp_path / "m.onnx")
    outcome = aglow("inspect", path, "--memory", "--json")
    assert outcome.code == 0 and "x[0], n" in outcome.err, outcome.err
    assert json.loads(outcome.out)["memory"]["input_bytes"] == 12


def test_inputs_decide_open_sizes(aglow, tmp_path):
    path = save(two_outputs(), tmp_path / "m.onnx")
    np.save(tmp_path / "a.npy", np.ones(5, np.float32))
    outcome = aglow("bench", path, "--input", f"a={tmp_path / 'a.npy'}", "--runs", "1")
    assert outcome.code == 0 and outcome.err == "", outcome.err


# ---------------------------------------------------------------- support

def test_support_lists_nodes_and_reasons(aglow, tmp_path):
    proto = model([node("Relu", "x", "a"), node("Strange", "a", "b"), node("Sampling", "b", "y")],
                  [value("x", [2])], [value("y", [2])])
    proto.graph.node[2].domain = "com.microsoft"
    path = save(proto, tmp_path / "m.onnx")
    outcome = aglow("inspect", path, "--support")
    assert outcome.code == 3, outcome.err
    assert re.search(r"^Relu .* yes$", outcome.out, re.M) and re.search(r"^Strange .* NO$", outcome.out, re.M)
    reasons = outcome.out.partition("not supported:\n")[2].splitlines()
    assert len(reasons) == 2 and "Strange_node" in reasons[0] and "write the loop around it" in reasons[1], outcome.out
    document = json.loads(aglow("inspect", path, "--support", "--json").out)
    assert [row["code"] for row in document["unsupported"]] == ["E301", "E301"]
    assert aglow("inspect", DIGITS, "--support").code == 0


def test_support_depends_on_no_size(aglow, tmp_path):
    """Two elements cannot become one: the open size is another than what is tried."""
    proto = model([node("Reshape", "x shape", "y")], [value("x", ["n"])], [value("y", [2])],
                  {"shape": np.array([2], np.int64)})
    outcome = aglow("inspect", save(proto, tmp_path / "m.onnx"), "--support")
    assert outcome.code == 0 and outcome.err == "" and "Reshape" in outcome.out, outcome.err
    assert aglow("inspect", tmp_path / "m.onnx", "--support", "--dim", "n=3").code == 2


def test_what_runs_in_parts_is_supported(aglow, tmp_path):
    proto = model([node("NonZero", "x", "y")], [value("x", ["n"])], [value("y", [1, "m"], TensorProto.INT64)])
    assert aglow("inspect", save(proto, tmp_path / "m.onnx"), "--support").code == 0
    proto = model([node("StringSplit", "x", "y n", delimiter=" ")], [value("x", ["n"], TensorProto.STRING)],
                  [value("y", ["n", "m"], TensorProto.STRING), value("n", ["n"], TensorProto.INT64)])
    outcome = aglow("inspect", save(proto, tmp_path / "s.onnx"), "--support")
    assert outcome.code == 0, outcome.out + outcome.err


# ---------------------------------------------------------------- pipes and terminals

def test_models_and_inputs_from_stdin(program, rows):
    path, x = rows
    wanted = piped(program, "run", path, "--input", f"x={x}").stdout
    assert piped(program, "run", "-", "--input", f"x={x}", data=path.read_bytes()).stdout == wanted != b""
    assert piped(program, "run", path, "--input", "x=-", data=x.read_bytes()).stdout == wanted
    both = piped(program, "run", "-", "--input", "x=-", data=path.read_bytes())
    assert both.returncode == 1 and b"can be read only once" in both.stderr


def test_stdin_has_a_name(program, rows):
    data = rows[0].read_bytes()
    assert piped(program, "inspect", "-", data=data).stdout.startswith(b"<stdin>\n")
    verified = piped(program, "verify", "-", "--dim", "rows=1", "--backend", "cpu,interpreter", "--json", data=data)
    assert json.loads(verified.stdout)["model"] == "<stdin>"
    broken = piped(program, "inspect", "-", data=data[:40])
    assert broken.returncode == 2 and broken.stderr.startswith(b"error[E201] <stdin>: "), broken.stderr


def test_text_forms_from_stdin(program):
    text = (ROOT / "tests" / "golden" / "cli" / "Inputs" / "relu.graph").read_bytes()
    done = piped(program, "compile", "-", "--emit", "ir", data=text)
    assert done.returncode == 0 and b"program" in done.stdout, done.stderr
    again = piped(program, "compile", "-", "--emit", "ir", data=done.stdout)
    assert again.returncode == 0 and again.stdout == done.stdout, again.stderr


def test_outputs_to_stdout(program, rows, tmp_path):
    path, x = rows
    done = piped(program, "run", path, "--input", f"x={x}", "-o", "-")
    y = np.load(io.BytesIO(done.stdout))
    assert y.shape == (4, 2)
    pair = save(two_outputs(), tmp_path / "pair.onnx")
    np.save(tmp_path / "a.npy", np.arange(3, dtype=np.float32))
    words = ["run", pair, "--input", f"a={tmp_path / 'a.npy'}", "--input", f"b={tmp_path / 'a.npy'}"]
    arrays = np.load(io.BytesIO(piped(program, *words, "-o", "-").stdout))
    assert sorted(arrays) == ["difference", "sum"]
    np.testing.assert_array_equal(arrays["sum"], [0, 2, 4])
    assert piped(program, *words, "-o", tmp_path / "all.npz").returncode == 0
    np.testing.assert_array_equal(np.load(tmp_path / "all.npz")["difference"], [0, 0, 0])
    assert b"digraph" in piped(program, "inspect", DIGITS, "--dot", "-").stdout


def test_a_reader_that_has_enough(program):
    done = subprocess.run(["bash", "-c", f"set -o pipefail; {program} ops --json | head -1"], capture_output=True,
                          timeout=60, check=False)
    assert done.stdout == b"{\n" and done.stderr == b"" and done.returncode in (0, 141)


def on_terminal(command):
    """What a program says on a terminal: its stderr, while its stdout is a pipe."""
    controller, terminal = pty.openpty()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=terminal, env={**os.environ, "TERM": "xterm"}) as child:
        os.close(terminal)
        said = b""
        while True:
            try:
                some = os.read(controller, 65536)
            except OSError:
                break
            if not some:
                break
            said += some
        out = child.stdout.read()
    os.close(controller)
    return child.returncode, out, said.decode()


def test_progress_is_for_terminals(program, tmp_path):
    path = save(heavy(size=256, count=60), tmp_path / "m.onnx")
    (tmp_path / "data").mkdir()
    for i in range(12):
        np.save(tmp_path / "data" / f"{i}.npy", np.zeros((256, 256), np.float32))
    words = ["profile", str(path), "--data", str(tmp_path / "data"), "-o", str(tmp_path / "p.json"), "--reach", "none",
             "--backend", "interpreter"]
    code, _, said = on_terminal([program, *words])
    assert code == 0
    assert re.search(r"running samples, \d+ of 12, \d+ s, \d+ s left", said), said
    assert said.endswith("\x1b[K") and "\n" not in said
    assert piped(program, *words).stderr == b""


# ---------------------------------------------------------------- what programs read

def test_types_are_objects(aglow, rows):
    document = json.loads(aglow("inspect", rows[0], "--json").out)
    assert document["inputs"][0] == {"name": "x", "type": {"kind": "tensor", "elem": "f32", "shape": ["rows", 3],
                                                           "text": "f32[rows,3]"}}


def test_memory_has_its_buffers(aglow):
    memory = json.loads(aglow("inspect", DIGITS, "--memory", "--json").out)["memory"]
    assert memory["buffers"]
    for buffer in memory["buffers"]:
        assert buffer["from"] <= buffer["to"] and buffer["offset"] + buffer["bytes"] <= memory["arena_bytes"]
        assert buffer["type"]["kind"] == "tensor"


def test_every_command_speaks_json(program, aglow, rows, tmp_path):
    """The options of serve are those of another program, which its own test asks. Values are checked elsewhere."""
    np.save(tmp_path / "data.npy", np.zeros((2, 3), np.float32))
    (tmp_path / "data").mkdir()
    np.save(tmp_path / "data" / "0.npy", np.ones((2, 3), np.float32))
    words = {"run": [rows[0], "--input", f"x={rows[1]}"], "compile": [DIGITS, "-o", tmp_path / "out", "--emit", "ir"],
             "bench": [DIGITS, "--runs", "1"], "verify": [rows[0], "--dim", "rows=1", "--backend", "cpu,interpreter"],
             "inspect": [DIGITS], "doctor": ["--quick"], "targets": [], "cache": [], "config": [], "ops": [],
             "explain": [], "man": [], "completion": ["fish"], "profile": [rows[0], "--data", tmp_path / "data", "-o", tmp_path / "p.json"]}
    commands = json.loads(aglow("man", "--json").out)["commands"]
    takes = {c["name"] for c in commands if any("--json" in o["names"] for o in c["options"])}
    assert {c["name"] for c in commands} - takes == {"serve"}
    assert set(words) <= takes
    for command, arguments in words.items():
        outcome = aglow(command, *arguments, "--json")
        assert outcome.code == 0 and isinstance(json.loads(outcome.out), dict), (command, outcome.err)


def test_outputs_as_json(aglow, tmp_path):
    path = save(unary("Log"), tmp_path / "m.onnx")
    np.save(tmp_path / "x.npy", np.array([1, 0, -1], np.float32))
    document = json.loads(aglow("run", path, "--input", tmp_path / "x.npy", "--json").out)
    assert document["outputs"] == [{"name": "y", "type": {"kind": "tensor", "elem": "f32", "shape": [3], "text": "f32[3]"},
                                    "elements": [0.0, "-Infinity", "NaN"]}]


def test_warmup(aglow):
    assert aglow("bench", DIGITS, "--runs", "2", "--warmup", "0").code == 0
    assert aglow("bench", DIGITS, "--runs", "2", "--warmup", "-1").code == 1


def test_sizes_of_files(aglow, tmp_path):
    out = tmp_path / "out"
    report = json.loads(aglow("compile", DIGITS, "-o", out, "--emit", "bundle", "--json").out)
    assert {os.path.basename(f["path"]): f["bytes"] for f in report["files"]} == \
        {p.name: p.stat().st_size for p in out.iterdir()}
    table = aglow("compile", DIGITS, "-o", out, "--emit", "bundle", "--sizes").out
    assert f"{report['bytes']} bytes  in all" in table and "digits.weights.bin" in table
    small = aglow("compile", DIGITS, "-o", tmp_path / "none", "--emit", "bundle", "--max-size", "1K")
    assert small.code == 4 and "--max-size allows 1024" in small.err and not (tmp_path / "none").exists()


# ---------------------------------------------------------------- defaults

def test_config_file(aglow, tmp_path):
    config = tmp_path / "config"
    config.write_text("# mine\nthreads = 1\nseconds = 7   # of bench\n\n[bench]\nruns = 2\nbackend = \"interpreter\"\n",
                      encoding="utf-8")
    env = {"AGLOW_CONFIG": str(config)}
    report = json.loads(aglow("bench", DIGITS, "--json", env=env).out)
    assert (report["runs"], report["threads"], report["backend"]) == (2, 1, "interpreter")
    assert json.loads(aglow("bench", DIGITS, "--json", "--runs", "3", env=env).out)["runs"] == 3
    assert json.loads(aglow("bench", DIGITS, "--json", env={**env, "AGLOW_BACKEND": "cpu"}).out)["backend"] == "cpu"
    listed = json.loads(aglow("config", "--json", env=env).out)
    assert [(o["command"], o["option"], o["value"], o["line"]) for o in listed["options"]] == \
        [("", "threads", "1", 2), ("", "seconds", "7", 3), ("bench", "runs", "2", 6), ("bench", "backend", "interpreter", 7)]
    assert "threads" in aglow("config", env=env).out


@pytest.mark.parametrize("text, fault", [("thread = 1", "config:1: no command has an option 'thread'"),
                                         ("[bnech]\nruns = 1", "config:2: there is no command 'bnech'"),
                                         ("runs 3", "config:1: expected `option = value`"),
                                         ("threads = many", "config:1: ")])
def test_faults_of_a_config_file_have_their_line(aglow, tmp_path, text, fault):
    (tmp_path / "config").write_text(text, encoding="utf-8")
    outcome = aglow("bench", DIGITS, env={"AGLOW_CONFIG": str(tmp_path / "config")})
    assert outcome.code == 1 and fault in outcome.err, outcome.err


def test_all_variables_are_listed(aglow):
    listed = {v["name"] for v in json.loads(aglow("config", "--json").out)["variables"]}
    sources = [p.read_text(encoding="utf-8") for folder in ("src", "python") for p in (ROOT / folder).rglob("*")
               if p.suffix in (".cpp", ".h", ".py")]
    asked = {name for text in sources for name in re.findall(r'"(AGLOW_[A-Z_]+)"', text)}
    assert asked <= listed, asked - listed
    documented = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
    assert all(f"| `{name}` |" in documented for name in listed)


# ---------------------------------------------------------------- help, pages, completions

def test_version(aglow):
    first = r"aglow \d+\.\d+\.\d+ \((commit [0-9a-f]{8}, )?(LLVM 19[.\d]*, targets x86_64 aarch64 riscv64|without LLVM)\)\n"
    assert re.fullmatch(first, aglow("--version").out)


def test_help_begins_with_what_is_used_most(aglow):
    text = aglow("run", "--help").out
    first = text.partition("\nOptions:\n")[2].partition("\n\n")[0]
    for option in ("--input", "--dim", "--threads", "--output-dir", "--json"):
        assert option in first, text
    for group in ("Model:", "Generated code:", "Phases and passes:", "Images and sounds as inputs:"):
        assert f"\n{group}\n" in text
    assert "--disable" not in first


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completions_are_scripts(aglow, tmp_path, shell):
    outcome = aglow("completion", shell)
    assert outcome.code == 0 and "inspect" in outcome.out and "output-dir" in outcome.out
    (tmp_path / "script").write_text(outcome.out, encoding="utf-8")
    if shutil.which(shell):
        subprocess.run([shell, "-n", tmp_path / "script"], check=True, timeout=60)


def test_bash_completes(program, aglow, tmp_path):
    (tmp_path / "script").write_text(aglow("completion", "bash").out, encoding="utf-8")

    def complete(*words):
        line = f"source {tmp_path / 'script'}; COMP_WORDS=({' '.join(words)}); COMP_CWORD={len(words) - 1}; _aglow; " \
               "printf '%s\\n' \"${COMPREPLY[@]}\""
        return subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=True, timeout=60).stdout.split()

    assert complete("aglow", "ins") == ["inspect"]
    assert complete("aglow", "bench", "--war") == ["--warmup"]
    assert complete("aglow", "run", "--precision", "bf") == ["bf16"]
    assert complete("aglow", "bench", "mod") == []


def test_pages_of_all_commands(aglow, tmp_path):
    commands = [c["name"] for c in json.loads(aglow("man", "--json").out)["commands"]]
    assert aglow("man", "-o", tmp_path / "man1").code == 0
    assert sorted(p.name for p in (tmp_path / "man1").iterdir()) == sorted(
        ["aglow.1", *(f"aglow-{name}.1" for name in commands)])
    page = (tmp_path / "man1" / "aglow-run.1").read_text(encoding="utf-8")
    assert page == aglow("man", "run").out and page.startswith('.TH "AGLOW-RUN" 1')
    assert r"\fB\-\-output\-dir\fR" in page and ".SH OPTIONS" in page
    if shutil.which("groff"):
        done = subprocess.run(["groff", "-Kutf8", "-man", "-Tutf8", "-ww", "-z", tmp_path / "man1" / "aglow-run.1"],
                              capture_output=True, text=True, timeout=60, check=False)
        assert done.stderr == "", done.stderr


def test_doctor_and_targets(aglow):
    facts = json.loads(aglow("doctor", "--json").out)
    assert facts["backends"]["interpreter"] == "works" and facts["usable_processors"] >= 1
    assert facts["peak"]["gflops"] > 0 and facts["peak"]["gbytes_per_s"] > 0
    assert "processor " in aglow("doctor", "--quick").out and "peak" not in aglow("doctor", "--quick").out
    rows = json.loads(aglow("targets", "--json").out)["targets"]
    assert [row["target"] for row in rows] == ["x86_64-linux-gnu", "aarch64-linux-gnu", "riscv64-linux-gnu"]
    assert "this machine" in aglow("targets").out


@pytest.mark.parametrize("command", [["--version"], ["inspect", "MODEL"], ["inspect", "MODEL", "--support"], ["ops"], ["targets"],
                                     ["explain", "E102"], ["config"], ["cache"], ["run", "--help"]], ids=" ".join)
def test_what_only_looks_needs_no_code_generator(program, root, tmp_path, command):
    """LLVM takes longer to load than these take to run: a program without it beside it does them too."""
    alone = tmp_path / "alone" / "aglow"
    alone.parent.mkdir()
    shutil.copy(program, alone)
    words = [str(root / "docs" / "tour" / "conv.onnx") if word == "MODEL" else word for word in command]
    done = subprocess.run([alone, *words], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
