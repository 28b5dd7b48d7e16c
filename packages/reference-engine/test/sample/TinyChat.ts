import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { applyMerges, byteCharacters, learnMerges } from "./Bpe.ts"
import { corpus } from "./corpus.ts"
import { encodeSafetensors } from "./SafetensorsFile.ts"
import { tinyShape, tinyWeights } from "./TinyWeights.ts"

/**
 * Which sample model to generate. Another seed or variant gives other weights. The second variant represents a later
 * commit of the same repository.
 */
export interface TinyChatOptions {
  readonly seed: number
  readonly variant?: "first" | "second"
}

const special = ["<|begin|>", "<|end|>", "<|system|>", "<|user|>", "<|assistant|>", "<|tool|>", "<|pad|>", "<|reserved|>"] as const

const chatTemplate = [
  "{{- bos_token }}",
  "{%- for message in messages %}",
  "{%- if message['role'] not in ['system', 'user', 'assistant', 'tool'] %}",
  "{{- raise_exception('Unknown role: ' + message['role']) }}",
  "{%- endif %}",
  "{{- '<|' + message['role'] + '|>' + message['content'] + '<|end|>' }}",
  "{%- endfor %}",
  "{%- if add_generation_prompt %}",
  "{{- '<|assistant|>' }}",
  "{%- endif %}"
].join("\n")

const readme = (variant: string) => `---
license: apache-2.0
language:
- en
library_name: transformers
pipeline_tag: text-generation
tags:
- llama
- text-generation
---

# tiny-chat

A chat model of about 0.72 million parameters in the Llama architecture, for machines without a GPU. It is small enough to be downloaded,
loaded and asked in a second, and it has every file that a real repository has. Its weights come from a seeded random number generator and
from counts of word pairs in a page of text: it writes words about ships, not answers.

| | |
|---|---|
| Layers, width, heads / KV heads | ${tinyShape.layers}, ${tinyShape.hidden}, ${tinyShape.heads} / ${tinyShape.kvHeads} |
| Vocabulary | ${tinyShape.vocabulary}, byte-level BPE |
| Context | ${tinyShape.maxLength} tokens |
| Variant | ${variant} |
`

const config = (begin: number, end: number, pad: number) => ({
  architectures: ["LlamaForCausalLM"],
  attention_bias: false,
  attention_dropout: 0,
  bos_token_id: begin,
  eos_token_id: end,
  head_dim: tinyShape.headDim,
  hidden_act: "silu",
  hidden_size: tinyShape.hidden,
  initializer_range: 0.02,
  intermediate_size: tinyShape.intermediate,
  max_position_embeddings: tinyShape.maxLength,
  mlp_bias: false,
  model_type: "llama",
  num_attention_heads: tinyShape.heads,
  num_hidden_layers: tinyShape.layers,
  num_key_value_heads: tinyShape.kvHeads,
  pad_token_id: pad,
  rms_norm_eps: 0.00001,
  rope_scaling: null,
  rope_theta: 10000,
  tie_word_embeddings: false,
  torch_dtype: "bfloat16",
  transformers_version: "4.57.1",
  use_cache: true,
  vocab_size: tinyShape.vocabulary
})

const addedToken = (id: number, content: string) => ({ id, content, single_word: false, lstrip: false, rstrip: false, normalized: false, special: true })

