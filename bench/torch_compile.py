#!/usr/bin/env python3
"""torch.compile with Aglow beside Inductor and eager torch, on models of torchvision and transformers.

    torch_compile.py [--threads 1] [--rounds 5] [--engines aglow,inductor,eager] [--pack-weights] [MODEL…]

Weights are random. Outputs are compared with eager ones first: what is wrong is not timed. Then all engines of a model
take turns, and medians are compared. Prints how many nodes of each model Aglow runs, and in how many pieces. Needs
build/bench-venv and the Python module in build/python.
"""
import argparse
import pathlib
import statistics
import sys
import time

import torch

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "build" / "python"))
TOLERANCE = 1e-3  # of the largest absolute value


def vision(name, size=224):
    import torchvision
    model = torchvision.models.get_model(name, weights=None)
    with torch.no_grad():
        for weight in model.parameters():  # some heads begin as zeros, and any output would be right
            if weight.dim() > 1 and not weight.any():
                weight.normal_(std=0.02)
    return model, (torch.randn(1, 3, size, size),)


def language(kind, length=64, **settings):
    import transformers
    config = getattr(transformers, f"{kind}Config")(num_hidden_layers=4, **settings)
    config._attn_implementation = "sdpa"
    model = getattr(transformers, f"{kind}Model")(config)
    return model, (torch.randint(0, 1000, (1, length)),)


MODELS = {
    "resnet18": lambda: vision("resnet18"),
    "resnet50": lambda: vision("resnet50"),
    "mobilenet_v2": lambda: vision("mobilenet_v2"),
    "mobilenet_v3": lambda: vision("mobilenet_v3_large"),
    "efficientnet_b0": lambda: vision("efficientnet_b0"),
    "densenet121": lambda: vision("densenet121"),
    "squeezenet": lambda: vision("squeezenet1_1"),
    "vit_b_16": lambda: vision("vit_b_16"),
    "bert": lambda: language("Bert"),
    "distilbert": lambda: language("DistilBert"),
    "gpt2": lambda: language("GPT2"),
    "llama": lambda: language("Llama", hidden_size=512, intermediate_size=1376, num_attention_heads=8,
                              num_key_value_heads=4, vocab_size=4096),
}


def tensors_of(output):
    """The tensors of whatever a model gives, in order; caches of language models are left out."""
    if isinstance(output, torch.Tensor):
        return [output]
    if isinstance(output, dict):
        return [tensor for name, value in output.items() if name != "past_key_values" for tensor in tensors_of(value)]
    if isinstance(output, (list, tuple)):
        return [tensor for value in output for tensor in tensors_of(value)]
    return []


def error_of(got, expected):
    pairs = list(zip(tensors_of(got), tensors_of(expected)))
    assert pairs and all(a.shape == b.shape for a, b in pairs)
    return max(float((a - b).abs().max() / b.abs().max().clamp_min(1e-30)) for a, b in pairs)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", metavar="MODEL")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--engines", default="aglow,inductor,eager")
    parser.add_argument("--pack-weights", action="store_true", help="matrices too, which is a second copy of them")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    import aglow.torch
    for name in options.models or MODELS:
        torch._dynamo.reset()  # not between engines: it would forget those that are compiled
        torch.manual_seed(0)
        model, inputs = MODELS[name]()
        model.eval()
        calls, errors = {}, {}
        with torch.no_grad():
            expected = model(*inputs)
            for engine in options.engines.split(","):
                aglow.torch.reset()
                began = time.perf_counter()
                try:
                    own = {"threads": options.threads, "pack_weights": options.pack_weights}
                    how = {"options": own} if engine == "aglow" else {}
                    call = model if engine == "eager" else torch.compile(model, backend=engine, **how)
                    errors[engine] = error_of(call(*inputs), expected)
                except Exception as fault:  # an engine that fails is reported, and the others go on
                    print(f"{name:<18} {engine:<9} failed: {type(fault).__name__}: {str(fault).splitlines()[0][:150]}")
                    continue
                seconds = time.perf_counter() - began
                if engine == "aglow":
                    for graph in aglow.torch.report():
                        print(f"{name:<18} {graph}", flush=True)
                if errors[engine] > TOLERANCE:
                    print(f"{name:<18} {engine:<9} WRONG: differs by {errors[engine]:.1e} of the range")
                    continue
                calls[engine] = (call, seconds)
            times = {engine: [] for engine in calls}
            for _ in range(options.rounds):
                for engine, (call, _) in calls.items():
                    for _ in range(options.runs):
                        began = time.perf_counter()
                        call(*inputs)
                        times[engine].append(time.perf_counter() - began)
        for engine, taken in times.items():
            print(f"{name:<18} {engine:<9} {statistics.median(taken) * 1e3:9.2f} ms, best {min(taken) * 1e3:9.2f} ms, "
                  f"first call {calls[engine][1]:6.1f} s, error {errors[engine]:.1e}", flush=True)


if __name__ == "__main__":
    main()
