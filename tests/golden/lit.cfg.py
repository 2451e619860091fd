"""Golden tests: each file runs the commands of its RUN lines; FileCheck compares their output with its CHECK lines.

Substitutions: %aglow the program (AGLOW_BIN, by default build/aglow), %FileCheck, %models the examples folder,
%exits CODE COMMAND checks an exit code. Files in folders named Inputs are not tests.
"""
import os
import sys

import lit.formats

root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
program = os.path.abspath(os.environ.get("AGLOW_BIN", os.path.join(root, "build", "aglow")))
if not os.access(program, os.X_OK):
    lit_config.fatal(f"{program} is not a program: run ./dev build, or set AGLOW_BIN")

config.name = "aglow"
config.test_format = lit.formats.ShTest(False)
config.test_source_root = os.path.dirname(os.path.abspath(__file__))
config.test_exec_root = os.path.join(os.path.dirname(program), "golden")
config.suffixes = [".test", ".graph", ".ir"]
config.excludes = ["Inputs"]
config.environment["NO_COLOR"] = "1"
config.environment["AGLOW_CACHE_DIR"] = config.environment["AGLOW_CONFIG"] = "off"
# What is printed is the same on every machine, unless a test asks for one.
config.environment["AGLOW_BACKEND"] = "interpreter"
for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS"):
    if name in os.environ:
        config.environment[name] = os.environ[name]
config.substitutions += [
    ("%aglow", program),
    ("%exits", f"{sys.executable} {os.path.join(config.test_source_root, 'exits.py')}"),
    ("%FileCheck", "FileCheck-19"),
    ("%models", os.path.join(root, "examples")),
]