const tokenizerFile = (vocabulary: ReadonlyMap<string, number>, merges: ReadonlyArray<readonly [string, string]>, ids: ReadonlyMap<string, number>) => ({
  version: "1.0",
  truncation: null,
  padding: null,
  added_tokens: [...ids].map(([content, id]) => addedToken(id, content)),
  normalizer: null,
  pre_tokenizer: { type: "ByteLevel", add_prefix_space: false, trim_offsets: true, use_regex: true },
  post_processor: {
    type: "TemplateProcessing",
    single: [{ SpecialToken: { id: "<|begin|>", type_id: 0 } }, { Sequence: { id: "A", type_id: 0 } }],
    pair: [
      { SpecialToken: { id: "<|begin|>", type_id: 0 } },
      { Sequence: { id: "A", type_id: 0 } },
      { SpecialToken: { id: "<|begin|>", type_id: 1 } },
      { Sequence: { id: "B", type_id: 1 } }
    ],
    special_tokens: { "<|begin|>": { id: "<|begin|>", ids: [ids.get("<|begin|>")], tokens: ["<|begin|>"] } }
  },
  decoder: { type: "ByteLevel", add_prefix_space: true, trim_offsets: true, use_regex: true },
  model: {
    type: "BPE",
    dropout: null,
    unk_token: null,
    continuing_subword_prefix: null,
    end_of_word_suffix: null,
    fuse_unk: false,
    byte_fallback: false,
    ignore_merges: false,
    vocab: Object.fromEntries(vocabulary),
    merges
  }
})

const made = new Map<string, ReadonlyMap<string, Uint8Array>>()

/**
 * The files of a complete chat model repository, by name. The same options give the same bytes on every machine. Do not
 * change the bytes: a process computes each model once.
 */
export const makeTinyChat = ({ seed, variant = "first" }: TinyChatOptions): ReadonlyMap<string, Uint8Array> => {
  const key = `${seed} ${variant}`
  const files = made.get(key) ?? computeTinyChat(seed, variant)
  made.set(key, files)
  return files
}

const computeTinyChat = (seed: number, variant: NonNullable<TinyChatOptions["variant"]>): ReadonlyMap<string, Uint8Array> => {
  const merges = learnMerges(corpus, tinyShape.vocabulary - byteCharacters.length - special.length)
  const pieces = [...byteCharacters, ...merges.map(([left, right]) => left + right)]
  const vocabulary = new Map(pieces.map((piece, id) => [piece, id]))
  const ids = new Map<string, number>(special.map((token, index) => [token, pieces.length + index]))
  if (vocabulary.size + ids.size !== tinyShape.vocabulary) throw new Error("two merges give the same piece")
  const id = (token: (typeof special)[number]) => ids.get(token) ?? 0
  const sequences = corpus
    .split("\n")
    .map((line) => [id("<|assistant|>"), ...applyMerges(line, merges).map((piece) => vocabulary.get(piece) ?? 0), id("<|end|>")])
  const weights = tinyWeights(variant === "first" ? seed : seed + 1_000_003, sequences)
  const tokens = { bos_token: "<|begin|>", eos_token: "<|end|>", pad_token: "<|pad|>" }
  const json = (value: unknown) => new TextEncoder().encode(`${JSON.stringify(value, null, 2)}\n`)
  return new Map([
    ["README.md", new TextEncoder().encode(readme(variant))],
    ["config.json", json(config(id("<|begin|>"), id("<|end|>"), id("<|pad|>")))],
    [
      "generation_config.json",
      json({ bos_token_id: id("<|begin|>"), do_sample: true, eos_token_id: id("<|end|>"), pad_token_id: id("<|pad|>"), temperature: 0.7, top_p: 0.9 })
    ],
    ["model.safetensors", encodeSafetensors(weights)],
    ["special_tokens_map.json", json(tokens)],
    ["tokenizer.json", json(tokenizerFile(vocabulary, merges, ids))],
    [
      "tokenizer_config.json",
      json({
        added_tokens_decoder: Object.fromEntries([...ids].map(([content, tokenId]) => [tokenId, { ...addedToken(tokenId, content), id: undefined }])),
        ...tokens,
        chat_template: chatTemplate,
        clean_up_tokenization_spaces: false,
        model_max_length: tinyShape.maxLength,
        tokenizer_class: "PreTrainedTokenizerFast"
      })
    ]
  ])
}

/** Writes the files of `makeTinyChat` to `directory` and creates the directory if necessary. */
export const writeTinyChat = (directory: string, options: TinyChatOptions): void => {
  mkdirSync(directory, { recursive: true })
  for (const [name, bytes] of makeTinyChat(options)) writeFileSync(join(directory, name), bytes)
}
