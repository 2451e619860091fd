#!/usr/bin/env python3
"""Measures models quantized to 8 bits beside ONNX Runtime and OpenVINO, on the same files, and Aglow's own float32.

    build/bench-venv/bin/python bench/int8.py [--models NAME,…] [--threads N,…] [--rounds N] [--seconds S]

The files are those of export_models.py, quantized by ONNX Runtime: QuantizeLinear and DequantizeLinear around every
operator, unsigned activations with ranges from a few random samples, signed weights with a scale for each channel. They
are measured as peers.py does, under names that end with -int8. Outputs are compared first with what ONNX Runtime gives
when it optimizes nothing, which is float32 between the quantizations: engines that compute with integers round a few
values to the neighbouring step.
"""
import argparse
import math
import os
import pathlib
import sys

import export_models

MODELS = ("resnet50", "mobilenet_v2", "efficientnet_b0", "bert_base", "minilm")
SUFFIX = "-int8"
SAMPLES = 4


def samples(name, folder):
    """Inputs like those that the model is measured with."""
    import numpy
    rng = numpy.random.default_rng(export_models.SEED)
    given = {key: numpy.load(path) for key, path in export_models.input_files(name, folder).items()}
    yield given
    for _ in range(SAMPLES - 1):
        yield {key: rng.permuted(value, axis=-1) for key, value in given.items()}


def export(name, folder=export_models.FOLDER):
    """Writes the quantized form of a model, NAME-int8, its inputs and what it gives, unless they exist."""
    import numpy
    import onnxruntime
    from onnxruntime import quantization
    from onnxruntime.quantization import shape_inference
    target = export_models.model_file(name, folder)
    if target.exists():
        return
    plain = name.removesuffix(SUFFIX)
    export_models.export(plain, folder)
    inputs = list(samples(plain, folder))

    class Reader(quantization.CalibrationDataReader):
        def __init__(self):
            self.left = iter(inputs)

        def get_next(self):
            return next(self.left, None)

    values = pathlib.Path(folder) / name
    values.mkdir(parents=True, exist_ok=True)
    prepared, temporary = values / "prepared.onnx", values / "quantized.onnx"
    shape_inference.quant_pre_process(str(export_models.model_file(plain, folder)), str(prepared),
                                      skip_symbolic_shape=True)
    quantization.quantize_static(str(prepared), str(temporary), Reader(), quant_format=quantization.QuantFormat.QDQ,
                                 per_channel=True, activation_type=quantization.QuantType.QUInt8,
                                 weight_type=quantization.QuantType.QInt8)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(str(temporary), options, providers=["CPUExecutionProvider"])
    numpy.save(export_models.expected_file(name, folder), session.run(None, inputs[0])[0])
    for key, value in inputs[0].items():
        numpy.save(values / f"{key}.npy", value)
    prepared.unlink()
    os.replace(temporary, target)
    print(f"{target} ({target.stat().st_size / 1e6:.0f} MB)", flush=True)


def summary(rows):
    """How much faster Aglow is than the fastest rival, and than itself in float32, on each model and in the mean."""
    times = {(row["model"], row["threads"], row["engine"]): row["median_ms"] for row in rows if "median_ms" in row}
    lines, gains = [], {}
    for (model, threads, engine), own in times.items():
        if engine != "aglow" or not model.endswith(SUFFIX):
            continue
        rivals = [ms for (m, t, e), ms in times.items() if (m, t) == (model, threads) and e != "aglow"]
        plain = times.get((model.removesuffix(SUFFIX), threads, "aglow"))
        text = f"{model:<20} {threads} threads: {own:.2f} ms"
        if rivals:
            gains.setdefault(threads, []).append(min(rivals) / own)
            text += f", {min(rivals) / own:.2f} times the fastest rival"
        lines.append(text + (f", {plain / own:.2f} times its float32" if plain else ""))
    for threads, found in gains.items():
        mean = math.exp(sum(map(math.log, found)) / len(found))
        lines.append(f"{threads} threads: {mean:.2f} times the fastest rival in the geometric mean, at least "
                     f"{min(found):.2f}")
    return "\n".join(lines)


def main():
    import peers
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", default=",".join(MODELS), help="some of: %(default)s")
    parser.add_argument("--float", action="store_true", help="measure Aglow on the float32 models too")
    known, rest = parser.parse_known_args()
    names = known.models.split(",")
    for name in set(names) - set(MODELS):
        parser.error(f"there is no model '{name}'; there are: {', '.join(MODELS)}")
    chosen = [form for name in names for form in ([name] if known.float else []) + [name + SUFFIX]]
    sys.argv[1:] = ["--models", ",".join(chosen), "--engines", "aglow,onnxruntime,openvino", *rest]
    return peers.main(summary)


if __name__ == "__main__":
    sys.exit(main())
