import { Predicate, Result } from "effect"
import { Unreadable } from "./failures.ts"

/** Nesting that no configuration file of a real model reaches. */
const maxDepth = 64

/** The deepest nesting of a JSON text, and the members of its outermost object, told without building anything. */
const measure = (bytes: Uint8Array): { readonly depth: number; readonly members: number } => {
  let depth = 0
  let deepest = 0
  let members = 0
  let inString = false
  for (let index = 0; index < bytes.length; index++) {
    const byte = bytes[index]
    if (inString) {
      if (byte === 0x5c) index++
      else if (byte === 0x22) inString = false
    } else if (byte === 0x22) inString = true
    else if (byte === 0x7b || byte === 0x5b) deepest = Math.max(deepest, ++depth)
    else if (byte === 0x7d || byte === 0x5d) depth--
    else if (byte === 0x3a && depth === 1) members++
  }
  return { depth: deepest, members }
}

/** A JSON object from bytes of an untrusted repository: valid UTF-8, not nested out of measure, no name twice at the top. `name` is for the message. */
export const parseJsonObject = (bytes: Uint8Array, name: string): Result.Result<Record<PropertyKey, unknown>, Unreadable> => {
  const { depth, members } = measure(bytes)
  if (depth > maxDepth) return Result.fail(new Unreadable({ reason: `${name} is nested deeper than ${maxDepth} levels.` }))
  try {
    const value: unknown = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes))
    if (!Predicate.isObject(value)) return Result.fail(new Unreadable({ reason: `${name} is not a JSON object.` }))
    if (Object.keys(value).length !== members) return Result.fail(new Unreadable({ reason: `${name} names something twice.` }))
    return Result.succeed(value)
  } catch {
    return Result.fail(new Unreadable({ reason: `${name} is not valid JSON.` }))
  }
}
