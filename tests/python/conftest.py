"""Fixtures of the Python tests: the program under test (AGLOW_BIN, by default build/aglow) and a way to run it."""
import os
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Tests generate their code themselves, unless they name a cache.
os.environ["AGLOW_CACHE_DIR"] = os.environ["AGLOW_CONFIG"] = "off"
PROGRAM = pathlib.Path(os.environ.get("AGLOW_BIN", ROOT / "build" / "aglow")).resolve()
# The Python module lies beside the program.
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tools"), str(PROGRAM.parent / "python")]

from harness import process  # noqa: E402


# Under the sanitizers neighbours take the same ways through the program, and a plain run compares the results of all: so
# they see every eighth case of the tables of operators, and every third of other tests with several, beginning with
# another one each time: both backends, which take turns, are among them. What bad inputs do they see whole. They do not
# see what asks for accuracy or time, which takes long and touches no memory that others do not, nor what looks at the
# libraries of the program that is handed out, nor the examples of the documents.
TABLES = ("test_operators", "test_elementwise", "test_contrib_operators", "test_caffe2_operators")
ANSWERS = ("test_integer_bits", "test_record_promises", "test_many_pieces", "test_types", "test_docs", "test_docs_commands",
           "test_the_digits_stay_what_they_are", "test_layers_may_stay_floats", "test_progress_is_for_terminals",
           "test_layers_with_too_much_noise_stay_in_floats", "test_a_profile_is_the_same_on_any_number_of_threads",
           "test_a_report_ranks_values_and_layers", "test_a_report_finds_what_to_keep", "test_nothing_is_lost",
           "test_a_training_that_is_killed_again_and_again_ends_with_the_same_weights", "test_the_image_has_every_library")


def seen_by_sanitizers(items):
    """Those of a list of tests that a sanitized program runs."""
    tables = [item for item in items if item.path.stem in TABLES]
    seen = set(tables[::8])
    functions = {}
    for item in items:
        if item.path.stem not in TABLES and not {item.path.stem, item.originalname}.intersection(ANSWERS):
            functions.setdefault((item.path, item.originalname), []).append(item)
    for number, ((path, _), cases) in enumerate(functions.items()):
        few = len(cases) == 1 or path.stem.startswith("test_bad_")
        # Of two cases those of another number would be none.
        seen.update(cases if few else cases[number % min(len(cases), 3)::3])
    return [item for item in items if item in seen]


def pytest_collection_modifyitems(config, items):
    if not PROGRAM.is_file() or not process.is_sanitized(str(PROGRAM)):
        return
    seen = seen_by_sanitizers(items)
    config.hook.pytest_deselected(items=[item for item in items if item not in seen])
    items[:] = seen


@pytest.fixture(scope="session")
def root():
    """The checkout."""
    return ROOT


@pytest.fixture(scope="session")
def program():
    """The path of the program under test."""
    if not PROGRAM.is_file():
        pytest.fail(f"{PROGRAM} does not exist: run ./dev build, or set AGLOW_BIN")
    return PROGRAM


@pytest.fixture(scope="session")
def sanitized(program):
    return process.is_sanitized(str(program))


@pytest.fixture
def aglow(program, tmp_path):
    """aglow(*arguments, timeout=..., memory_mb=...): runs the program in an empty folder; see harness.process."""
    folder = tmp_path / "cwd"
    folder.mkdir()

    def call(*arguments, **limits):
        limits.setdefault("cwd", folder)
        return process.run([program, *arguments], **limits)

    return call


@pytest.fixture(params=["interpreter", "cpu"])
def backend(request, monkeypatch):
    """What the program runs models on; a test that uses it is run on each."""
    monkeypatch.setenv("AGLOW_BACKEND", request.param)
    return request.param


@pytest.fixture
def refusal(aglow, tmp_path, sanitized):
    """A check that the program refuses bad models; see bad_models.Refusal."""
    from bad_models import Refusal
    return Refusal(aglow, tmp_path, sanitized)
