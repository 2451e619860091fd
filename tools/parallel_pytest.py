#!/usr/bin/env python3
"""Runs files of tests in several pytest processes at once: parallel_pytest.py JOBS RESULTS.xml PATH...

Files go to the processes in bunches, small enough that all end at about the same time and large enough that starting
a process, which loads onnx, hardly counts. The results of all are in one JUnit file.
"""
import concurrent.futures
import pathlib
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

BUNCHES_PER_JOB = 8


def bunches(paths, jobs):
    """The files of tests below the paths, in lists; neighbours, which often take equally long, are in different ones."""
    files = [file for path in paths for file in (sorted(path.glob("test_*.py")) if path.is_dir() else [path])]
    count = min(len(files), BUNCHES_PER_JOB * jobs) if jobs > 1 else 1
    return [files[first::count] for first in range(count)]


def run(files, results):
    """(exit code, output) of one process."""
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--junitxml", results, *files],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.returncode, done.stdout


def merged(files):
    """One root with the suites of all readable files."""
    root = ElementTree.Element("testsuites")
    for file in files:
        try:
            root.extend(ElementTree.parse(file).getroot().iter("testsuite"))
        except (OSError, ElementTree.ParseError):
            pass  # the process has died, and its exit code counts
    return root


def main(jobs, results, *paths):
    parts = bunches([pathlib.Path(path) for path in paths], int(jobs))
    worst = 0
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(int(jobs)) as pool:
        files = [pathlib.Path(folder) / f"{i}.xml" for i in range(len(parts))]
        for code, output in pool.map(run, parts, files):
            worst = worst or code
            print(output, end="", flush=True)
        ElementTree.ElementTree(merged(files)).write(results, encoding="utf-8", xml_declaration=True)
    return worst if worst >= 0 else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
