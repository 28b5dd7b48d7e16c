import { jsonOfPython } from "@seatrial/domain"
import { Predicate, Result } from "effect"
import { Unreadable } from "./failures.ts"
import { floatSize } from "./floatSize.ts"
import { maxDepth } from "./JsonScanner.ts"

/** Maximum number of values in one file. Parsed values take many times the space of their text. */
const maxValues = 100_000

const quote = 0x22
const backslash = 0x5c
const colon = 0x3a

const tableOf = (amounts: Readonly<Record<string, number>>) => Int8Array.from({ length: 256 }, (_, byte) => amounts[String.fromCharCode(byte)] ?? 0)
/** By how much a byte outside of strings changes the depth. */
const depthChange = tableOf({ "{": 1, "[": 1, "}": -1, "]": -1 })
/** How many values begin after a byte outside of strings. */
const valuesAfter = tableOf({ "{": 1, "[": 1, ",": 1 })

/** The position of the closing quote of a string whose first byte is at `from`, or at least the length. */
const closingQuote = (bytes: Uint8Array, from: number): number => {
  let at = from
  while (at < bytes.length && bytes[at] !== quote) at += bytes[at] === backslash ? 2 : 1
  return at
}

/** Depth, number of values, and number of top-level members of a JSON text, computed without building values. */
const measure = (bytes: Uint8Array): { readonly depth: number; readonly values: number; readonly members: number } => {
  let depth = 0
  let deepest = 0
  let members = 0
  let values = 1
  for (let index = 0; index < bytes.length; index++) {
    const byte = bytes[index] ?? 0
    if (byte === quote) index = closingQuote(bytes, index + 1)
    depth += depthChange[byte] ?? 0
    values += valuesAfter[byte] ?? 0
    deepest = Math.max(deepest, depth)
    if (byte === colon && depth === 1) members++
  }
  return { depth: deepest, values, members }
}

/**
 * A `top_k` such as 50.0 is a float in Python, and vLLM then rejects every request that relies on the default
 * (`_verify_args` of `vllm/sampling_params.py`). JavaScript would parse it as the integer 50, so it is kept as a
 * string.
 */
const floatTopK = /("top_k"\s*:\s*)(-?\d+(?:\.\d+(?:[eE][+-]?\d+)?|[eE][+-]?\d+))/g
const generationOf = (text: string): string => jsonOfPython(text.replace(floatTopK, '$1"$2"'))

/** Why a file of this form is not parsed, as words that follow its name; null if it is. */
const formProblem = (bytes: Uint8Array, { depth, values }: { readonly depth: number; readonly values: number }): string | null => {
  if (depth > maxDepth) return `is nested deeper than ${maxDepth} levels`
  if (values > maxValues) return `holds more than ${maxValues} values`
  // Python's reader in the engines fails at a byte order mark, while the decoder here ignores it.
  return bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? "begins with a byte order mark, which engines do not accept" : null
}

/**
 * Parses a JSON object of an untrusted repository: valid UTF-8, limited nesting, no duplicate names at the top level.
 * `name` is for the message.
 */
export const parseJsonObject = (bytes: Uint8Array, name: string): Result.Result<Record<PropertyKey, unknown>, Unreadable> => {
  const fail = (reason: string) => Result.fail(new Unreadable({ reason }))
  const measures = measure(bytes)
  const problem = formProblem(bytes, measures)
  if (problem !== null) return fail(`${name} ${problem}.`)
  const text = textOf(bytes)
  if (text === undefined) return fail(`${name} is not valid JSON.`)
  const value = parse(name === "generation_config.json" ? generationOf(text) : jsonOfPython(text))
  if (value === undefined) return fail(`${name} is not valid JSON.`)
  if (!Predicate.isObject(value)) return fail(`${name} is not a JSON object.`)
  if (Object.keys(value).length !== measures.members) return fail(`${name} has a duplicate member.`)
  const float = name === "config.json" ? floatSize(text) : null
  return float === null ? Result.succeed(value) : fail(float)
}

/** `undefined` if the bytes are not UTF-8. */
const textOf = (bytes: Uint8Array): string | undefined => {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes)
  } catch {
    return undefined
  }
}

/** `undefined` if the text is not JSON. */
const parse = (text: string): unknown => {
  try {
    const value: unknown = JSON.parse(text)
    return value
  } catch {
    return undefined
  }
}

/**
 * Parses a response of the hub, which contains the repository's card and so has the same bounds. `undefined` if it is
 * not JSON; throws `Unreadable` if it exceeds any real response.
 */
export const parseJson = (bytes: Uint8Array): unknown => {
  const { depth, values } = measure(bytes)
  if (depth > maxDepth || values > maxValues) throw new Unreadable({ reason: "The model hub's description of the repository is too long." })
  const text = textOf(bytes)
  return text === undefined ? undefined : parse(text)
}
