import type { InferencePath } from "@seatrial/domain"
import { type Draw, drawsOf } from "../../../../test/faults/Draw.ts"
import { capabilityUses } from "../capabilityUses.ts"

const chat = "/v1/chat/completions"

/** A request with almost every feature. */
const rich = {
  messages: [
    { role: "system", content: "s" },
    { role: "developer", content: [{ type: "text", text: "d" }], name: "n" },
    { role: "user", content: [{ type: "text", text: "u" }] },
    { role: "assistant", content: null, reasoning_content: "r", tool_calls: [{ id: "c", type: "function", function: { name: "f", arguments: "{}" } }] },
    { role: "tool", tool_call_id: "c", content: "1" },
    { role: "assistant", content: [{ type: "refusal", refusal: "no" }], refusal: null }
  ],
  tools: [
    { type: "function", function: { name: "f", description: "d", parameters: { type: "object", properties: { a: { enum: [1, null] } } }, strict: false } }
  ],
  tool_choice: { type: "function", function: { name: "f" } },
  response_format: { type: "json_schema", json_schema: { name: "a", schema: { type: "object" }, strict: true } },
  max_completion_tokens: 9,
  logit_bias: { 5: -100 },
  stop: ["a", "b"],
  seed: 7,
  temperature: 0.5,
  n: 2,
  stream: true,
  stream_options: { include_usage: true }
}

const richResponse = {
  input: [
    { role: "user", content: [{ type: "input_text", text: "u" }] },
    { type: "function_call", call_id: "c", name: "f", arguments: "{}", status: "completed" },
    { type: "function_call_output", call_id: "c", output: [{ type: "input_text", text: "1" }] },
    { type: "reasoning", id: "r", summary: [], encrypted_content: "x" },
    { type: "message", role: "assistant", id: "m", content: [{ type: "output_text", text: "a", annotations: [] }] }
  ],
  instructions: "i",
  tools: [{ type: "function", name: "f", parameters: { type: "object" }, strict: false }],
  tool_choice: { type: "function", name: "f" },
  text: { format: { type: "json_schema", name: "a", schema: {} }, verbosity: "medium" },
  reasoning: { effort: "low", summary: "auto" },
  include: ["reasoning.encrypted_content"],
  store: false,
  stream: true
}
const richMessage = {
  max_tokens: 9,
  system: [{ type: "text", text: "s", cache_control: { type: "ephemeral" } }],
  messages: [
    { role: "user", content: "u" },
    {
      role: "assistant",
      content: [
        { type: "thinking", thinking: "t", signature: "x" },
        { type: "tool_use", id: "c", name: "f", input: { a: null } }
      ]
    },
    { role: "user", content: [{ type: "tool_result", tool_use_id: "c", content: [{ type: "text", text: "1" }], is_error: false }] }
  ],
  tools: [{ name: "f", description: "d", input_schema: { type: "object" }, cache_control: { type: "ephemeral" } }],
  tool_choice: { type: "auto", disable_parallel_tool_use: true },
  thinking: { type: "disabled" },
  output_config: { effort: "low" },
  stop_sequences: ["a"],
  stream: true
}

const bases: ReadonlyArray<readonly [path: InferencePath, body: Readonly<Record<string, unknown>>]> = [
  ...capabilityUses.filter(({ capability }) => !capability.startsWith("supports_image")).map(({ body, path }) => [path, body] as const),
  ...Array.from({ length: 20 }, () => [chat, rich] as const),
  ["/v1/completions", { prompt: ["a", "b"], echo: true, logprobs: 1, n: 2, temperature: 1, stream: true }],
  ...Array.from({ length: 6 }, () => ["/v1/responses", richResponse] as const),
  ...Array.from({ length: 6 }, () => ["/v1/messages", richMessage] as const),
  ["/v1/completions", { prompt: [[1, 2], [3]], max_tokens: 3, stop: "a", response_format: { type: "json_object" } }]
]

const names = [
  ...[
    "__proto__",
    "constructor",
    "toString",
    "model",
    "messages",
    "content",
    "type",
    "role",
    "n",
    "x",
    "",
    "cache_salt",
    "rid",
    "request_id",
    "priority",
    "lora_path"
  ],
  ...[
    "chat_template",
    "guided_json",
    "regex",
    "documents",
    "kv_transfer_params",
    "vllm_xargs",
    "ignore_eos",
    "min_tokens",
    "return_token_ids",
    "tools",
    "stop",
    "seed"
  ],
  ...["image_url", "uuid", "suffix", "best_of", "strict", "name", "text", "schema", "enable_thinking", "include_usage", "continuous_usage_stats", "0", "-1"]
] as const

