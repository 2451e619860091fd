"""Pictures as SVG, for notebooks and files: graphs layer by layer, and the arena over time."""
from __future__ import annotations

import html
import os
from typing import Iterable, NamedTuple, Sequence, Union

# function, name, operator, types of results, operands as (row, result)
Row = tuple[str, str, str, list[str], list[tuple[int, int]]]

_STYLE = ("<style>text{font:11px sans-serif;fill:#222}.s{font-size:9px;fill:#667}"
          "rect{stroke:#567;stroke-width:.7}path{fill:none;stroke:#789;stroke-width:1}</style>")
_COLOURS = {"Placeholder": "#ffe9b8", "Save": "#ffd0c0", "Conv": "#c6dcf4", "MatMul": "#c6dcf4", "Constant": "#e8e8e8"}


class Svg(str):
    """A picture; notebooks show it, `save` writes it."""

    def _repr_svg_(self) -> str:
        return str(self)

    def save(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Writes the picture into a file."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self)


def escaped(text: str) -> str:
    """Text inside of HTML; names need not be UTF-8."""
    return html.escape(text.encode("utf-8", "replace").decode("utf-8"))


def _shortened(text: str, most: int) -> str:
    return text if len(text) <= most else "…" + text[1 - most:]


class _Box(NamedTuple):
    title: str
    note: str
    colour: str
    sources: list[int]


def _boxes(rows: Sequence[Row]) -> dict[int, _Box]:
    """What is drawn: constants are left out, they only tell of weights."""
    boxes: dict[int, _Box] = {}
    for number, (_, name, op, types, operands) in enumerate(rows):
        if op == "Constant":
            continue
        sources = [row for row, _ in operands if row in boxes and not (op == "Save" and rows[row][2] == "Placeholder")]
        target = next((rows[row][1] for row, _ in operands if op == "Save" and rows[row][2] == "Placeholder"), "")
        title = target if op == "Save" else name if op == "Placeholder" else op
        note = ", ".join(types) if types else "output"
        boxes[number] = _Box(_shortened(title, 26), _shortened(note, 34), _COLOURS.get(op, "#cfe8cf"), sources)
    written = {row for row_ in rows for row, _ in row_[4] if row_[2] == "Save" and rows[row][2] == "Placeholder"}
    read = {source for box in boxes.values() for source in box.sources}
    return {number: box for number, box in boxes.items() if number not in written or number in read}


def graph(rows: Sequence[Row], limit: int) -> Svg:
    """Nodes in layers by their distance from the inputs, each below what it reads."""
    boxes = _boxes(rows)
    shown = dict(list(boxes.items())[:limit])
    layer: dict[int, int] = {}
    for number, box in shown.items():
        layer[number] = max((layer[source] + 1 for source in box.sources if source in layer), default=0)
    # Inputs stand right above what reads them first.
    for number, box in shown.items():
        if not box.sources:
            readers = [layer[other] for other, reader in shown.items() if number in reader.sources]
            layer[number] = max(min(readers, default=1) - 1, 0)
    layers: list[list[int]] = [[] for _ in range(max(layer.values(), default=-1) + 1)]
    for number in shown:
        layers[layer[number]].append(number)
    width, height, gap_x, gap_y = 176, 32, 22, 26
    column: dict[int, float] = {}
    for members in layers:
        # In the order of what they read, so that edges seldom cross.
        wish = {number: sum(column.get(source, 0.0) for source in shown[number].sources) /
                max(len(shown[number].sources), 1) for number in members}
        taken = -1.0
        for number in sorted(members, key=lambda one: (wish[one], one)):
            column[number] = max(wish[number], taken + 1)
            taken = column[number]
    def x_of(number: int) -> float:
        return 10 + column[number] * (width + gap_x)

    def y_of(number: int) -> float:
        return 10 + layer[number] * (height + gap_y)

    parts: list[str] = []
    for number, box in shown.items():
        for source in box.sources:
            if source not in shown:
                continue
            x0, y0, x1, y1 = x_of(source) + width / 2, y_of(source) + height, x_of(number) + width / 2, y_of(number)
            middle = (y0 + y1) / 2
            parts.append(f'<path d="M{x0:.0f} {y0:.0f}C{x0:.0f} {middle:.0f} {x1:.0f} {middle:.0f} {x1:.0f} {y1:.0f}"/>')
    for number, box in shown.items():
        x, y = x_of(number), y_of(number)
        parts.append(f'<g><title>{escaped(rows[number][1])}</title><rect x="{x:.0f}" y="{y:.0f}" width="{width}" '
                     f'height="{height}" rx="4" fill="{box.colour}"/><text x="{x + 7:.0f}" y="{y + 13:.0f}">'
                     f'{escaped(box.title)}</text><text class="s" x="{x + 7:.0f}" y="{y + 25:.0f}">{escaped(box.note)}'
                     '</text></g>')
    bottom = 20 + len(layers) * (height + gap_y)
    if len(boxes) > len(shown):
        parts.append(f'<text x="10" y="{bottom}">… and {len(boxes) - len(shown)} more nodes</text>')
        bottom += 20
    right = 20 + (max(column.values(), default=0) + 1) * (width + gap_x)
    return _svg(right, bottom, parts)


class Span(NamedTuple):
    """A buffer: where it lies, and from which instruction to which."""
    name: str
    offset: int
    bytes: int
    first: int
    last: int


def arena(spans: Sequence[Span], arena_bytes: int, instructions: int) -> Svg:
    """Buffers as boxes: time (instructions) from left to right, addresses from bottom to top."""
    width, height, left, top = 720.0, 320.0, 70.0, 12.0
    parts = [f'<rect x="{left}" y="{top}" width="{width}" height="{height}" fill="#fafbfc"/>']
    x_scale, y_scale = width / max(instructions, 1), height / max(arena_bytes, 1)
    for number, span in enumerate(spans):
        x, y = left + span.first * x_scale, top + height - (span.offset + span.bytes) * y_scale
        wide, high = max((span.last - span.first + 1) * x_scale, 1), max(span.bytes * y_scale, 1)
        hue = number * 47 % 360
        parts.append(f'<g><title>{escaped(span.name)}: {span.bytes} bytes at {span.offset}, instructions {span.first} '
                     f'to {span.last}</title><rect x="{x:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{high:.1f}" '
                     f'fill="hsl({hue},55%,78%)"/></g>')
        if wide > 60 and high > 12:
            parts.append(f'<text class="s" x="{x + 3:.1f}" y="{y + 10:.1f}">'
                         f'{escaped(_shortened(span.name, int(wide / 6)))}</text>')
    for share in (0.0, 0.5, 1.0):
        parts.append(f'<text class="s" x="4" y="{top + height - share * height + 4:.0f}">'
                     f'{bytes_text(round(arena_bytes * share))}</text>')
    parts.append(f'<text class="s" x="{left}" y="{top + height + 14}">instruction 0</text>'
                 f'<text class="s" x="{left + width - 80}" y="{top + height + 14}">{instructions}</text>')
    return _svg(left + width + 12, top + height + 22, parts)


def bytes_text(count: int) -> str:
    """A number of bytes for people."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count} bytes"


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Rows as a table of HTML."""
    lines = "".join("<tr>" + "".join(f"<td>{escaped(str(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    return "<table><tr>" + "".join(f"<th>{escaped(name)}</th>" for name in head) + f"</tr>{lines}</table>"


def _svg(width: float, height: float, parts: Sequence[str]) -> Svg:
    return Svg(f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
               f'viewBox="0 0 {width:.0f} {height:.0f}">{_STYLE}{"".join(parts)}</svg>')
