"""torch's interpolate and grid_sample over their modes: entries whose outputs are one combination of settings each."""
import itertools

import torch
import torch.nn.functional as F

import results
from entries import Entry

GROUP = "resampling"


class Each(torch.nn.Module):
    """One output for each call of a function on one of the inputs, with settings."""

    def __init__(self, function, calls):
        super().__init__()
        self.function, self.calls = function, calls

    def forward(self, *values):
        return tuple(self.function(values, which, settings) for which, settings in self.calls)


# ---- interpolate

SHAPES = [(2, 3, 9), (1, 3, 7, 10), (1, 2, 4, 5, 6)]  # one, two and three axes to resize
FACTORS = [2, 0.5, 1.5, 2.3, 0.7, 1.7, 3.1, 0.37, 0.9, 0.55]
SIZES = [[(18,), (5,), (13,), (1,), (41,)],
         [(14, 20), (5, 6), (11, 3), (1, 1), (23, 37)],
         [(8, 10, 12), (3, 2, 4), (7, 9, 5), (1, 1, 1)]]


def sized(axes):
    return [(axes - 1, dict(size=size)) for size in SIZES[axes - 1]]


def scaled(axes):
    calls = [(axes - 1, dict(scale_factor=factor)) for factor in FACTORS]
    calls += [(axes - 1, dict(scale_factor=factor, recompute_scale_factor=True)) for factor in (1.7, 0.7)]
    if axes == 2:
        calls += [(1, dict(scale_factor=factors)) for factors in ((1.3, 0.6), (0.45, 2.6))]
    return calls


def both(axes):
    return sized(axes) + scaled(axes)


def staying(axes):
    """With a factor that leaves some extents as they are; the newer exporter writes another function for one axis."""
    return both(axes) + ([(axes - 1, dict(scale_factor=1.1))] if axes > 1 else [])


def interpolated(name, modes, calls_of, **settings):
    """All calls for the modes, named by the axes they are for."""
    calls = [(which, call | settings | dict(mode=mode)) for axes, mode in modes.items() for which, call in calls_of(axes)]
    return Entry(f"interpolate {name}", GROUP, lambda: Each(lambda x, which, s: F.interpolate(x[which], **s), calls),
                 lambda: {f"x{i + 1}": torch.rand(shape) * 2 - 1 for i, shape in enumerate(SHAPES)},
                 interpreter=True, limit=results.CLOSE_LIMIT)


LINEAR = {1: "linear", 2: "bilinear", 3: "trilinear"}
INTERPOLATE = [
    # Nearest elements at such a factor are not the same for all of torch's kernels.
    interpolated("nearest", dict.fromkeys((1, 2, 3), "nearest"), both),
    interpolated("nearest-exact", dict.fromkeys((1, 2, 3), "nearest-exact"), both),
    interpolated("linear", LINEAR, staying, align_corners=False),
    interpolated("linear, aligned", LINEAR, staying, align_corners=True),
    interpolated("bicubic", {2: "bicubic"}, staying, align_corners=False),
    interpolated("bicubic, aligned", {2: "bicubic"}, staying, align_corners=True),
    # The exporters leave scale factors out of what they write for these, and how corners are aligned.
    interpolated("bilinear, antialias", {2: "bilinear"}, sized, align_corners=False, antialias=True),
    interpolated("bicubic, antialias", {2: "bicubic"}, sized, align_corners=False, antialias=True),
]

# ---- grid_sample

PADDINGS, ALIGNED = ("zeros", "border", "reflection"), (False, True)


def grid(*shape):
    """Places inside and beyond the borders, and the borders themselves."""
    places = torch.rand(*shape, len(shape) - 1) * 5 - 2.5
    flat = places.view(-1)
    flat[:9] = torch.tensor([-1.0, 1, 0, -2, 2, -1.5, 1.5, 0.5, -0.5])
    return places


def sampled(name, modes, inputs, **options):
    calls = [(0, dict(mode=mode, padding_mode=padding, align_corners=aligned))
             for mode, padding, aligned in itertools.product(modes, PADDINGS, ALIGNED)]
    return Entry(f"grid_sample {name}", GROUP, lambda: Each(lambda v, _, s: F.grid_sample(*v, **s), calls), inputs,
                 interpreter=True, limit=results.CLOSE_LIMIT, **options)


def images():
    return {"x": torch.rand(2, 3, 6, 9) * 2 - 1, "grid": grid(2, 8, 7)}


def volumes():
    return {"x": torch.rand(1, 2, 4, 5, 6) * 2 - 1, "grid": grid(1, 4, 5, 6)}


GRID_SAMPLE = [
    sampled("of images", ("nearest", "bilinear", "bicubic"), images),
    sampled("of volumes", ("nearest", "bilinear"), volumes, opset=20),
]

ENTRIES = [*INTERPOLATE, *GRID_SAMPLE]
