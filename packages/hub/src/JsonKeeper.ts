import type { JsonObject, JsonValue } from "./JsonForm.ts"
import type { JsonNumber } from "./JsonScanner.ts"

/** Maximum number of nested values. In memory, values take many times the space of their text. */
const mostValues = 20_000

/** Builds one value from the events of a `JsonScanner`, up to the size of real files. */
export class JsonKeeper {
  readonly #open: Array<{ readonly list: Array<JsonValue> | null; readonly object: Map<string, JsonValue> | null; name: string }> = []
  #kept: JsonValue | undefined
  #values = 0

  begin(kind: "object" | "list"): void {
    const list: Array<JsonValue> | null = kind === "list" ? [] : null
    const object = list === null ? new Map<string, JsonValue>() : null
    const container: ReadonlyArray<JsonValue> | JsonObject = list ?? object ?? []
    this.#place(container)
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

  /** Returns the value once; `undefined` if it was too large or there is none. */
  take(): JsonValue | undefined {
    const result = this.#values > mostValues ? undefined : this.#kept
    this.#kept = undefined
    this.#values = 0
    return result
  }

  #place(value: JsonValue): void {
    const last = this.#open.at(-1)
    if (++this.#values > mostValues) return
    if (last === undefined) this.#kept = value
    else if (last.list !== null) last.list.push(value)
    else last.object?.set(last.name, value)
  }
}
