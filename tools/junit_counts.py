#!/usr/bin/env python3
"""Prints "passed failed" for a test stage: junit_counts.py FILE.xml EXIT_CODE.

Without a readable file the stage counts as one check that its exit code decides; a stage that ended badly although no
single test failed counts one failure.
"""
import sys
import xml.etree.ElementTree as ElementTree


def counts(path, code):
    try:
        cases = list(ElementTree.parse(path).getroot().iter("testcase"))
    except (OSError, ElementTree.ParseError):
        cases = []
    if not cases:
        return (0, 1) if code else (1, 0)
    skipped = sum(case.find("skipped") is not None for case in cases)
    failed = sum(case.find("failure") is not None or case.find("error") is not None for case in cases)
    passed = len(cases) - skipped - failed
    return passed, failed if failed or not code else 1


if __name__ == "__main__":
    print(*counts(sys.argv[1], int(sys.argv[2])))
