#!/usr/bin/env python3
"""Writes the models that peers.py measures as ONNX files, with random weights from a fixed seed.

    build/bench-venv/bin/python bench/export_models.py [--models NAME,…] [--output build/bench-models]

The architectures are those of torchvision and transformers, for one image of 224x224 (299x299 for Inception-v3) or one
text of 128 tokens; a U-Net of five levels for one of 256x256; two layers of an LSTM with 512 elements for 50 steps; and
three layers of an MLP.
Beside NAME.onnx stand NAME/INPUT.npy, an input each, and NAME/expected.npy, what the model gives for them in float64.
"""
import argparse
import os
import pathlib
import sys
import warnings

ROOT = pathlib.Path(__file__).resolve().parents[1]
FOLDER = ROOT / "build" / "bench-models"
SEED = 1


def image_model(name, size=224, **options):
    import torch
    import torchvision
    model = getattr(torchvision.models, name)(weights=None, **options)
    # Fresh statistics would leave a batch normalisation with nothing to do.
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.running_mean.uniform_(-0.2, 0.2)
            module.running_var.uniform_(0.8, 1.2)
    return model, {"image": torch.rand(1, 3, size, size) * 2 - 1}


def bert(attention, **sizes):
    import torch
    import transformers

    class Bert(torch.nn.Module):
        def __init__(self):
            super().__init__()
            config = transformers.BertConfig(attn_implementation=attention, **sizes)
            self.bert = transformers.BertModel(config, add_pooling_layer=False)

        def forward(self, input_ids, attention_mask, token_type_ids):
            return self.bert(input_ids=input_ids, attention_mask=attention_mask,
                             token_type_ids=token_type_ids).last_hidden_state

    tokens = (1, 128)
    inputs = {"input_ids": torch.randint(0, 30000, tokens),
              "attention_mask": torch.ones(tokens, dtype=torch.int64),
              "token_type_ids": torch.zeros(tokens, dtype=torch.int64)}
    inputs["attention_mask"][:, 120:] = 0
    inputs["token_type_ids"][:, 64:] = 1
    return Bert(), inputs


def language_model(model):
    """The scores of the next token after each of 128."""
    import torch

    class LanguageModel(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, input_ids, attention_mask):
            return self.model(input_ids=input_ids, attention_mask=attention_mask, use_cache=False).logits

    tokens = (1, 128)
    return LanguageModel(), {"input_ids": torch.randint(0, model.config.vocab_size, tokens),
                             "attention_mask": torch.ones(tokens, dtype=torch.int64)}


def gpt2(attention):
    import transformers
    return language_model(transformers.GPT2LMHeadModel(transformers.GPT2Config(attn_implementation=attention)))


def llama(attention):
    """100 million parameters."""
    import transformers
    config = transformers.LlamaConfig(vocab_size=16000, hidden_size=768, intermediate_size=2048, num_hidden_layers=12,
                                      num_attention_heads=12, num_key_value_heads=4, max_position_embeddings=512,
                                      attn_implementation=attention)
    return language_model(transformers.LlamaForCausalLM(config))


def mlp():
    import torch
    sizes = (784, 512, 256, 10)
    layers = [layer for a, b in zip(sizes, sizes[1:]) for layer in (torch.nn.Linear(a, b), torch.nn.ReLU())]
    return torch.nn.Sequential(*layers[:-1]), {"x": torch.rand(1, sizes[0]) * 2 - 1}


