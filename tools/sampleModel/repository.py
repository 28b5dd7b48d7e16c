"""The files of a model repository, as Hugging Face names and writes them."""

import hashlib
import json
import os
import struct

import numpy as np

import llama
from bpe import Tokenizer

_TEMPLATE = """\
{%- macro text(content) %}
{%- if content is string %}
{{- content }}
{%- elif content %}
{%- for part in content %}
{{- part['text'] }}
{%- if not loop.last %}
{{- '\\n' }}
{%- endif %}
{%- endfor %}
{%- endif %}
{%- endmacro %}
{{- bos_token }}
{%- set turns = messages %}
{%- if tools %}
{{- '<|system|>' }}
{%- if messages[0]['role'] == 'system' %}
{{- text(messages[0]['content']) + '\\n\\n' }}
{%- set turns = messages[1:] %}
{%- endif %}
{{- 'Functions:\\n' }}
{%- for tool in tools %}
{%- set function = tool['function'] if tool['function'] else tool %}
{{- function['name'] + '(' }}
{%- if function['parameters'] and function['parameters']['properties'] %}
{%- for key, value in function['parameters']['properties'].items() %}
{{- key + ': ' + (value['type'] if value['type'] is string else 'any') }}
{%- if not loop.last %}
{{- ', ' }}
{%- endif %}
{%- endfor %}
{%- endif %}
{{- ')\\n' }}
{%- endfor %}
{{- '<|end|>' }}
{%- endif %}
{%- for message in turns %}
{%- if message['role'] not in ['system', 'user', 'assistant', 'tool'] %}
{{- raise_exception('Unknown role: ' + message['role']) }}
{%- endif %}
{{- '<|' + message['role'] + '|>' + CONTENT }}
{%- if message['tool_calls'] %}
{%- for call in message['tool_calls'] %}
{%- set function = call['function'] if call['function'] else call %}
{%- if message['content'] or not loop.first %}
{{- '\\n' }}
{%- endif %}
{{- '<tool_call>{"name": "' + function['name'] + '", "arguments": ' }}
{%- if function['arguments'] is string %}
{{- function['arguments'] }}
{%- else %}
{{- function['arguments'] | tojson }}
{%- endif %}
{{- '}</tool_call>' }}
{%- endfor %}
{%- endif %}
{{- '<|end|>' }}
{%- endfor %}
{%- if add_generation_prompt %}
{{- '<|assistant|>' }}THINKING
{%- endif %}"""

_SAID = "(text(message['content']).split('</think>')[-1].lstrip('\\n') if message['role'] == 'assistant' else text(message['content']))"
"""What was said in a turn, without what was thought before it."""

TEMPLATE = _TEMPLATE.replace("CONTENT", "text(message['content'])").replace("THINKING", "")
THINKING_TEMPLATE = _TEMPLATE.replace("CONTENT", _SAID).replace("THINKING", """
{%- if enable_thinking is defined and enable_thinking is false %}
{{- '<think>\\n\\n</think>\\n\\n' }}
{%- endif %}""")
"""Of a model that thinks unless it is told not to."""
ALWAYS_TEMPLATE = _TEMPLATE.replace("CONTENT", _SAID).replace("THINKING", "\n{{- '<think>\\n' }}")
"""Of a model that always thinks: the prompt opens the thought."""


def to_json(value):
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode()


def bfloat16(values):
    """The nearest bfloat16 bit patterns, ties to even."""
    words = np.ascontiguousarray(values, np.float32).view(np.uint32)
    return ((words + 0x7FFF + ((words >> 16) & 1)) >> 16).astype(np.uint16)


def rounded(values):
    """What bfloat16 keeps of the values."""
    return (bfloat16(values).astype(np.uint32) << 16).view(np.float32)


def safetensors(tensors):
    """A safetensors file of (name, values) pairs, as bfloat16."""
    header, data, at = {"__metadata__": {"format": "pt"}}, [], 0
    for name, values in tensors:
        raw = bfloat16(values).astype("<u2").tobytes()
        header[name] = {"dtype": "BF16", "shape": list(values.shape), "data_offsets": [at, at + len(raw)]}
        data.append(raw)
        at += len(raw)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + b"".join(data)


