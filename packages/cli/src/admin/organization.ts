import { type Organization, Organizations } from "@seatrial/store"
import { Effect, Option, Schema } from "effect"
import { Argument, Flag } from "effect/cli"
import { CommandError } from "../CommandError.ts"
import { PlainText } from "../plainText.ts"

export const orgFlag = Flag.String("org").pipe(Flag.withDescription("The organization's slug"))
export const jsonFlag = Flag.Boolean("json").pipe(Flag.withDescription("Print JSON"), Flag.withDefault(false))

export const emailFlag = Flag.String("email").pipe(
  Flag.withDescription("The user's email address"),
  Flag.withSchema(PlainText.check(Schema.isPattern(/^[^\s@]+@[^\s@]+$/u, { message: "Expected an email address, for example ann@example.org" })))
)

/** Finds an organization by slug. Fails if it does not exist. */
export const organization = Effect.fnUntraced(function* (slug: string): Effect.fn.Return<Organization, CommandError, Organizations> {
  const organizations = yield* Organizations
  const row = yield* organizations.findBySlug(slug)
  if (Option.isNone(row)) return yield* new CommandError({ message: `There is no organization ${slug}. \`seatrial admin orgs list\` lists all organizations.` })
  return row.value
})

export const user = Effect.fnUntraced(function* (org: Organization, email: string) {
  const organizations = yield* Organizations
  const member = yield* organizations.findUser(org.id, email)
  if (Option.isNone(member)) return yield* new CommandError({ message: `${org.slug} has no user ${email}. \`seatrial admin members add\` adds a user.` })
  return member.value
})

export const nameFlag = Flag.String("name").pipe(Flag.withDescription("Full name"), Flag.withSchema(PlainText), Flag.optional)
export const roleFlag = Flag.Literals("role", ["owner", "member"]).pipe(Flag.withDescription("Role in the organization"))

export const limitFlag = Flag.Int("limit").pipe(
  Flag.withDescription("Maximum number of rows, 1 to 1000"),
  Flag.withSchema(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 1_000 }))),
  Flag.withDefault(200)
)

export const microsArgument = Argument.String("micros").pipe(
  Argument.withDescription("Micro-dollars: 1000000 is one US dollar"),
  Argument.withSchema(
    Schema.String.check(Schema.isPattern(/^[1-9]\d{0,17}$/u, { message: "Expected whole micro-dollars, 1 or more: 1000000 is one US dollar" }))
  )
)
