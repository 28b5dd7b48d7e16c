import { type Json, type JsonObject, listAt } from "./Json.ts"
import type { Kind } from "./Kind.ts"

/** Who writes: the entry of `managedFields` that a write is accounted to. */
export interface Writer {
  readonly manager: string
  readonly apiVersion: string
  readonly subresource: string
  readonly time: string
}

/** The managed fields after a write that is not an apply. */
export const afterUpdate = (_kind: Kind, before: JsonObject | undefined, _after: JsonObject, _writer: Writer): Json => listAt(before, "metadata", "managedFields")