const deep = (levels: number): unknown => (levels === 0 ? 1 : levels % 2 === 0 ? [deep(levels - 1)] : { a: deep(levels - 1) })

const junk = (draw: Draw): unknown =>
  draw.pick<() => unknown>([
    () => null,
    () => true,
    () => false,
    () => draw.pick([0, -1, 1, 1.5, 2 ** 31, 2 ** 53 + 2, -(2 ** 63), 1e308, 5e-324]),
    () => draw.pick(["", "a", "auto", "none", "required", "json_object", "function", "text", "\u0000", "\ud800", "é".repeat(50)]),
    () => [],
    () => ({}),
    () => [null],
    () => [[]],
    () => ({ [draw.pick(names)]: draw.pick<unknown>([1, "a", null]) }),
    () => deep(draw.integer(1, 80))
  ])()

type Node = Array<unknown> | Record<string, unknown>
const isNode = (value: unknown): value is Node => typeof value === "object" && value !== null

const nodesOf = (value: unknown, found: Array<Node> = []): Array<Node> => {
  if (!isNode(value)) return found
  found.push(value)
  for (const inner of Object.values(value)) nodesOf(inner, found)
  return found
}

const set = (node: Node, name: string, value: unknown) => Object.defineProperty(node, name, { value, enumerable: true, configurable: true, writable: true })

/** Changes one place in a tree. */
const mutate = (root: Node, draw: Draw): void => {
  const nodes = nodesOf(root)
  const node = nodes[draw.integer(0, nodes.length - 1)] ?? root
  const at = Object.keys(node)
  const name = at[draw.integer(0, Math.max(0, at.length - 1))]
  const other = nodes[draw.integer(0, nodes.length - 1)] ?? root
  draw.pick<() => void>([
    () => name !== undefined && (Array.isArray(node) ? node.splice(Number(name), 1) : Reflect.deleteProperty(node, name)),
    () => name !== undefined && set(node, name, junk(draw)),
    () => name !== undefined && set(node, name, junk(draw)),
    () => (Array.isArray(node) ? node.push(junk(draw)) : set(node, draw.pick(names), junk(draw))),
    () => name !== undefined && !Array.isArray(node) && set(node, draw.pick(names), Reflect.get(node, name)),
    () => name !== undefined && set(node, name, structuredClone(other)),
    () => Array.isArray(node) && node.push(...Array.from({ length: draw.integer(1, 140) }, () => structuredClone(node[0] ?? 1)))
  ])()
}

/** Changes the text. */
const mangle = (text: string, draw: Draw): string => {
  const at = draw.integer(0, text.length)
  return draw.pick<() => string>([
    () => text.slice(0, at),
    () => text.slice(0, at) + draw.pick(['"', "{", "}", "[", ",", "\\", "1", "e999", "\u2028", "é"]) + text.slice(at),
    () => text.slice(0, at) + text.slice(at + draw.integer(1, 5)),
    () =>
      text.replace(/\d+/, () => draw.pick(["1e999", "-1e999", "99999999999999999999", "9223372036854775807", "1e-999", "0.12345678901234567890", "00", "-0"])),
    () => `{${draw.pick(['"model":"acme/tiny"', '"n":1e2', '"seed":1', '"stream":true', '"__proto__":{"a":1}'])},${text.slice(1)}`
  ])()
}

export interface MutatedBody {
  readonly path: InferencePath
  readonly text: string
}

/** The bodies generated from a seed: requests of both paths, each with one to four changes. */
export const mutatedBodies = function* (seed: number, count: number): Generator<MutatedBody> {
  const draw = drawsOf(seed)
  for (let index = 0; index < count; index++) {
    const [path, base] = bases[draw.integer(0, bases.length - 1)] ?? [chat, rich]
    const body: Node = { model: "acme/tiny", ...structuredClone(base) }
    for (let changes = draw.integer(0, 3); changes > 0; changes--) mutate(body, draw)
    const text = JSON.stringify(body)
    yield { path, text: draw.chance(0.25) ? mangle(text, draw) : text }
  }
}
