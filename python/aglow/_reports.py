"""What models tell of themselves: what they hold, the memory they need, where the time goes, how exact they are."""
from __future__ import annotations

import dataclasses
from typing import Any, Mapping, Optional

from . import _draw


@dataclasses.dataclass(frozen=True)
class Inspection:
    """What a model is made of: its operators by how often it uses them, and the numbers among its weights."""
    name: str
    format: str
    inputs: tuple[Any, ...]
    outputs: tuple[Any, ...]
    nodes: int
    parameters: int
    operators: Mapping[str, int]
    unsupported: tuple[str, ...]

    def __str__(self) -> str:
        lines = [f"{self.name}: {self.format}, {self.nodes} nodes, {self.parameters} parameters"]
        lines += [f"  input {spec.name}: {spec.type}" for spec in self.inputs]
        lines += [f"  output {spec.name}: {spec.type}" for spec in self.outputs]
        lines += [f"  {count:6} {name}{'  NOT SUPPORTED' if name in self.unsupported else ''}"
                  for name, count in self._sorted()]
        return "\n".join(lines)

    def _sorted(self) -> list[tuple[str, int]]:
        return sorted(self.operators.items(), key=lambda row: (-row[1], row[0]))

    def _repr_html_(self) -> str:
        values = [("input", spec.name, spec.type) for spec in self.inputs]
        values += [("output", spec.name, spec.type) for spec in self.outputs]
        return (f"<b>{_draw.escaped(self.name)}</b>: {self.nodes} nodes, {self.parameters} parameters" +
                _draw.table(("", "name", "type"), values) + _draw.table(("operator", "uses"), self._sorted()))


@dataclasses.dataclass(frozen=True)
class Buffer:
    """A part of the arena: where it lies, and from which instruction to which."""
    name: str
    type: str
    offset: int
    bytes: int
    first: int
    last: int


@dataclasses.dataclass(frozen=True)
class Memory:
    """What one run of a function needs: bytes of the arena (at least `live_bytes` are alive at once), of weights (of which
    `shared_bytes` lie in arrays or files of others, and are no copies), inputs, outputs and state; and the buffers that
    share the arena. Notebooks show it as a map: lifetimes by addresses."""
    function: str
    arena_bytes: int
    live_bytes: int
    weights_bytes: int
    shared_bytes: int
    input_bytes: int
    output_bytes: int
    state_bytes: int
    buffers: tuple[Buffer, ...]
    instructions: int

    def draw(self) -> _draw.Svg:
        """The arena over time, as a picture."""
        return _draw.arena([_draw.Span(one.name, one.offset, one.bytes, one.first, one.last) for one in self.buffers],
                           self.arena_bytes, self.instructions)

    def __str__(self) -> str:
        rows = [("activations", self.arena_bytes), ("weights", self.weights_bytes), ("inputs", self.input_bytes),
                ("outputs", self.output_bytes), ("state", self.state_bytes)]
        lines = [f"{name:<12}{count:>14} bytes" for name, count in rows if count or name != "state"]
        largest = sorted(self.buffers, key=lambda one: -one.bytes)[:10]
        return "\n".join(lines + [f"{one.offset:>12} {one.bytes:>12} {one.first:>6} {one.last:>6}  {one.name}"
                                  for one in largest])

    def _repr_svg_(self) -> str:
        return str(self.draw())


@dataclasses.dataclass(frozen=True)
class Step:
    """An instruction of a run: the node that it comes from, its operators, the kernel; the median of its times over the
    runs, its share of all; operations, and bytes that it touches; threads that took part."""
    node: str
    instruction: str
    kernel: str
    seconds: float
    share: float
    flops: float
    bytes: int
    threads: int

    @property
    def flops_per_second(self) -> float:
        """Operations in a second."""
        return self.flops / self.seconds if self.seconds > 0 else 0.0


@dataclasses.dataclass(frozen=True)
class RunProfile:
    """Where the time of runs goes: instructions, the slowest first; and what the machine can do at most, measured."""
    steps: tuple[Step, ...]
    runs: int
    peak_flops: float
    peak_bytes_per_second: float

    @property
    def seconds(self) -> float:
        """Of all instructions of one run."""
        return sum(step.seconds for step in self.steps)

    def __str__(self) -> str:
        lines = [f"{'node':<40} {'instruction':<20} {'kernel':<10} {'ms':>9} {'share':>6} {'GFLOP/s':>8}"]
        lines += [f"{step.node[-40:]:<40} {step.instruction[-20:]:<20} {step.kernel:<10} {step.seconds * 1e3:>9.4f} "
                  f"{step.share:>6.1%} {step.flops_per_second * 1e-9:>8.1f}" for step in self.steps]
        return "\n".join(lines + [f"{self.seconds * 1e3:.4f} ms in {len(self.steps)} instructions, {self.runs} runs"])

    def _repr_html_(self) -> str:
        rows = [(step.node, step.instruction, step.kernel, f"{step.seconds * 1e3:.4f}", f"{step.share:.1%}",
                 f"{step.flops_per_second * 1e-9:.1f}") for step in self.steps[:50]]
        return f"{self.seconds * 1e3:.4f} ms" + _draw.table(("node", "instruction", "kernel", "ms", "share", "GFLOP/s"),
                                                            rows)


@dataclasses.dataclass(frozen=True)
class Difference:
    """How far an output is from what was expected; `beyond` counts elements that do not agree, `fault` says why there was
    nothing to compare."""
    name: str
    ok: bool
    max_abs: float
    max_rel: float
    beyond: int
    fault: str = ""

    def __str__(self) -> str:
        words = self.fault or f"largest difference {self.max_abs:.3g}, relative {self.max_rel:.3g}"
        return f"{self.name}: {'agrees' if self.ok else f'{self.beyond} elements differ'}; {words}"


@dataclasses.dataclass(frozen=True)
class Verification:
    """Outputs compared with others; true where all agree."""
    against: str
    outputs: tuple[Difference, ...]

    @property
    def ok(self) -> bool:
        """Whether all outputs agree."""
        return all(one.ok for one in self.outputs)

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        return "\n".join([f"against {self.against}"] + [f"  {one}" for one in self.outputs])


def memories(rows: list[tuple[Any, ...]]) -> tuple[Memory, ...]:
    """What the compiler told, function by function."""
    return tuple(Memory(name, arena, live, weights, shared, given, made, state, tuple(Buffer(*row) for row in buffers), count)
                 for name, arena, live, weights, shared, given, made, state, buffers, count in rows)


def run_profile(found: Mapping[str, Any]) -> RunProfile:
    """What the compiler measured."""
    rows = found["instructions"]
    total: Optional[float] = sum(row[3] for row in rows)
    steps = tuple(Step(node, instruction, kernel, seconds, seconds / total if total else 0.0, flops, count, threads)
                  for node, instruction, kernel, seconds, flops, count, threads in rows)
    return RunProfile(steps, found["runs"], found["peak_flops"], found["peak_bytes_per_second"])
