import { Schema } from "effect"
import { Flag } from "effect/cli"

const Day = Schema.String.check(
  Schema.isPattern(/^\d{4}-\d{2}-\d{2}$/u, { message: "Expected a day, for example 2026-01-31" }),
  Schema.makeFilter((text) => (Number.isNaN(Date.parse(text)) || new Date(text).toISOString().slice(0, 10) !== text ? "is not a calendar day" : undefined))
)

export const fromDay = Flag.String("from").pipe(
  Flag.withDescription("First day, YYYY-MM-DD in UTC; default: the first of this month"),
  Flag.withSchema(Day),
  Flag.optional
)
export const toDay = Flag.String("to").pipe(Flag.withDescription("Last day, YYYY-MM-DD in UTC; default: today"), Flag.withSchema(Day), Flag.optional)
