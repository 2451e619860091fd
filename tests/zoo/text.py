"""transformers' architectures with random weights and a few layers."""
import torch
import transformers
from transformers import DynamicCache, EncoderDecoderCache

from entries import Entry

VOCABULARY = 200
TOKENS = {"batch": (2, 3), "sequence": (8, 11)}
IDS = {0: "batch", 1: "sequence"}


def ids(batch, sequence):
    return torch.randint(3, VOCABULARY, (batch, sequence))


def mask(batch, sequence, blank=2):
    """All texts but the first are `blank` tokens shorter."""
    value = torch.ones(batch, sequence, dtype=torch.int64)
    value[1:, sequence - blank:] = 0
    return value


def text_inputs(batch, sequence):
    return {"input_ids": ids(batch, sequence), "attention_mask": mask(batch, sequence)}


TEXT_AXES = {"input_ids": IDS, "attention_mask": IDS}


def by_name(model, **values):
    return model(**values)


def encoder(name, kind, config, attention):
    def build():
        return kind._from_config(config(), attn_implementation=attention) if attention else kind(config())
    return Entry(name, "transformer", build, text_inputs, TOKENS, TEXT_AXES, by_name, interpreter=True)


def bert_like(**more):
    return dict(vocab_size=VOCABULARY, hidden_size=64, num_hidden_layers=2, num_attention_heads=4,
                intermediate_size=128, max_position_embeddings=64, **more)


def gpt2():
    return transformers.GPT2Config(vocab_size=VOCABULARY, n_positions=64, n_embd=64, n_layer=2, n_head=4)


def decoder_config(kind, **more):
    """Grouped queries: two heads of keys and values for four of queries."""
    return lambda: kind(vocab_size=VOCABULARY, hidden_size=64, intermediate_size=128, num_hidden_layers=2,
                        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=64, pad_token_id=0,
                        bos_token_id=1, eos_token_id=2, **more)


def first_step(model, **values):
    return model(**values, use_cache=False).logits


def first_step_keeping(model, **values):
    found = model(**values, use_cache=True)
    return found.logits, found.past_key_values


def next_step(model, input_ids, attention_mask, **past):
    flat = list(past.values())
    cache = DynamicCache(ddp_cache_data=list(zip(flat[0::2], flat[1::2])))
    found = model(input_ids=input_ids, attention_mask=attention_mask, past_key_values=cache, use_cache=True)
    return found.logits, found.past_key_values


PAST_SIZES = {"batch": (2, 3), "sequence": (3, 2), "past": (5, 9)}


def past_entry(name, model, config, layers=2, heads=2, width=16):
    """One more step: keys and values of the tokens so far are inputs, with those of the new ones they are outputs."""
    names = [f"past_{layer}_{part}" for layer in range(layers) for part in ("key", "value")]

    def inputs(batch, sequence, past):
        values = {"input_ids": ids(batch, sequence), "attention_mask": torch.ones(batch, past + sequence, dtype=torch.int64)}
        values["attention_mask"][1:, :2] = 0
        return values | {key: torch.randn(batch, heads, past, width) for key in names}
    axes = {"input_ids": IDS, "attention_mask": {0: "batch", 1: "total"}} | {key: {0: "batch", 2: "past"} for key in names}
    return Entry(f"{name} with past", "transformer", lambda: model(config()), inputs, PAST_SIZES, axes, next_step,
                 interpreter=True)


def decoder(name, model, config, heads=2):
    return [Entry(name, "transformer", lambda: model(config()), text_inputs, TOKENS, TEXT_AXES, first_step, interpreter=True),
            Entry(f"{name} giving keys", "transformer", lambda: model(config()), text_inputs, TOKENS, TEXT_AXES,
                  first_step_keeping),
            past_entry(name, model, config, heads=heads)]


def t5():
    return transformers.T5Config(vocab_size=VOCABULARY, d_model=64, d_kv=16, d_ff=128, num_layers=2, num_heads=4,
                                 decoder_start_token_id=0)


def t5_decoder_inputs(batch, sequence, source):
    return {"decoder_input_ids": ids(batch, sequence), "encoder_attention_mask": mask(batch, source),
            "encoder_hidden_states": torch.randn(batch, source, 64)}


def t5_decoder(model, decoder_input_ids, encoder_attention_mask, encoder_hidden_states):
    return model(decoder_input_ids=decoder_input_ids, attention_mask=encoder_attention_mask,
                 encoder_outputs=(encoder_hidden_states,), use_cache=False).logits


