"""What an entry of the zoo is: a torch module with inputs for it, made the same way each time."""
import collections.abc
import contextlib
import dataclasses
from typing import Any, Callable

import torch

import results

SEED = 1


@dataclasses.dataclass(frozen=True)
class Entry:
    """One architecture. Sizes named in `sizes` are free: (when exporting, when running); `axes` says where they stand."""
    name: str
    group: str
    build: Callable[[], torch.nn.Module]
    inputs: Callable[..., dict[str, torch.Tensor]]  # takes the sizes by name
    sizes: dict[str, tuple[int, int]] = dataclasses.field(default_factory=dict)
    axes: dict[str, dict[int, str]] = dataclasses.field(default_factory=dict)
    call: Callable[..., Any] = lambda model, **values: model(*values.values())
    interpreter: bool = False  # whether it is small enough for the interpreter as well
    limit: float = results.LIMIT  # of the error, as a part of an output's range
    opset: int | None = None   # for the exporter by tracing, where its default lacks an operator
    around_dynamo: Callable[[], Any] = contextlib.nullcontext  # what the newer exporter needs to be changed
    note: str = ""                                             # and how to tell


class Flat(torch.nn.Module):
    """A module that takes and gives nothing but tensors in a row, as a graph does."""

    def __init__(self, entry, model, names):
        super().__init__()
        self.model, self.call, self.names = model, entry.call, names

    def forward(self, *values):
        return tuple(tensors(self.call(self.model, **dict(zip(self.names, values)))))


def tensors(value):
    """All tensors in dicts, tuples and caches of keys and values, in order."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, collections.abc.Mapping):
        for part in value.values():
            yield from tensors(part)
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from tensors(part)
    elif hasattr(value, "layers"):
        for layer in value.layers:
            yield from (layer.keys, layer.values)
    elif value is not None:
        raise TypeError(f"an output of type {type(value).__name__}")


def stir(model):
    """Fresh parameters and statistics that are all zero or all one would let parts of a model do nothing."""
    with torch.no_grad():
        for name, value in [*model.named_parameters(), *model.named_buffers()]:
            if not value.is_floating_point() or value.numel() == 0 or value.min() != value.max():
                continue
            if name.endswith("running_var"):
                value.uniform_(0.8, 1.2)
            else:
                value.add_(torch.empty_like(value).uniform_(-0.2, 0.2))


def make(entry):
    """The module, the inputs it is exported with, and those it is run with."""
    torch.manual_seed(SEED)
    model = entry.build().eval()
    stir(model)
    chosen = [entry.inputs(**{name: pair[k] for name, pair in entry.sizes.items()}) for k in (0, 1)]
    return Flat(entry, model, list(chosen[0])).eval(), *chosen
