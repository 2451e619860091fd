"""exits.py CODE COMMAND...: whether the command ends with this exit code. Its output is passed on."""
import subprocess
import sys

code = subprocess.run(sys.argv[2:], stdin=subprocess.DEVNULL).returncode
if code != int(sys.argv[1]):
    sys.exit(f"exit code {code}, expected {sys.argv[1]}: {' '.join(sys.argv[2:])}")
