"""The cases of the onnx package's backend test suite, exported once to a folder that any program can be run on."""
import json
import os
import shutil
import warnings

import onnx
from onnx.backend.test.loader import load_model_tests
from onnx.backend.test.runner import Runner

from harness import case, tensors

KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator", "real")
FORMAT = 1


def files_of(folder, prefix, types):
    """The values in folder/prefix_<i>.pb, as many as there are."""
    values = []
    while os.path.exists(path := os.path.join(folder, f"{prefix}_{len(values)}.pb")):
        values.append(tensors.read_proto(path, types[len(values)].type))
    return values


def load(test):
    """Model and data sets of a case, or None when its data would have to be downloaded."""
    if test.model is not None:
        return test.model, test.data_sets
    if test.model_dir is not None:
        model = onnx.load(os.path.join(test.model_dir, "model.onnx"))
        folders = sorted(name for name in os.listdir(test.model_dir) if name.startswith("test_data_set"))
        return model, [(files_of(os.path.join(test.model_dir, name), "input", model.graph.input),
                        files_of(os.path.join(test.model_dir, name), "output", model.graph.output)) for name in folders]
    if not test.url.startswith("onnx/"):
        return None
    # Large nets whose weights are generated: the package ships their outputs for the runner's dummy inputs.
    path = os.path.join(os.path.dirname(os.path.dirname(onnx.__file__)), test.url)
    model = onnx.load(path)
    preset = {tensor.name for tensor in model.graph.initializer}
    inputs = [Runner.generate_dummy_data(value, seed=0, name=test.name) for value in model.graph.input
              if value.name not in preset]
    folder, name = os.path.split(os.path.splitext(path)[0])
    return model, [(inputs, files_of(folder, name + "_output", model.graph.output))]


def operator_of(name, model, known):
    """The operator that a case is about."""
    if "_expanded" in name:
        return known.get(name.split("_expanded")[0], "?")
    operators = [node.op_type for node in model.graph.node]
    flat = name.replace("_", "").lower()
    named = [operator for operator in operators if operator.lower() in flat]
    return operators[0] if len(operators) == 1 else max(named, key=len) if named else "several"


def export(folder):
    """Writes the cases below `folder` unless the installed version is there already; returns {name: record}."""
    index = os.path.join(folder, "index.json")
    wanted = {"onnx": onnx.__version__, "format": FORMAT}
    try:
        with open(index, encoding="utf-8") as file:
            found = json.load(file)
        if {key: found[key] for key in wanted} == wanted:
            return found["cases"]
    except (OSError, ValueError, KeyError):
        pass
    print(f"exporting the cases of onnx {onnx.__version__} to {folder}", flush=True)
    part = folder + ".part"
    shutil.rmtree(part, ignore_errors=True)
    cases, operators = {}, {}
    warnings.simplefilter("ignore", RuntimeWarning)  # cases divide by zero on purpose
    for kind in KINDS:
        for test in sorted(load_model_tests(kind=kind), key=lambda test: test.name):
            loaded = load(test)
            if loaded is None:
                continue
            operators[test.name] = operator_of(test.name, loaded[0], operators)
            name = f"{kind}/{test.name}"
            where = os.path.join(part, name)
            os.makedirs(where)
            onnx.save(loaded[0], os.path.join(where, "model.onnx"))
            cases[name] = case.write_case(where, *loaded, test.rtol, test.atol)
            cases[name]["operator"] = operators[test.name]
    with open(os.path.join(part, "index.json"), "w", encoding="utf-8") as file:
        json.dump({**wanted, "cases": cases}, file)
    shutil.rmtree(folder, ignore_errors=True)
    os.rename(part, folder)
    return cases
