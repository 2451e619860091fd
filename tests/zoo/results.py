"""What is known of a model after its run, how far outputs may differ, and the table of all results."""
import dataclasses

import numpy

LIMIT, CLOSE_LIMIT = 1e-3, 1e-5  # of whole models; of what only reads and weighs elements
PASS, REFUSED = "pass", "exporter refuses"


@dataclasses.dataclass
class Row:
    """One export of one model."""
    name: str
    group: str
    exporter: str
    nodes: int = 0
    verdict: str = PASS
    error: float | None = None
    interpreter_error: float | None = None
    seconds: float | None = None
    detail: str = ""


def difference(expected, got):
    """The largest difference as a part of the range of what is expected; exact kinds have to be equal."""
    if expected.shape != got.shape or expected.dtype != got.dtype:
        raise ValueError(f"expected {expected.dtype}{list(expected.shape)}, got {got.dtype}{list(got.shape)}")
    if expected.size == 0:
        return 0.0
    if expected.dtype.kind != "f":
        return 0.0 if numpy.array_equal(expected, got) else numpy.inf
    wide, other = expected.astype(numpy.float64), got.astype(numpy.float64)
    same = (wide == other) | (numpy.isnan(wide) & numpy.isnan(other))
    with numpy.errstate(invalid="ignore"):
        distance = numpy.where(same, 0.0, numpy.abs(wide - other)).max()
    finite = wide[numpy.isfinite(wide)]
    extent = numpy.ptp(finite) if finite.size else 0.0
    worst = distance / (extent or max(numpy.abs(finite).max(initial=0.0), 1e-6))
    return float("inf") if numpy.isnan(worst) else float(worst)


def totals(rows):
    passed, refused = (sum(row.verdict == kind for row in rows) for kind in (PASS, REFUSED))
    return f"{passed} of {len(rows) - refused} exports pass, {refused} are refused by the exporter"


def number(value, form):
    return "" if value is None else f"{value:{form}}"


def line(row):
    return (f"{row.name:40}{row.exporter:8}{row.nodes:6} {row.verdict:17}{number(row.error, '.1e'):>8}"
            f"{number(row.seconds, '.1f'):>7} s  {row.detail[:200]}")


def markdown(rows, versions):
    lines = [
        "# Models", "",
        "Written by `./dev zoo`: architectures of torchvision and transformers with random weights, exported by torch's",
        "exporter by tracing (`trace`, `dynamo=False`) and by its newer one (`dynamo`), run with other sizes of batch and",
        "text than they were exported with, and compared with torch. The error is the largest difference of an output as a",
        f"part of its range; below {LIMIT:g} passes, in the group Resampling below {CLOSE_LIMIT:g}. Seconds are processor time",
        "of the whole `aglow run` on the `cpu` backend: reading, compiling and running, without the cache. What the",
        "exporter itself refuses has no file to run.", "", f"{versions}: {totals(rows)}.", ""]
    for group in dict.fromkeys(row.group for row in rows):
        notes = []
        lines += [f"## {group.capitalize()}", "", "| model | exporter | nodes | verdict | error | interpreter | seconds |",
                  "|---|---|---|---|---|---|---|"]
        for row in (row for row in rows if row.group == group):
            if row.detail and row.detail not in notes:
                notes.append(row.detail)
            mark = f" ({notes.index(row.detail) + 1})" if row.detail else ""
            lines.append(f"| {row.name} | {row.exporter} | {row.nodes or ''} | {row.verdict}{mark} | "
                         f"{number(row.error, '.1e')} | {number(row.interpreter_error, '.1e')} | "
                         f"{number(row.seconds, '.1f')} |")
        lines += [""] + [f"{i + 1}. `{note.replace('`', chr(39))}`" for i, note in enumerate(notes)] + ([""] if notes else [])
    return "\n".join(lines).rstrip("\n") + "\n"
