#!/usr/bin/env python3
"""Writes the licences of everything that is linked into a build, as the system's packages state them.

    licences.py OUTPUT FILE…      files are archives, or headers below /usr/include

Each belongs to a package, whose statement of copyright is the text. What belongs to none is an error: then nobody has
looked at its licence.
"""
import pathlib
import subprocess
import sys



def package_of(file):
    path = pathlib.Path(file)
    path = path if path.is_absolute() else pathlib.Path("/usr/include") / path
    for form in dict.fromkeys([path, path.resolve()]):
        found = subprocess.run(["dpkg-query", "-S", str(form)], capture_output=True, text=True)
        if found.returncode == 0:
            return found.stdout.partition(":")[0].split(",")[0]
    sys.exit(f"licences.py: {path} belongs to no package: its licence is not known")


def version_of(package):
    return subprocess.run(["dpkg-query", "-W", "-f=${Version}\n", package], capture_output=True, text=True,
                          check=True).stdout.split()[0]


def main():
    output, *files = sys.argv[1:]
    packages = {}
    for file in files:
        packages.setdefault(package_of(file), []).append(pathlib.Path(file).name)
    heads, texts = [], []
    for package, names in sorted(packages.items()):
        statement = pathlib.Path("/usr/share/doc") / package / "copyright"
        if not statement.is_file():
            sys.exit(f"licences.py: there is no {statement}")
        heads.append(f"  {package} {version_of(package)}: {', '.join(names) if len(names) < 4 else f'{len(names)} archives'}")
        texts.append(f"{'=' * 100}\n{package}\n{'=' * 100}\n\n{statement.read_text(encoding='utf-8').strip()}\n")
    text = ("Aglow is under the Apache License 2.0 (LICENSE). These programs and libraries have parts of other projects\n"
            "linked into them, by the Debian packages named here; what Debian states about each follows.\n\n")
    pathlib.Path(output).write_text(text + "\n".join(heads) + "\n\n" + "\n".join(texts), encoding="utf-8")


if __name__ == "__main__":
    main()