T5_PAST = [f"past_{layer}_{part}" for layer in range(2)
           for part in ("key", "value", "encoder_key", "encoder_value")]


def t5_past_inputs(batch, source, past):
    sizes = [source if "encoder" in key else past for key in T5_PAST]
    return ({"decoder_input_ids": ids(batch, 1), "encoder_attention_mask": mask(batch, source)} |
            {key: torch.randn(batch, 4, size, 16) for key, size in zip(T5_PAST, sizes)})


def t5_next_step(model, decoder_input_ids, encoder_attention_mask, **past):
    flat = list(past.values())
    own = DynamicCache(ddp_cache_data=list(zip(flat[0::4], flat[1::4])))
    cross = DynamicCache(ddp_cache_data=list(zip(flat[2::4], flat[3::4])))
    source = flat[2]
    found = model(decoder_input_ids=decoder_input_ids, attention_mask=encoder_attention_mask,
                  encoder_outputs=(source.new_zeros(source.shape[0], source.shape[2], 64),),
                  past_key_values=EncoderDecoderCache(own, cross), use_cache=True)
    return found.logits, found.past_key_values.self_attention_cache


def whisper():
    return transformers.WhisperConfig(vocab_size=VOCABULARY, d_model=64, encoder_layers=2, decoder_layers=2,
                                      encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=128,
                                      decoder_ffn_dim=128, num_mel_bins=20, max_source_positions=50,
                                      max_target_positions=32, pad_token_id=0, bos_token_id=1, eos_token_id=2,
                                      decoder_start_token_id=1)


def vit():
    return transformers.ViTConfig(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128,
                                  image_size=64, patch_size=16)


def last_state(model, **values):
    return model(**values).last_hidden_state


HIDDEN = ("batch", "source")
ENTRIES = [
    *(encoder(f"bert, {attention}", transformers.BertModel, lambda: transformers.BertConfig(**bert_like()), attention)
      for attention in ("eager", "sdpa")),
    encoder("distilbert", transformers.DistilBertModel, lambda: transformers.DistilBertConfig(
        vocab_size=VOCABULARY, dim=64, n_layers=2, n_heads=4, hidden_dim=128, max_position_embeddings=64), None),
    encoder("roberta", transformers.RobertaModel, lambda: transformers.RobertaConfig(
        **bert_like(pad_token_id=1)), None),
    *decoder("gpt2", transformers.GPT2LMHeadModel, gpt2, heads=4),
    *decoder("llama", transformers.LlamaForCausalLM, decoder_config(transformers.LlamaConfig)),
    *decoder("mistral, sliding window", transformers.MistralForCausalLM,
             decoder_config(transformers.MistralConfig, sliding_window=4)),
    *decoder("qwen2", transformers.Qwen2ForCausalLM, decoder_config(transformers.Qwen2Config)),
    *decoder("qwen3", transformers.Qwen3ForCausalLM, decoder_config(transformers.Qwen3Config, head_dim=16)),
    Entry("t5 encoder", "transformer", lambda: transformers.T5EncoderModel(t5()), text_inputs, TOKENS, TEXT_AXES,
          last_state, interpreter=True),
    Entry("t5 decoder", "transformer", lambda: transformers.T5ForConditionalGeneration(t5()), t5_decoder_inputs,
          TOKENS | {"source": (7, 10)}, {"decoder_input_ids": IDS, "encoder_attention_mask": {0: "batch", 1: "source"},
                                         "encoder_hidden_states": {0: "batch", 1: "source"}}, t5_decoder, interpreter=True),
    Entry("t5 decoder with past", "transformer", lambda: transformers.T5ForConditionalGeneration(t5()), t5_past_inputs,
          {"batch": (2, 3), "source": (7, 10), "past": (5, 9)},
          {"decoder_input_ids": {0: "batch"}, "encoder_attention_mask": {0: "batch", 1: "source"}} |
          {key: {0: "batch", 2: "source" if "encoder" in key else "past"} for key in T5_PAST}, t5_next_step,
          interpreter=True),
    Entry("vit", "transformer", lambda: transformers.ViTModel(vit(), add_pooling_layer=False),
          lambda batch: {"pixel_values": torch.rand(batch, 3, 64, 64) * 2 - 1}, {"batch": (2, 3)},
          {"pixel_values": {0: "batch"}}, last_state, interpreter=True),
    Entry("whisper encoder", "transformer", lambda: transformers.WhisperModel(whisper()).encoder,
          lambda batch: {"input_features": torch.randn(batch, 20, 100)}, {"batch": (2, 3)},
          {"input_features": {0: "batch"}}, last_state, interpreter=True),
]
