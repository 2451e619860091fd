"""tools/parallel_pytest.py runs every file once, and fails if one does."""
import junit_counts
import parallel_pytest
import pytest

PASSES = "def test_{}(): pass\n"
FAILS = "def test_{}(): assert False\n"
DIES = "import os\ndef test_{}(): os.kill(os.getpid(), 9)\n"


def write(folder, *texts):
    for number, text in enumerate(texts):
        (folder / f"test_{number}.py").write_text(text.format(number))


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("last, expected", [(PASSES, (0, 3, 0)), (FAILS, (1, 2, 1))])
def test_counts(tmp_path, jobs, last, expected):
    write(tmp_path, PASSES, PASSES, last)
    code = parallel_pytest.main(jobs, tmp_path / "r.xml", tmp_path)
    assert (code, *junit_counts.counts(tmp_path / "r", code)) == expected


def test_a_process_that_dies(tmp_path):
    write(tmp_path, PASSES, DIES)
    code = parallel_pytest.main(2, tmp_path / "r.xml", tmp_path)
    assert code != 0
    assert junit_counts.counts(tmp_path / "r", code) == (1, 1)


def test_every_file_is_in_one_bunch(tmp_path):
    write(tmp_path, *[PASSES] * 50)
    for jobs in 1, 2, 4:
        files = [file.name for bunch in parallel_pytest.bunches([tmp_path], jobs) for file in bunch]
        assert sorted(files) == sorted(f"test_{i}.py" for i in range(50))
