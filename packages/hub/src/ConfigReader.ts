import { Option, Predicate, Result, Schema } from "effect"
import { Unreadable } from "./failures.ts"

export type Json = Readonly<Record<PropertyKey, unknown>>

const decodeName = Schema.decodeUnknownOption(Schema.String.check(Schema.isPattern(/^[A-Za-z0-9_.-]{1,128}$/u)))
const decodeNames = Schema.decodeUnknownOption(Schema.Array(Schema.String.check(Schema.isMaxLength(64))).check(Schema.isMaxLength(10_000)))

/**
 * Upper bounds, each at least a hundred times the value of any real model. Products of a few of these remain exact
 * enough.
 */
export const limits = { layers: 10_000, width: 10_000_000, heads: 100_000, vocabulary: 100_000_000, tokens: 1_000_000_000 } as const

const kinds = {
  "a number": Predicate.isNumber,
  "true or false": Predicate.isBoolean,
  "a string": Predicate.isString
} as const

const malformed = (key: string, what: string) => Result.fail(new Unreadable({ reason: `config.json has an invalid value for ${key}: expected ${what}.` }))

/**
 * Reads values of a configuration by the names that model families use, first name first. Malformed values are refused
 * by name. Defaults replace names that the configuration omits. An explicit null counts as absent, as in the model
 * class, and a stated value under any name takes precedence over a default under another name.
 */
export class ConfigReader {
  readonly #config: Json
  readonly #defaults: Json

  constructor(config: Json, defaults: Json = {}) {
    this.#config = config
    this.#defaults = defaults
  }

  /** The raw value of a name. */
  value(key: string): unknown {
    return Object.hasOwn(this.#config, key) ? (this.#config[key] ?? undefined) : Object.hasOwn(this.#defaults, key) ? this.#defaults[key] : undefined
  }

  /** The first of the present names that the configuration itself states, otherwise the first. */
  #first(present: ReadonlyArray<string>): string | undefined {
    return present.find((key) => Object.hasOwn(this.#config, key)) ?? present[0]
  }

  has(key: string): boolean {
    return Predicate.isNotNullish(this.value(key))
  }

  /** The first present name as an integer from 1 to `most`; null if none is present. */
  count(most: number, ...keys: ReadonlyArray<string>): Result.Result<number | null, Unreadable> {
    const key = this.#first(keys.filter((key) => this.has(key)))
    if (key === undefined) return Result.succeed(null)
    const value = this.value(key)
    if (typeof value !== "number" || !Number.isInteger(value) || value < 1) return malformed(key, "an integer of at least 1")
    return value > most ? malformed(key, `an integer up to ${most}`) : Result.succeed(value)
  }

  /** Like `count`, but 0 and -1 mean none. */
  countOrNone(most: number, ...keys: ReadonlyArray<string>): Result.Result<number | null, Unreadable> {
    const present = keys.filter((key) => this.has(key) && this.value(key) !== 0 && this.value(key) !== -1)
    return this.count(most, ...present)
  }

  /** Like `countOrNone`. For a list (one value per layer or input kind), the largest. */
  largestOrNone(most: number, ...keys: ReadonlyArray<string>): Result.Result<number | null, Unreadable> {
    const key = this.#first(keys.filter((key) => this.has(key) && this.value(key) !== 0 && this.value(key) !== -1))
    if (key === undefined || !Array.isArray(this.value(key))) return this.countOrNone(most, ...keys)
    return Result.map(this.counts(most, key), (listed) => listed?.reduce<number | null>((largest, one) => (one > (largest ?? 0) ? one : largest), null) ?? null)
  }

  /**
   * The first name with an integer from 1 to `most`; null if there is none. For values that families describe in
   * different ways and that are never a reason for a refusal.
   */
  size(most: number, ...keys: ReadonlyArray<string>): number | null {
    for (const key of keys) {
      const value = this.value(key)
      if (typeof value === "number" && Number.isInteger(value) && value >= 1 && value <= most) return value
    }
    return null
  }

  /** The side of a square, or the longer of two listed sides; null for any other value. */
  side(key: string): number | null {
    const value = this.value(key)
    if (!Array.isArray(value) || value.length !== 2) return this.size(limits.width, key)
    const sides = value.map((side: unknown) => new ConfigReader({ side }).size(limits.width, "side"))
    return sides.includes(null) ? null : Math.max(...sides.map((side) => side ?? 0))
  }

  /** The first present name as a list of integers from 0 to `most`; null if none is a list. */
  counts(most: number, ...keys: ReadonlyArray<string>): Result.Result<ReadonlyArray<number> | null, Unreadable> {
    const key = this.#first(keys.filter((key) => Array.isArray(this.value(key))))
    if (key === undefined) return Result.succeed(null)
    const decode = Schema.decodeUnknownOption(
      Schema.Array(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: most }))).check(Schema.isMaxLength(limits.layers))
    )
    return Option.match(decode(this.value(key)), { onNone: () => malformed(key, `a list of integers up to ${most}`), onSome: Result.succeed })
  }

  name(key: string): Result.Result<string | null, Unreadable> {
    if (!this.has(key)) return Result.succeed(null)
    return Option.match(decodeName(this.value(key)), { onNone: () => malformed(key, "a name"), onSome: Result.succeed })
  }

  /** Whether the present names have values of the right type. The values are not validated further. */
  kind(what: keyof typeof kinds, ...keys: ReadonlyArray<string>): Result.Result<void, Unreadable> {
    const odd = keys.find((key) => this.has(key) && !kinds[what](this.value(key)))
    return odd === undefined ? Result.succeed(undefined) : malformed(odd, what)
  }

  /** A list of short words, one per layer; null if absent. */
  words(key: string): Result.Result<ReadonlyArray<string> | null, Unreadable> {
    if (!this.has(key)) return Result.succeed(null)
    return Option.match(decodeNames(this.value(key)), { onNone: () => malformed(key, "a list of words"), onSome: Result.succeed })
  }

  /** The nested object under a name; null if absent. */
  inner(key: string): ConfigReader | null {
    const value = this.value(key)
    return Predicate.isObject(value) ? new ConfigReader(value) : null
  }
}
