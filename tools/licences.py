#!/usr/bin/env python3
"""Writes the licences of everything that is linked into a build, as the packages that it comes from state them.

    licences.py OUTPUT FILE…      files are archives, headers below /usr/include, or headers of a package of Python

Each belongs to a package of Debian, whose statement of copyright is the text; or to one of Python, with a file of its
licence. A header that such a package took from elsewhere (below its folder ext) says itself what it is under. What belongs
to none is an error: then nobody has looked at its licence.
"""
import importlib.metadata
import pathlib
import subprocess
import sys


def fail(message):
    sys.exit(f"licences.py: {message}")


def of_debian(path):
    """Name and text of the package of Debian that a file belongs to, or None."""
    for form in dict.fromkeys([path, path.resolve()]):
        found = subprocess.run(["dpkg-query", "-S", str(form)], capture_output=True, text=True)
        if found.returncode == 0:
            package = found.stdout.partition(":")[0].split(",")[0]
            version = subprocess.run(["dpkg-query", "-W", "-f=${Version}\n", package], capture_output=True, text=True,
                                     check=True).stdout.split()[0]
            statement = pathlib.Path("/usr/share/doc") / package / "copyright"
            if not statement.is_file():
                fail(f"there is no {statement}")
            return f"{package} {version}", statement.read_text(encoding="utf-8")
    return None


def first_comment(path):
    text = path.read_text(encoding="utf-8")
    if not text.startswith("/*"):
        fail(f"{path} does not begin with its licence")
    return "\n".join(line.strip().lstrip("*").removeprefix(" ") for line in text[2:text.index("*/")].splitlines())


def of_python(path):
    """The same of a package of Python: site-packages/NAME/…"""
    parts = path.parts
    if "site-packages" not in parts:
        return None
    at = parts.index("site-packages") + 1
    name = parts[at]
    if parts[at + 1] == "ext":
        return f"{parts[at + 2]}, in {name}", first_comment(path)
    for one in importlib.metadata.distributions(name=name, path=[str(pathlib.Path(*parts[:at]))]):
        texts = [file.read_text(encoding="utf-8") for file in one.files or [] if "LICEN" in file.name.upper()]
        if texts:
            return f"{name} {one.version}", "\n".join(texts)
    return None


def licence_of(file):
    path = pathlib.Path(file)
    path = path if path.is_absolute() else pathlib.Path("/usr/include") / path
    return of_python(path) or of_debian(path) or fail(f"{path} belongs to no package: its licence is not known")


def main():
    output, *files = sys.argv[1:]
    packages = {}
    for file in files:
        package, text = licence_of(file)
        packages.setdefault(package, ([], text))[0].append(pathlib.Path(file).name)
    heads, texts = [], []
    for package, (names, text) in sorted(packages.items()):
        heads.append(f"  {package}: {', '.join(names) if len(names) < 4 else f'{len(names)} archives'}")
        texts.append(f"{'=' * 100}\n{package}\n{'=' * 100}\n\n{text.strip()}\n")
    text = ("Aglow is under the Apache License 2.0 (LICENSE). These programs and libraries have parts of other projects\n"
            "linked into them, by the packages named here; what these state about each follows.\n\n")
    pathlib.Path(output).write_text(text + "\n".join(heads) + "\n\n" + "\n".join(texts), encoding="utf-8")


if __name__ == "__main__":
    main()