def lstm():
    import torch

    class Lstm(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm = torch.nn.LSTM(512, 512, num_layers=2)

        def forward(self, x):
            return self.lstm(x)[0]

    return Lstm(), {"x": torch.rand(50, 1, 512) * 2 - 1}


def unet():
    import torch
    from torch import nn

    def twice(inputs, outputs):
        return nn.Sequential(*[layer for width in (inputs, outputs)
                               for layer in (nn.Conv2d(width, outputs, 3, padding=1), nn.ReLU())])

    class UNet(nn.Module):
        def __init__(self, widths=(32, 64, 128, 256, 512)):
            super().__init__()
            self.down = nn.ModuleList(twice(a, b) for a, b in zip((3,) + widths, widths))
            self.up = nn.ModuleList(nn.ConvTranspose2d(b, a, 2, 2) for a, b in zip(widths, widths[1:]))
            self.join = nn.ModuleList(twice(2 * a, a) for a in widths[:-1])
            self.last = nn.Conv2d(widths[0], 2, 1)

        def forward(self, x):
            kept = []
            for number, block in enumerate(self.down):
                x = block(nn.functional.max_pool2d(x, 2) if number else x)
                kept.append(x)
            for level in reversed(range(len(self.up))):
                x = self.join[level](torch.cat([self.up[level](x), kept[level]], 1))
            return self.last(x)

    return UNet(), {"image": torch.rand(1, 3, 256, 256) * 2 - 1}


# Without the heads that only training has; weights as torch's layers draw them, which takes no time.
BRANCHES = {"aux_logits": False, "init_weights": False}

MODELS = {
    "resnet50": lambda attention: image_model("resnet50"),
    "vgg19": lambda attention: image_model("vgg19"),
    "mobilenet_v2": lambda attention: image_model("mobilenet_v2"),
    "bert_base": bert,
    "efficientnet_b0": lambda attention: image_model("efficientnet_b0"),
    "densenet121": lambda attention: image_model("densenet121"),
    "googlenet": lambda attention: image_model("googlenet", **BRANCHES),
    "inception_v3": lambda attention: image_model("inception_v3", 299, **BRANCHES),
    "unet": lambda attention: unet(),
    "lstm": lambda attention: lstm(),
    "mlp": lambda attention: mlp(),
    "gpt2": gpt2,
    "llama": llama,
    "minilm": lambda attention: bert(attention, hidden_size=384, num_hidden_layers=6, intermediate_size=1536),
}


def build(name, attention="eager"):
    """The torch module and its inputs by name, always the same; attention says how transformers computes it."""
    import torch
    torch.manual_seed(SEED)
    with torch.no_grad():
        model, inputs = MODELS[name](attention)
    return model.eval(), inputs


def model_file(name, folder=FOLDER):
    return pathlib.Path(folder) / f"{name}.onnx"


def input_files(name, folder=FOLDER):
    """The files by the inputs' names, in any order."""
    return {path.stem: path for path in sorted((pathlib.Path(folder) / name).glob("*.npy")) if path.stem != "expected"}


def expected_file(name, folder=FOLDER):
    return pathlib.Path(folder) / name / "expected.npy"


def export(name, folder=FOLDER):
    """Writes a model's files unless they exist."""
    if name not in MODELS:
        import int8
        return int8.export(name, folder)
    import numpy
    import torch
    target = model_file(name, folder)
    if target.exists():
        return None
    values = pathlib.Path(folder) / name
    values.mkdir(parents=True, exist_ok=True)
    model, inputs = build(name)
    temporary = target.with_suffix(".tmp")
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the exporter: shapes become constants, as they should
        torch.onnx.export(model, tuple(inputs.values()), str(temporary), input_names=list(inputs), output_names=["y"],
                          opset_version=17, do_constant_folding=True, dynamo=False)
        wide = [value.double() if value.is_floating_point() else value for value in inputs.values()]
        numpy.save(expected_file(name, folder), model.double()(*wide).numpy())
    for key, value in inputs.items():
        numpy.save(values / f"{key}.npy", value.numpy())
    os.replace(temporary, target)
    print(f"{target} ({target.stat().st_size / 1e6:.0f} MB)", flush=True)
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", default=",".join(MODELS), help="some of: %(default)s")
    parser.add_argument("--output", type=pathlib.Path, default=FOLDER, metavar="DIR")
    options = parser.parse_args()
    for name in options.models.split(","):
        if name not in MODELS:
            sys.exit(f"there is no model '{name}'; there are: {', '.join(MODELS)}")
        export(name, options.output)


if __name__ == "__main__":
    main()
