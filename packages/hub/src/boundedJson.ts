import { jsonOfPython } from "@seatrial/domain"
import { Predicate, Result } from "effect"
import { Unreadable } from "./failures.ts"
import { floatSize } from "./floatSize.ts"
import { maxDepth } from "./JsonScanner.ts"

/** Maximum number of values in one file. Parsed values take many times the space of their text. */
const maxValues = 100_000

/** Depth, number of values, and number of top-level members of a JSON text, computed without building values. */
const measure = (bytes: Uint8Array): { readonly depth: number; readonly values: number; readonly members: number } => {
  let depth = 0
  let deepest = 0
  let members = 0
  let values = 1
  let inString = false
  for (let index = 0; index < bytes.length; index++) {
    const byte = bytes[index]
    if (inString) {
      if (byte === 0x5c) index++
      else if (byte === 0x22) inString = false
    } else if (byte === 0x22) inString = true
    else if (byte === 0x7b || byte === 0x5b) {
      deepest = Math.max(deepest, ++depth)
      values++
    } else if (byte === 0x7d || byte === 0x5d) depth--
    else if (byte === 0x2c) values++
    else if (byte === 0x3a && depth === 1) members++
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

/**
 * Parses a JSON object of an untrusted repository: valid UTF-8, limited nesting, no duplicate names at the top level.
 * `name` is for the message.
 */
export const parseJsonObject = (bytes: Uint8Array, name: string): Result.Result<Record<PropertyKey, unknown>, Unreadable> => {
  const { depth, members, values } = measure(bytes)
  if (depth > maxDepth) return Result.fail(new Unreadable({ reason: `${name} is nested deeper than ${maxDepth} levels.` }))
  if (values > maxValues) return Result.fail(new Unreadable({ reason: `${name} holds more than ${maxValues} values.` }))
  // Python's reader in the engines fails at a byte order mark, while the decoder here ignores it.
  if (bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf)
    return Result.fail(new Unreadable({ reason: `${name} begins with a byte order mark, which engines do not accept.` }))
  const text = textOf(bytes)
  const value = text === undefined ? undefined : parse(name === "generation_config.json" ? generationOf(text) : jsonOfPython(text))
  if (text === undefined || value === undefined) return Result.fail(new Unreadable({ reason: `${name} is not valid JSON.` }))
  if (!Predicate.isObject(value)) return Result.fail(new Unreadable({ reason: `${name} is not a JSON object.` }))
  if (Object.keys(value).length !== members) return Result.fail(new Unreadable({ reason: `${name} names something twice.` }))
  const float = name === "config.json" ? floatSize(text) : null
  if (float !== null) return Result.fail(new Unreadable({ reason: float }))
  return Result.succeed(value)
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
  if (depth > maxDepth || values > maxValues) throw new Unreadable({ reason: "The model hub describes the repository at too great a length." })
  const text = textOf(bytes)
  return text === undefined ? undefined : parse(text)
}
