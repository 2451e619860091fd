"""What docs/backends.md says about the size of a backend for devices, counted."""
import re


def lines_of(path):
    return len(path.read_text().splitlines())


def test_the_backend_is_small(root):
    folder = root / "src" / "backends" / "opencl"
    own = {path: lines_of(path) for path in [*folder.glob("*.cpp"), *folder.glob("*.h")]}
    assert own and sum(own.values()) <= 2500, sorted(own.items(), key=lambda item: -item[1])


def test_the_document_counts(root):
    counted = 0
    for line in (root / "docs" / "backends.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) != 3 or not cells[1].startswith("`src/") or not re.fullmatch(r"\d+ lines", cells[2]):
            continue
        folder, files = None, []
        for name in re.findall(r"`([^`]+)`", cells[1]):
            folder, _, last = (root / name).parent if "/" in name else folder, None, name.rsplit("/", 1)[-1]
            found = list(folder.glob(last))
            assert found, name
            files += found
        said, real = int(cells[2].split()[0]), sum(map(lines_of, files))
        assert 0.8 * real <= said <= 1.25 * real, (cells[1], said, real)
        counted += 1
    assert counted == 9
