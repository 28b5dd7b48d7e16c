import { createHash } from "node:crypto"
import { Schema } from "effect"

export const faults = [
  "other name",
  "other context",
  "other version",
  "part of its version",
  "weights of another commit",
  "weights are wrong",
  "order is ignored",
  "NaN",
  "writes only one word",
  "usage one short",
  "prompt is counted differently when streamed",
  "no usage chunk",
  "always reports stop",
  "never reports stop",
  "last chunk lost",
  "no end marker",
  "sends more after the end marker",
  "two roles",
  "stop strings leak when streamed",
  "skips the best token",
  "seed is ignored",
  "temperature is ignored",
  "logit bias is ignored",
  "answers vary",
  "answers vary under load",
  "every tenth answer varies",
  "nothing is cached",
  "cached tokens are not reported",
  "salt is ignored",
  "cached answers differ",
  "answers contain text of other requests",
  "one answer for all prompts",
  "key is not found",
  "JSON mode is ignored",
  "schema is ignored when streamed",
  "some objects are filled with blanks to the limit",
  "all objects are filled with blanks to the limit",
  "objects are incomplete",
  "other objects than the schema's are cut by the limit",
  "rare keywords of schemas are ignored",
  "calls lack their last brace",
  "calls although tool_choice is none",
  "one call for two questions",
  "several calls if one is allowed",
  "functions are not in the prompt",
  "strict is ignored",
  "results are ignored",
  "accepts bad requests",
  "breaks on bad requests",
  "refuses without an error body",
  "stops after a bad request",
  "limit off by one",
  "cuts long prompts",
  "breaks at the limit",
  "reserves the last two tokens",
  "a request keeps running",
  "every other request fails"
] as const
export type Fault = (typeof faults)[number]

export const servedName = "acme/fake"

export const number = (text: string) => createHash("sha256").update(text).digest().readUInt32BE(0)

const optional = <S extends Schema.Top>(schema: S) => Schema.optionalKey(schema)
const Message = Schema.Struct({ role: Schema.String, content: Schema.Union([Schema.String, Schema.Array(Schema.Struct({ text: Schema.String }))]) })
export const Prompt = Schema.Struct({
  messages: optional(Schema.NonEmptyArray(Message)),
  prompt: optional(Schema.Union([Schema.String, Schema.NonEmptyArray(Schema.Int)])),
  temperature: optional(Schema.Finite),
  top_k: optional(Schema.Int),
  seed: optional(Schema.Int),
  logit_bias: optional(Schema.Record(Schema.String, Schema.Finite)),
  response_format: optional(Schema.Struct({ type: Schema.String, json_schema: optional(Schema.Struct({ name: Schema.String })) })),
  tools: optional(Schema.Array(Schema.Unknown)),
  tool_choice: optional(Schema.Unknown),
  parallel_tool_calls: optional(Schema.Boolean)
})
interface Asked extends Schema.Schema.Type<typeof Prompt> {
  readonly max_tokens: number
  readonly ignore_eos?: boolean
  readonly stream?: boolean
}

export const textOf = ({ messages, prompt }: Asked): string => {
  const input = messages?.map(({ content }) => (typeof content === "string" ? content : content.map(({ text }) => text).join("\n"))).join("\n") ?? prompt ?? ""
  return typeof input === "string" ? input : input.join(",")
}

const instances: Readonly<Record<string, string>> = {
  enum: '{"colour":"red"}',
  integer: '{"count":3,"large":false}',
  nested: '{"town":{"name":"Rome","old":true}}',
  array: '{"days":["mon","tue"]}',
  choice: '{"answer":null}',
  names: '{"title":"Sea"}',
  multiple: '{"count":5}'
}

/** The required answer to a prompt, regardless of the hash; null if the hash decides. */
export const formed = (body: Asked, fault: Fault | undefined): string | null => {
  const text = textOf(body)
  const format = body.response_format
  if (format?.type === "json_object") return fault === "JSON mode is ignored" ? null : '{"a":1}'
  if (format?.type === "json_schema" && format.json_schema !== undefined) {
    return fault === "schema is ignored when streamed" && body.stream === true ? "Waves come and go." : (instances[format.json_schema.name] ?? "{}")
  }
  const code = /^Repeat this code: (\S+)$/.exec(text)?.[1]
  // Past its end the answer goes on with other words.
  if (code !== undefined && body.ignore_eos !== true) return code
  const key = /The secret key is (\d+)\./.exec(text)?.[1]
  if (key !== undefined) return fault === "key is not found" ? "none" : key
  if (body.messages?.at(-1)?.role === "tool") return fault === "results are ignored" ? "It is unknown." : `It is ${body.messages.at(-1)?.content}.`
  return null
}

