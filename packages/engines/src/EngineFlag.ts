import { longestCheckedAnswer, mostTrialRequests } from "@seatrial/domain"
import { Option, Schema } from "effect"

/** Words of a command line and environment variables that set a flag. */
export interface Rendered {
  readonly args: ReadonlyArray<string>
  readonly env: Readonly<Record<string, string>>
}

/** A flag that a caller may set. */
export interface EngineFlag {
  /** The values that are allowed, as the rest of a sentence. */
  readonly expected: string
  readonly takes: (value: unknown) => boolean
  /** Returns undefined if the value is not allowed. */
  readonly render: (value: unknown) => Rendered
}

/** The flags of an engine by key. The command line has them in this order. */
export type EngineFlags = Readonly<Record<string, EngineFlag>>

const nothing: Rendered = { args: [], env: {} }

const rendered = <S extends Schema.ConstraintDecoder<unknown>>(expected: string, schema: S, render: (value: S["Type"]) => Rendered): EngineFlag => {
  const decode = Schema.decodeUnknownOption(schema, { onExcessProperty: "error" })
  return {
    expected,
    takes: (value) => Option.isSome(decode(value)),
    render: (value) => Option.match(decode(value), { onNone: () => nothing, onSome: render })
  }
}

const words = (...args: ReadonlyArray<string>): Rendered => ({ args, env: {} })

/**
 * A whole number, written as `--argument=value`. `least`: why the minimum is higher than the minimum of the engine, as
 * the rest of a sentence.
 */
export const wholeNumber = (argument: string, minimum: number, maximum: number, least?: string): EngineFlag =>
  rendered(
    `a whole number from ${minimum} to ${maximum}${least === undefined ? "" : `: ${least}`}`,
    Schema.Int.check(Schema.isBetween({ minimum, maximum })),
    (value) => words(`--${argument}=${value}`)
  )

/**
 * How many requests may wait. The minimum is the number of requests that a trial sends at once, because the engine
 * refuses the excess.
 */
export const waitingRequests = (argument: string): EngineFlag =>
  wholeNumber(argument, mostTrialRequests, 65_536, `the checks of a deployment's trial send up to ${mostTrialRequests} requests at once`)

/** A number, written as `--argument=value`. */
export const decimal = (argument: string, minimum: number, maximum: number): EngineFlag =>
  rendered(`a number from ${minimum} to ${maximum}`, Schema.Finite.check(Schema.isBetween({ minimum, maximum })), (value) => words(`--${argument}=${value}`))

/** One of several words, written as `--argument=value` or as `render` returns it. */
export const oneOf = (
  argument: string,
  values: ReadonlyArray<string>,
  render: (value: string) => ReadonlyArray<string> = (value) => [`--${argument}=${value}`]
): EngineFlag => rendered(`one of ${values.join(", ")}`, Schema.Literals(values), (value) => words(...render(value)))

/** One of several whole numbers, written as `--argument=value`. */
export const oneNumberOf = (argument: string, values: ReadonlyArray<number>): EngineFlag =>
  rendered(`one of ${values.join(", ")}`, Schema.Literals(values), (value) => words(`--${argument}=${value}`))

/** -1 or a whole number in a range, written as `--argument=value`. */
export const offOrWholeNumber = (argument: string, minimum: number, maximum: number): EngineFlag =>
  rendered(
    `-1 or a whole number from ${minimum} to ${maximum}`,
    Schema.Union([Schema.Literal(-1), Schema.Int.check(Schema.isBetween({ minimum, maximum }))]),
    (value) => words(`--${argument}=${value}`)
  )

/** A boolean, written as one of two words; null if the engine expresses this value by the absence of the word. */
export const truth = (yes: string, no: string | null): EngineFlag =>
  rendered("true or false", Schema.Boolean, (value) => words(...(value ? [`--${yes}`] : no === null ? [] : [`--${no}`])))

/** A boolean, written as an environment variable. */
export const variable = (name: string): EngineFlag => rendered("true or false", Schema.Boolean, (value) => ({ args: [], env: value ? { [name]: "1" } : {} }))

/** An object with fixed members, written as one `--argument={…}` word. */
export const object = <S extends Schema.ConstraintDecoder<unknown>>(argument: string, expected: string, schema: S): EngineFlag =>
  rendered(expected, schema, (value) => words(`--${argument}=${JSON.stringify(value)}`))

const optional = Schema.optionalKey
const between = (minimum: number, maximum: number) => Schema.Finite.check(Schema.isBetween({ minimum, maximum }))
const integerBetween = (minimum: number, maximum: number) => Schema.Int.check(Schema.isBetween({ minimum, maximum }))

/** Variables of the chat template for requests that do not set them. */
export const templateDefaults = (argument: string): EngineFlag =>
  object(
    argument,
    "an object of enable_thinking, thinking (true or false) and reasoning_effort (none, minimal, low, medium, high, xhigh)",
    Schema.Struct({
      enable_thinking: optional(Schema.Boolean),
      thinking: optional(Schema.Boolean),
      reasoning_effort: optional(Schema.Literals(["none", "minimal", "low", "medium", "high", "xhigh"]))
    })
  )

/** How many images a request may contain. */
export const imageLimit = (argument: string): EngineFlag =>
  object(
    argument,
    "an object of image (a whole number from 0 to 8), video (0) and audio (0)",
    Schema.Struct({ image: optional(integerBetween(0, 8)), video: optional(Schema.Literal(0)), audio: optional(Schema.Literal(0)) })
  )

/** Sampling parameters for requests that do not set them. */
export const samplingDefaults = (argument: string): EngineFlag => {
  const fields = {
    temperature: optional(between(0, 2)),
    top_k: optional(integerBetween(-1, 1_000)),
    min_p: optional(between(0, 1)),
    repetition_penalty: optional(between(0.5, 2))
  }
  const mostTokens = 100_000_000
  const taken = object(
    argument,
    `an object of temperature (0 to 2), top_p (above 0, up to 1), top_k (-1 to 1000), min_p (0 to 1), repetition_penalty (0.5 to 2) and max_new_tokens (at least ${longestCheckedAnswer}, because the trial requests answers of that length)`,
    Schema.Struct({
      ...fields,
      top_p: optional(Schema.Finite.check(Schema.isGreaterThan(0), Schema.isLessThanOrEqualTo(1))),
      max_new_tokens: optional(integerBetween(longestCheckedAnswer, mostTokens))
    })
  )
  // Earlier versions accepted more values. A revision that was verified with them must still start.
  const earlier = Schema.Struct({ ...fields, top_p: optional(between(0, 1)), max_new_tokens: optional(integerBetween(1, mostTokens)) })
  return { ...taken, render: object(argument, taken.expected, earlier).render }
}

/** Renders flags in the order of the table. */
export const renderFlags = (flags: EngineFlags, requested: Readonly<Record<string, unknown>>): Rendered => {
  const parts = Object.entries(flags).flatMap(([key, flag]) => (Object.hasOwn(requested, key) ? [flag.render(requested[key])] : []))
  return { args: parts.flatMap(({ args }) => args), env: Object.assign({}, ...parts.map(({ env }) => env)) }
}
