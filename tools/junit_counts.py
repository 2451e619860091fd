#!/usr/bin/env python3
"""Prints "passed failed" for a test stage: junit_counts.py STAGE EXIT_CODE, with results in STAGE.xml and STAGE/*.xml.

Without a readable file the stage counts as one check that its exit code decides; a stage that ended badly although no
single test failed counts one failure.
"""
import pathlib
import sys
import xml.etree.ElementTree as ElementTree


def cases(path):
    try:
        return list(ElementTree.parse(path).getroot().iter("testcase"))
    except (OSError, ElementTree.ParseError):
        return []


def counts(stage, code):
    found = [case for path in (f"{stage}.xml", *pathlib.Path(stage).glob("*.xml")) for case in cases(path)]
    if not found:
        return (0, 1) if code else (1, 0)
    skipped = sum(case.find("skipped") is not None for case in found)
    failed = sum(case.find("failure") is not None or case.find("error") is not None for case in found)
    passed = len(found) - skipped - failed
    return passed, failed if failed or not code else 1


if __name__ == "__main__":
    print(*counts(sys.argv[1], int(sys.argv[2])))
