"""The package is typed: mypy in strict mode has nothing to say, and everything public has a description."""
import inspect
import pathlib
import subprocess
import sys

import pytest

from conftest import PROGRAM, ROOT

aglow = pytest.importorskip("aglow", reason="the module is not built: ./dev test builds it")

USER = '''
import numpy as np
import aglow

graph = aglow.Graph()
main = graph.function("main")
x: aglow.Value = main.input("x", "f32", (1, 3))
main.output("y", main.reduce(x + 1.0, kind="max", axes=[1]))
model: aglow.Model = aglow.compile(graph, threads=1)
arena: int = model.memory().arena_bytes
'''


def mypy(*arguments):
    return subprocess.run([sys.executable, "-m", "mypy", "--config-file", ROOT / "pyproject.toml", *map(str, arguments)],
                          capture_output=True, text=True, cwd=PROGRAM.parent / "python")


def test_mypy_is_content(tmp_path):
    pytest.importorskip("mypy")
    found = mypy("--cache-dir", tmp_path, "-p", "aglow")
    assert found.returncode == 0, found.stdout + found.stderr


def test_mypy_sees_what_users_do_wrong(tmp_path):
    pytest.importorskip("mypy")
    (tmp_path / "good.py").write_text(USER)
    (tmp_path / "bad.py").write_text(USER.replace('kind="max"', 'kind="most"').replace("threads=1", 'threads="one"'))
    for name, faults in (("good.py", 0), ("bad.py", 2)):
        found = mypy("--cache-dir", tmp_path / "cache", tmp_path / name)
        assert found.stdout.count(": error:") == faults, found.stdout


def test_everything_public_is_described():
    missing = []
    for name in aglow.__all__:
        thing = getattr(aglow, name)
        if not (inspect.isclass(thing) or inspect.isfunction(thing)):
            continue
        if not inspect.getdoc(thing):
            missing.append(name)
        if inspect.isclass(thing) and thing.__module__.startswith("aglow"):
            missing += [f"{name}.{member}" for member, value in vars(thing).items() if not member.startswith("_") and
                        (inspect.isfunction(value) or isinstance(value, (property, classmethod))) and
                        not inspect.getdoc(getattr(thing, member))]
    assert missing == []


def test_the_marker_of_types_is_there():
    assert (pathlib.Path(aglow.__file__).parent / "py.typed").exists()
