import type { ClientFailure, PublicError } from "@seatrial/client"
import { Clock, Effect, Option, Schema, Stream } from "effect"
import { Argument, Flag } from "effect/cli"
import { withCommandErrors } from "./apiErrors.ts"
import { CommandError } from "./CommandError.ts"
import { printRows } from "./print.ts"

export const jsonFlag = Flag.Boolean("json").pipe(Flag.withDescription("Print the response of the API as one JSON document"), Flag.withDefault(false))

export const limitFlag = Flag.Int("limit").pipe(
  Flag.withDescription("Maximum number of rows over all pages, newest first (default 50)"),
  Flag.withSchema(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 100_000 }))),
  Flag.withDefault(50)
)

export const textFlag = (name: string, description: string) => Flag.String(name).pipe(Flag.withDescription(description), Flag.optional)
export const idArgument = (description: string) => Argument.String("id").pipe(Argument.withDescription(description))
export const deploymentArgument = idArgument("A deployment ID (dep_...), or a model's name or ID. For a model, the command uses its newest deployment")

export const timeFlags = {
  from: textFlag("from", "Only at or after this time: 2026-01-31T12:00:00Z, 2026-01-31, or an age such as 90s, 15m, 2h or 7d"),
  to: textFlag("to", "Only before this time, in the same format")
}

const units: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/**
 * Unix milliseconds of a time, or of a duration before `now`. None if it is neither. A time of day requires a time
 * zone.
 */
export const parseTime = (text: string, now: number): Option.Option<number> => {
  const [, amount, unit] = /^(\d{1,9})([smhd])$/.exec(text) ?? []
  if (amount !== undefined && unit !== undefined) return Option.some(Math.max(0, now - Number(amount) * (units[unit] ?? 0)))
  if (!/^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:\d{2}))?$/.test(text)) return Option.none()
  const time = Date.parse(text)
  return Number.isNaN(time) || time < 0 ? Option.none() : Option.some(time)
}

/** The time bounds of the flags in the format of the API. */
export const timeBounds = Effect.fnUntraced(function* (flags: { readonly from: Option.Option<string>; readonly to: Option.Option<string> }) {
  const now = yield* Clock.currentTimeMillis
  const bound = (name: string, text: Option.Option<string>) => {
    if (Option.isNone(text)) return Effect.undefined
    return Effect.fromOption(parseTime(text.value, now)).pipe(
      Effect.mapError(
        () =>
          new CommandError({
            message: `--${name} ${text.value} is neither a time (2026-01-31T12:00:00Z, 2026-01-31) nor a duration (15m, 2h, 7d).`,
            exitCode: 2
          })
      )
    )
  }
  const [from, to] = [yield* bound("from", flags.from), yield* bound("to", flags.to)]
  if (from !== undefined && to !== undefined && from >= to) return yield* new CommandError({ message: "--to must be later than --from.", exitCode: 2 })
  return { ...(from === undefined ? {} : { from }), ...(to === undefined ? {} : { to }) }
})

/** The page size that needs the fewest pages for `limit` rows. */
export const pageSizeFor = (limit: number): number => Math.min(200, limit)

/** Prints the newest rows of a list: complete records with `--json`, otherwise the columns of `row`. */
export const printList = Effect.fnUntraced(function* <A extends Readonly<Record<string, unknown>>, R>(
  { json, limit }: { readonly json: boolean; readonly limit: number },
  list: Stream.Stream<A, PublicError | ClientFailure, R>,
  row: (record: A) => Readonly<Record<string, unknown>>
) {
  const records = yield* withCommandErrors(Stream.runCollect(Stream.take(list, limit)))
  yield* printRows(json, json ? records : records.map(row))
})
