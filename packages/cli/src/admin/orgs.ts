import { Organizations } from "@seatrial/store"
import { Effect, Option, Schema } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { CommandError } from "../CommandError.ts"
import { printRecord, printRows } from "../print.ts"
import { jsonFlag as json } from "./organization.ts"

const Slug = Schema.String.check(Schema.isPattern(/^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$/u))

export const orgsCommand = Command.make("orgs").pipe(
  Command.withDescription("Organizations."),
  Command.withSubcommands([
    Command.make(
      "create",
      {
        slug: Argument.String("slug").pipe(Argument.withDescription("Short name: lower-case letters, digits, hyphens"), Argument.withSchema(Slug)),
        name: Flag.String("name").pipe(Flag.withDescription("Full name"), Flag.optional),
        json
      },
      Effect.fn(function* ({ json, name, slug }) {
        const organizations = yield* Organizations
        const made = yield* organizations
          .create({ slug, name: Option.getOrElse(name, () => slug) })
          .pipe(Effect.catchTag("NameTaken", () => new CommandError({ message: `There is an organization ${slug} already.` })))
        yield* printRecord(json, { ...made })
      })
    ).pipe(Command.withDescription("Makes an organization.")),
    Command.make(
      "list",
      { json },
      Effect.fn(function* ({ json }) {
        const organizations = yield* Organizations
        yield* printRows(
          json,
          (yield* organizations.list).map((row) => ({ ...row }))
        )
      })
    ).pipe(Command.withDescription("Lists the organizations."))
  ])
)
