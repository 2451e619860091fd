"""Problems of elementwise operators, derived from their records: `aglow ops --json` has the formula of each, the element
kinds that its operands take and the range in which it is defined. Every kind is one node of a graph, twice where the
operator has parameters. What comes out is compared with the formula, computed by numpy in float64 and int64."""
import numpy as np

import operator_oracles as oracles
from element_kinds import Kind

SHAPES = [(2, 3, 4), (3, 1), (4,)]  # of the operands, to be broadcast


def bits(operation):
    return lambda a, b: operation(np.asarray(a).astype(np.int64), np.asarray(b).astype(np.int64))


# The primitives of formulas, on float64, int64 and bool.
PRIMITIVES = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": oracles.truncated_division, "rem": np.fmod,
    "pow": np.power, "min": np.minimum, "max": np.maximum, "neg": np.negative, "abs": np.abs, "floor": np.floor,
    "round": np.rint, "sqrt": np.sqrt, "exp": np.exp, "expm1": np.expm1, "log": np.log, "log1p": np.log1p,
    "sin": np.sin, "cos": np.cos, "atan": np.arctan, "tanh": np.tanh, "erf": oracles.erf, "and": bits(np.bitwise_and),
    "or": bits(np.bitwise_or), "xor": bits(np.bitwise_xor), "not": np.invert, "shl": np.left_shift,
    "shr": np.right_shift, "eq": np.equal, "lt": np.less, "isnan": np.isnan,
    "select": lambda a, b, c: np.where(np.asarray(a).astype(bool), b, c),
}


def computed(terms, operands, attributes, kind):
    """The last term; integers wrap after each, as they do in registers of the kind's width."""
    values = []
    for name, *of in terms:
        if name == "arg":
            value = operands[of[0]]
        elif name == "attr":
            value = attributes[of[0]]
        elif name == "const":
            value = np.float64(of[0]) if kind.is_float else np.int64(float(of[0]))
        else:
            value = PRIMITIVES[name](*(values[i] for i in of))
        is_number = not kind.is_float and kind.name != "bool" and np.asarray(value).dtype != bool
        values.append(kind.wide(value) if is_number else value)
    return np.asarray(values[-1])


class Node:
    """One use of an operator: element kinds of its operands, their values, its attributes."""

    def __init__(self, op, name, kind, attributes, random):
        formula = op["formula"]
        self.name, self.op, self.kind, self.attributes = name, op["name"], kind, attributes
        self.kinds = [Kind(kind if kind in kinds else kinds[0]) for kinds in formula["operand_kinds"]]
        self.operands = [operand.draw(random, shape, formula["from"], formula["to"])
                         for operand, shape in zip(self.kinds, SHAPES)]
        self.result = Kind("bool" if formula["gives_bools"] else kind)
        with np.errstate(all="ignore"):
            self.expected = computed(formula["terms"], self.operands, {**op.get("defaults", {}), **attributes}, Kind(kind))

    def text(self):
        def line(name, kind, array):
            return f"placeholder @{name} : {kind.name}[{','.join(map(str, array.shape))}]"

        names = [f"{self.name}_{i}" for i in range(len(self.operands))]
        attributes = ", ".join(f"{name} = {str(value).lower()}" for name, value in self.attributes.items())
        storage = [line(*of) for of in zip(names, self.kinds, self.operands)]
        node = f"%{self.name}_y = {self.op}({', '.join('@' + name for name in names)}) {{{attributes}}}"
        return [*storage, line(self.name, self.result, self.expected)], [node, f"Save(%{self.name}_y, @{self.name})"]


def is_derivable(op):
    """Formulas that read operands and parameters alone; list attributes, such as shapes, need problems of their own."""
    return "formula" in op and set(op.get("attributes", [])) == set(op.get("defaults", {}))


def nodes(op, random, kinds=None):
    """A node for each kind that the operator takes (of those given), once more with other parameters."""
    taken = max(op["formula"]["operand_kinds"], key=len)
    other = {name: 0.5 * value + 0.25 if isinstance(value, float) else type(value)(1 - value)
             for name, value in op.get("defaults", {}).items()}
    return [Node(op, f"{kind}_{number}", kind, attributes, random) for kind in taken if kinds is None or kind in kinds
            for number, attributes in enumerate([{}, other] if other else [{}])]


def graph(nodes):
    storage, lines = zip(*(node.text() for node in nodes))
    return "\n".join(["module {", *sum(storage, []), "func @main {", *sum(lines, []), "}", "}", ""])
