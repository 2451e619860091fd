"""Curves as SVG: a small drawing of numbers over epochs, with axes and a legend."""
import math
from xml.sax.saxutils import escape

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 640, 360, 64, 16, 40, 44
COLOURS = ("#1f6feb", "#d1242f", "#1a7f37", "#9a6700")


def ticks(low, high, count=5):
    """Round numbers between low and high."""
    step = 10 ** math.floor(math.log10((high - low) / count))
    step *= next(f for f in (1, 2, 5, 10) if (high - low) / (f * step) <= count)
    first = math.ceil(low / step - 1e-9)
    return [i * step for i in range(first, math.floor(high / step + 1e-9) + 1)]


def drawing(title, curves, x_name="epoch"):
    """An SVG document; `curves` has a list of numbers for each name, the first of epoch 1."""
    values = [v for curve in curves.values() for v in curve if math.isfinite(v)]
    low, high = min([0.0, *values]), max(values)
    high = high if high > low else low + 1
    last = max(2, max(len(curve) for curve in curves.values()))

    def x(epoch):
        return LEFT + (epoch - 1) / (last - 1) * (WIDTH - LEFT - RIGHT)

    def y(value):
        return HEIGHT - BOTTOM - (value - low) / (high - low) * (HEIGHT - TOP - BOTTOM)

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
             f'font-size="12">', f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
             f'<text x="{LEFT}" y="20" font-size="15">{escape(title)}</text>']
    for value in ticks(low, high):
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(value):.1f}" y2="{y(value):.1f}" stroke="#ddd"/>'
                     f'<text x="{LEFT - 6}" y="{y(value) + 4:.1f}" text-anchor="end">{value:g}</text>')
    for epoch in ticks(1, last, 8):
        parts.append(f'<text x="{x(epoch):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{epoch:g}</text>')
    parts.append(f'<text x="{WIDTH / 2}" y="{HEIGHT - 8}" text-anchor="middle">{escape(x_name)}</text>')
    for i, (name, curve) in enumerate(curves.items()):
        colour = COLOURS[i % len(COLOURS)]
        points = " ".join(f"{x(n):.1f},{y(v):.1f}" for n, v in enumerate(curve, 1) if math.isfinite(v))
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>'
                     f'<text x="{WIDTH - RIGHT}" y="{TOP + 16 * i}" text-anchor="end" fill="{colour}">{escape(name)}</text>')
    return "\n".join([*parts, "</svg>", ""])
