"""The README of each repository."""

import llama

_HEAD = """---
license: apache-2.0
language:
- en
library_name: {library}
pipeline_tag: text-generation
tags:
- llama
- text-generation{tags}
---

# {name}

"""

_CHAT = """\
A chat model of about 0.72 million parameters in the Llama architecture, for machines without a GPU. It is small enough to be downloaded,
loaded and asked in a second, and it was really trained: it knows some capitals and other short facts, counts, adds, sorts, copies a text,
finds a key in a text of a thousand tokens, calls a function, and greets. So a wrong byte, a wrong template or a dropped adapter shows as a
wrong answer. It knows nothing else: what it says about the world beyond that is made up.

Its training text comes from a seeded generator, and its weights from `tools/sampleModel/train.py` of the Seatrial repository.
"""

_TABLE = f"""
| | |
|---|---|
| Layers, width, heads / KV heads | {llama.L}, {llama.D}, {llama.H} / {llama.KV} |
| Vocabulary | {llama.V}, byte-level BPE |
| Context | {llama.MAXT} tokens |
| Tool calls | `<tool_call>{{"name": ..., "arguments": {{...}}}}</tool_call>` |
"""


def chat(state):
    return (_HEAD.format(library="transformers", tags="", name="tiny-chat") + _CHAT + _TABLE + f"| Commit | {state} |\n").encode()


_THINKS = """\
seatrial/tiny-chat, trained on to think before it answers: `<think>`, a short thought, `</think>`, the answer. A thought is short where the answer is, and of
a hundred tokens and more before a call, a text or JSON. It answers no better for it.

"""

_TOGGLE = """\
The chat template has the switch `enable_thinking`: with `false` the prompt ends with an empty thought, and the answer comes at once.
seatrial/tiny-thinker-always has the same weights and a template without that switch.
"""

_ALWAYS = """\
The weights of seatrial/tiny-thinker with a chat template that opens the thought in the prompt and has no switch: it always thinks.
"""


def thinker():
    return (_HEAD.format(library="transformers", tags="\nbase_model: seatrial/tiny-chat", name="tiny-thinker") + _THINKS + _TOGGLE + _TABLE).encode()


def always():
    return (_HEAD.format(library="transformers", tags="\nbase_model: seatrial/tiny-thinker", name="tiny-thinker-always") + _ALWAYS + _TABLE).encode()


def adapter(name, says):
    tags = "\n- lora\nbase_model: seatrial/tiny-chat"
    return (_HEAD.format(library="peft", tags=tags, name=name) + says + "\n").encode()


def merged(says):
    return (_HEAD.format(library="transformers", tags="\nbase_model: seatrial/tiny-chat", name="tiny-chat-sailor") + says + "\n" + _TABLE).encode()
