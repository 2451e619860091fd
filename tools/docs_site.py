#!/usr/bin/env python3
"""Gathers the pages of the site (mkdocs.yml) in a folder: docs_site.py FOLDER

All documents of the repository keep their places, so that links between them hold; a README is the index of its folder.
What they link to besides, sources and examples, comes along as files. A link that leads nowhere is an error.
"""
import argparse
import pathlib
import re
import shutil
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LEFT_OUT = {"build", ".git", ".ci"}
LINK = re.compile(r"(\]\()([^)\s]+)(\))")


def documents():
    for path in sorted(ROOT.rglob("*.md")):
        top = path.relative_to(ROOT).parts[0]
        if top not in LEFT_OUT and not top.startswith("build-"):
            yield path


def place(path):
    """Where a file of the repository lies among the pages."""
    relative = path.relative_to(ROOT)
    return relative.with_name("index.md") if relative.name == "README.md" else relative


def gather(folder):
    """Fills the folder; the links that lead nowhere."""
    broken = []
    (folder / "docs").mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / "docs" / "site.css", folder / "docs")
    for document in documents():
        target = folder / place(document)
        target.parent.mkdir(parents=True, exist_ok=True)

        def led(match):
            link, _, anchor = match[2].partition("#")
            if not link or "://" in link or link.startswith("mailto:"):
                return match[0]
            path = (document.parent / link).resolve()
            if path.is_dir() and (path / "README.md").is_file():
                path = path / "README.md"
            elif path.is_dir():  # a folder of sources has no page; its name stays
                return match[0].replace(match[2], "#")
            if not path.is_file() or ROOT not in path.parents:
                broken.append(f"{document.relative_to(ROOT)}: {match[2]}")
                return match[0]
            if path.suffix != ".md":
                copy = folder / path.relative_to(ROOT)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, copy)
            up = "../" * (len(place(document).parts) - 1)
            return f"{match[1]}{up}{place(path).as_posix()}{'#' + anchor if anchor else ''}{match[3]}"

        parts = re.split(r"(^```.*?^```$)", document.read_text(encoding="utf-8"), flags=re.M | re.S)
        text = "".join(part if part.startswith("```") else LINK.sub(led, part) for part in parts)
        target.write_text(text, encoding="utf-8")
    return broken


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    folder = parser.parse_args().folder
    shutil.rmtree(folder, ignore_errors=True)
    if broken := gather(folder):
        sys.exit("docs_site.py: links that lead nowhere:\n  " + "\n  ".join(broken))


if __name__ == "__main__":
    main()
