"""What became of the graphs that torch gave to Aglow."""
from __future__ import annotations

import collections
import dataclasses
from typing import Any, Iterable, Mapping


@dataclasses.dataclass
class GraphReport:
    """One graph of torch: how often it was compiled for new sizes or weights, how many of its nodes run in Aglow and in
    how many pieces, and why others do not; bytes of weights, and of those that are torch's own memory and no copies."""
    name: str
    compiled: int = 0
    nodes: int = 0
    inside: int = 0
    pieces: int = 0
    seconds: float = 0.0
    weights_bytes: int = 0
    shared_bytes: int = 0
    fallbacks: dict[tuple[str, str], int] = dataclasses.field(default_factory=dict)
    notes: list[str] = dataclasses.field(default_factory=list)

    def add(self, nodes: int, inside: int, reasons: Mapping[Any, str], pieces: Iterable[Any], seconds: float) -> None:
        """Notes what was made for one set of sizes; the numbers are those of the last."""
        made = list(pieces)
        memory = [piece.model.memory() for piece in made]
        self.compiled += 1
        self.seconds += seconds
        self.nodes, self.inside, self.pieces = nodes, inside, len(made)
        handed = sum(piece.handed_bytes for piece in made)
        self.weights_bytes = sum(one.weights_bytes for one in memory) + handed
        self.shared_bytes = sum(one.shared_bytes for one in memory) + handed
        self.fallbacks = dict(collections.Counter((str(node.target), reason) for node, reason in reasons.items()))

    def eager(self, why: str) -> None:
        """Notes that torch ran all of it."""
        if why not in self.notes:
            self.notes.append(why)

    def __str__(self) -> str:
        lines = [f"{self.name}: {self.inside} of {self.nodes} nodes in {self.pieces} pieces, compiled {self.compiled} "
                 f"times in {self.seconds:.1f} s; {self.weights_bytes} bytes of weights, {self.shared_bytes} of them in "
                 "torch's memory"]
        lines += [f"  torch runs {count} x {op}: {reason}"
                  for (op, reason), count in sorted(self.fallbacks.items(), key=lambda row: -row[1])]
        return "\n".join(lines + [f"  {note}" for note in self.notes])


class Report(tuple[GraphReport, ...]):
    """All graphs so far, in order."""

    def __str__(self) -> str:
        return "\n".join(str(one) for one in self) or "no graph was compiled yet"

    __repr__ = __str__