def tensors_in(path):
    """The values of a safetensors file of bfloat16, flat, in the order of `llama.LAYOUT`."""
    with open(path, "rb") as file:
        raw = file.read()
    start = 8 + struct.unpack("<Q", raw[:8])[0]
    header, out = json.loads(raw[8:start]), np.zeros(llama.SIZE, np.float32)
    for name, values in llama.views(out).items():
        first, end = header[name]["data_offsets"]
        values[:] = (np.frombuffer(raw[start + first : start + end], "<u2").astype(np.uint32) << 16).view(np.float32).reshape(values.shape)
    return out


def _added(content, special):
    return {"content": content, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": special}


def pad_of(tok: Tokenizer):
    return "<|pad|>" if "<|pad|>" in tok.added else "<|end|>"


def tokenizer_files(tok: Tokenizer, template=TEMPLATE):
    ids, begin = tok.added, "<|begin|>"
    mark = {"SpecialToken": {"id": begin, "type_id": 0}}
    again = {"SpecialToken": {"id": begin, "type_id": 1}}
    tokens = {"bos_token": begin, "eos_token": "<|end|>", "pad_token": pad_of(tok)}
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return {
        "special_tokens_map.json": to_json(tokens),
        "tokenizer.json": to_json(
            {
                "version": "1.0",
                "truncation": None,
                "padding": None,
                "added_tokens": [{"id": at, **_added(content, content in tok.special)} for content, at in ids.items()],
                "normalizer": None,
                "pre_tokenizer": byte_level,
                "post_processor": {
                    "type": "TemplateProcessing",
                    "single": [mark, {"Sequence": {"id": "A", "type_id": 0}}],
                    "pair": [mark, {"Sequence": {"id": "A", "type_id": 0}}, again, {"Sequence": {"id": "B", "type_id": 1}}],
                    "special_tokens": {begin: {"id": begin, "ids": [ids[begin]], "tokens": [begin]}},
                },
                "decoder": {**byte_level, "add_prefix_space": True},
                "model": {
                    "type": "BPE",
                    "dropout": None,
                    "unk_token": None,
                    "continuing_subword_prefix": None,
                    "end_of_word_suffix": None,
                    "fuse_unk": False,
                    "byte_fallback": False,
                    "ignore_merges": False,
                    "vocab": tok.vocabulary,
                    "merges": [list(pair) for pair in tok.merges],
                },
            }
        ),
        "tokenizer_config.json": to_json(
            {
                "added_tokens_decoder": {str(at): _added(content, content in tok.special) for content, at in ids.items()},
                **tokens,
                "chat_template": template,
                "clean_up_tokenization_spaces": False,
                "model_max_length": llama.MAXT,
                "tokenizer_class": "PreTrainedTokenizerFast",
            }
        ),
    }


def config_files(tok: Tokenizer):
    ids = tok.added
    ends = {"bos_token_id": ids["<|begin|>"], "eos_token_id": ids["<|end|>"], "pad_token_id": ids[pad_of(tok)]}
    return {
        "config.json": to_json(
            {
                "architectures": ["LlamaForCausalLM"],
                "attention_bias": False,
                "attention_dropout": 0.0,
                "bos_token_id": ends["bos_token_id"],
                "eos_token_id": ends["eos_token_id"],
                "head_dim": llama.HD,
                "hidden_act": "silu",
                "hidden_size": llama.D,
                "initializer_range": 0.02,
                "intermediate_size": llama.F,
                "max_position_embeddings": llama.MAXT,
                "mlp_bias": False,
                "model_type": "llama",
                "num_attention_heads": llama.H,
                "num_hidden_layers": llama.L,
                "num_key_value_heads": llama.KV,
                "pad_token_id": ends["pad_token_id"],
                "rms_norm_eps": 1e-05,
                "rope_scaling": None,
                "rope_theta": llama.THETA,
                "tie_word_embeddings": False,
                "torch_dtype": "bfloat16",
                "transformers_version": "4.57.1",
                "use_cache": True,
                "vocab_size": llama.V,
            }
        ),
        "generation_config.json": to_json({**ends, "do_sample": True, "temperature": 0.7, "top_p": 0.9}),
    }


def write(directory, files):
    """Writes the files; their hashes, by name."""
    os.makedirs(directory, exist_ok=True)
    for name, content in files.items():
        with open(os.path.join(directory, name), "wb") as file:
            file.write(content)
    return {name: hashlib.sha256(content).hexdigest() for name, content in sorted(files.items())}