const call = (name: string, city: string, index: number, fault: Fault | undefined, strict = false) => {
  const members = strict ? `"city": "${city}", "unit": "kelvin", "days": 3` : `"city": "${city}"`
  return { id: `call-${index}`, type: "function", function: { name, arguments: fault === "calls lack their last brace" ? `{${members}` : `{${members}}` } }
}

/** The calls that a request with tools is answered with. */
export const callsOf = (body: Asked, fault: Fault | undefined) => {
  const text = textOf(body)
  if (body.tools === undefined || body.messages?.at(-1)?.role === "tool") return []
  if (body.tool_choice === "none") return fault === "calls although tool_choice is none" ? [call("get_weather", "Paris", 0, fault)] : []
  if (typeof body.tool_choice === "object") return [call("get_time", "Paris", 0, fault)]
  const both =
    text.includes("Rome") && fault !== "one call for two questions" && (body.parallel_tool_calls !== false || fault === "several calls if one is allowed")
  if (!text.includes("weather") && body.tool_choice !== "required") return []
  const strict = fault !== "strict is ignored" && JSON.stringify(body.tools).includes('"strict":true')
  return [call("get_weather", "Paris", 0, fault, strict), ...(both ? [call("get_weather", "Rome", 1, fault)] : [])]
}

interface Now {
  readonly fault: Fault | undefined
  readonly requests: number
  readonly active: number
  readonly natural: number
}

/** The words of an answer, how many tokens they are, and whether they ended by themselves. */
export const say = (body: Asked, { active, fault, natural, requests }: Now) => {
  const seed = textOf(body)
  const own = formed(body, fault)
  // Below that the likeliest is all that is drawn.
  const sampled = (body.temperature ?? 1) > 0.1 && body.top_k !== 1
  const drawn = !sampled || fault === "temperature is ignored" ? "" : fault === "seed is ignored" ? `drawn ${requests}` : `drawn ${body.seed}`
  const varied =
    fault === "answers vary" || (fault === "answers vary under load" && active > 1) || (fault === "every tenth answer varies" && requests % 10 === 0)
      ? String(requests)
      : ""
  const object = body.response_format?.json_schema
  if (own !== null && object !== undefined) {
    const filled =
      fault === "all objects are filled with blanks to the limit" || (fault === "some objects are filled with blanks to the limit" && object.name === "enum")
    if (filled) return { words: [`{${" ".repeat(body.max_tokens - 1)}`], ids: [1], count: body.max_tokens, ended: false }
    if (fault === "other objects than the schema's are cut by the limit" && object.name !== "enum") {
      return { words: ['{"poem":"The sea, the sea, the'], ids: [1], count: body.max_tokens, ended: false }
    }
    if (fault === "objects are incomplete") return { words: [own.slice(0, -1)], ids: [1], count: 1, ended: true }
  }
  if (own !== null) {
    const other = fault === "answers contain text of other requests" && active > 1 && /^[A-Z]\d[A-Z]{2}-/.test(own) ? lastCode(own) : own
    return { words: [other], ids: [number(own) % 1000], count: 1, ended: true }
  }
  const count = body.ignore_eos === true ? body.max_tokens : Math.min(body.max_tokens, natural)
  const ids = Array.from({ length: count }, (_, index) => number(`${seed}${drawn}${varied}${index}`) % 1000)
  const bias = Object.entries(fault === "logit bias is ignored" ? {} : (body.logit_bias ?? {}))
  const raised = bias.filter(([, value]) => value === 100).map(([each]) => Number(each))
  const biased = (id: number) => (raised.length > 0 ? (raised[id % raised.length] ?? id) : bias.some(([each]) => each === String(id)) ? id + 1 : id)
  const words = ids.map((id) => (fault === "writes only one word" ? "!" : ` w${biased(id)}`))
  return { words, ids: ids.map(biased), count, ended: body.ignore_eos !== true && natural <= body.max_tokens }
}

let last = ""
/** The code of the previous caller. */
const lastCode = (own: string): string => {
  const before = last === "" ? own : last
  last = own
  return before
}
