#!/usr/bin/env python3
"""Writes docs/conformance.md from the verdicts that run_onnx_suite.py --json has written."""
import argparse
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from harness import case, conformance_table  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("verdicts", help="JSON file of a whole run")
    parser.add_argument("-o", "--output", default=str(ROOT / "docs" / "conformance.md"))
    options = parser.parse_args()
    with open(options.verdicts, encoding="utf-8") as file:
        found = json.load(file)
    verdicts = {name: case.Verdict(**verdict) for name, verdict in found["cases"].items()}
    text = conformance_table.table(verdicts, found["operators"], found["shown"], found["onnx"])
    pathlib.Path(options.output).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
