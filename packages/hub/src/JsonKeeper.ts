import type { JsonObject, JsonValue } from "./JsonForm.ts"
import type { JsonNumber } from "./JsonScanner.ts"

/** Most values that are kept of one: in memory they take many times what their text does. */
const mostValues = 20_000

/** Keeps one value of what a `JsonScanner` tells, as long as it is of a real file's size. */
export class JsonKeeper {
  readonly #open: Array<{ readonly list: Array<JsonValue> | null; readonly object: Map<string, JsonValue> | null; name: string }> = []
  #kept: JsonValue | undefined
  #values = 0

  begin(kind: "object" | "list"): void {
    const list: Array<JsonValue> | null = kind === "list" ? [] : null
    const object = list === null ? new Map<string, JsonValue>() : null
    const made: ReadonlyArray<JsonValue> | JsonObject = list ?? object ?? []
    this.#place(made)
    this.#open.push({ list, object, name: "" })
  }

  end(): void {
    this.#open.pop()
  }

  name(name: string): void {
    const last = this.#open.at(-1)
    if (last !== undefined) last.name = name
  }

  value(value: string | boolean | null | JsonNumber): void {
    this.#place(value)
  }

  /** What was kept, once; `undefined` where that was too much, or nothing. */
  take(): JsonValue | undefined {
    const kept = this.#values > mostValues ? undefined : this.#kept
    this.#kept = undefined
    this.#values = 0
    return kept
  }

  #place(value: JsonValue): void {
    const last = this.#open.at(-1)
    if (++this.#values > mostValues) return
    if (last === undefined) this.#kept = value
    else if (last.list !== null) last.list.push(value)
    else last.object?.set(last.name, value)
  }
}
