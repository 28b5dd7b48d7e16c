# Usage: python convert.py FILE.gguf FOLDER
# Writes the repository of a Llama model from a GGUF file, as a hub would have it: config.json, generation_config.json, tokenizer.json,
# tokenizer_config.json and model.safetensors. Its 4-bit and 8-bit values become the 32-bit numbers that they stand for; nothing else is lost or made up.
# Needs gguf and numpy.
import json
import struct
import sys
from pathlib import Path

import numpy as np
from gguf import GGUFReader, GGMLQuantizationType, dequantize

LAYER_PARTS = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
CONTROL = 3


def hub_name(name: str) -> str:
    """The name that a tensor of the file has in a repository."""
    whole = {"token_embd.weight": "model.embed_tokens.weight", "output_norm.weight": "model.norm.weight", "output.weight": "lm_head.weight"}
    if name in whole:
        return whole[name]
    _, layer, part, _ = name.split(".")
    return f"model.layers.{layer}.{LAYER_PARTS[part]}.weight"


def unpermuted(values: np.ndarray, heads: int) -> np.ndarray:
    """Rows of Q and K in the order of the repository: GGUF stores the two halves of each head in turns."""
    rows, columns = values.shape
    return values.reshape(heads, rows // heads // 2, 2, columns).swapaxes(1, 2).reshape(rows, columns)


def tensors_of(reader: GGUFReader, heads: int, kv_heads: int) -> dict[str, np.ndarray]:
    tensors = {}
    for tensor in reader.tensors:
        values = tensor.data if tensor.tensor_type == GGMLQuantizationType.F32 else dequantize(tensor.data, tensor.tensor_type)
        values = np.asarray(values, dtype=np.float32).reshape([int(side) for side in reversed(tensor.shape)])
        part = tensor.name.split(".")[2] if tensor.name.startswith("blk.") else ""
        if part in ("attn_q", "attn_k"):
            values = unpermuted(values, heads if part == "attn_q" else kv_heads)
        tensors[hub_name(tensor.name)] = values
    return tensors


def write_safetensors(path: Path, tensors: dict[str, np.ndarray]) -> None:
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    position = 0
    for name in sorted(tensors):
        size = tensors[name].nbytes
        header[name] = {"dtype": "F32", "shape": list(tensors[name].shape), "data_offsets": [position, position + size]}
        position += size
    text = json.dumps(header, separators=(",", ":"))
    head = text.ljust((len(text) + 7) // 8 * 8).encode()
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(head)))
        file.write(head)
        for name in sorted(tensors):
            file.write(np.ascontiguousarray(tensors[name]).tobytes())


def tokenizer_of(tokens: list[str], kinds: list[int], merges: list[str]) -> dict[str, object]:
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    special = [token for token, kind in zip(tokens, kinds) if kind == CONTROL]
    ids = {token: index for index, token in enumerate(tokens)}
    added = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": ids[token], "content": token, **added} for token in special],
        "normalizer": None,
        # Digits are tokens of their own.
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": True}, byte_level]},
        "post_processor": None,
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": ids,
            "merges": [merge.split(" ") for merge in merges],
        },
    }


def main(source: str, target: str) -> None:
    reader = GGUFReader(source)

    def field(name: str):
        return reader.fields[name].contents()

    folder = Path(target)
    folder.mkdir(parents=True, exist_ok=True)
    heads, kv_heads = field("llama.attention.head_count"), field("llama.attention.head_count_kv")
    tokens = field("tokenizer.ggml.tokens")
    begin, end = field("tokenizer.ggml.bos_token_id"), field("tokenizer.ggml.eos_token_id")
    tensors = tensors_of(reader, heads, kv_heads)

    def write(name: str, value: object) -> None:
        (folder / name).write_text(json.dumps(value, ensure_ascii=False, indent=2) + "\n", encoding="utf8")

    write(
        "config.json",
        {
            "architectures": ["LlamaForCausalLM"],
            "model_type": "llama",
            "attention_bias": False,
            "bos_token_id": begin,
            "eos_token_id": end,
            "hidden_act": "silu",
            "hidden_size": field("llama.embedding_length"),
            "intermediate_size": field("llama.feed_forward_length"),
            "max_position_embeddings": field("llama.context_length"),
            "mlp_bias": False,
            "num_attention_heads": heads,
            "num_hidden_layers": field("llama.block_count"),
            "num_key_value_heads": kv_heads,
            "rms_norm_eps": round(field("llama.attention.layer_norm_rms_epsilon"), 9),
            "rope_theta": field("llama.rope.freq_base"),
            "tie_word_embeddings": "lm_head.weight" not in tensors,
            "torch_dtype": "float32",
            "vocab_size": len(tokens),
        },
    )
    write("generation_config.json", {"bos_token_id": begin, "eos_token_id": end})
    write("tokenizer.json", tokenizer_of(tokens, field("tokenizer.ggml.token_type"), field("tokenizer.ggml.merges")))
    write(
        "tokenizer_config.json",
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "add_prefix_space": False,
            "bos_token": tokens[begin],
            "eos_token": tokens[end],
            "unk_token": tokens[field("tokenizer.ggml.unknown_token_id")],
            "pad_token": tokens[field("tokenizer.ggml.padding_token_id")],
            "model_max_length": field("llama.context_length"),
            "clean_up_tokenization_spaces": False,
            "chat_template": field("tokenizer.chat_template"),
        },
    )
    write_safetensors(folder / "model.safetensors", tensors)


main(*sys.argv[1:])
