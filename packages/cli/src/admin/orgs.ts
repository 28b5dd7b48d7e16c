import { type Organization, Organizations } from "@seatrial/store"
import { Effect, Option, Schema } from "effect"
import { Argument, Command } from "effect/cli"
import { CommandError } from "../CommandError.ts"
import { PlainText } from "../plainText.ts"
import { printRecord, printRows } from "../print.ts"
import { confirm, yesFlag as yes } from "./confirm.ts"
import { jsonFlag as json, nameFlag, organization } from "./organization.ts"

const Slug = Schema.String.check(
  Schema.isPattern(/^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$/u, {
    message: "Expected 1 to 40 lowercase letters, digits and hyphens, no hyphen first or last"
  })
)
const slug = Argument.String("slug").pipe(Argument.withDescription("The organization's slug"))

const view = (row: Organization) => ({ id: row.id, slug: row.slug, name: row.name, status: row.status, first_purchase: row.firstPurchase })

const setStatus = Effect.fnUntraced(function* (slug: string, status: Organization["status"]) {
  const organizations = yield* Organizations
  const { id } = yield* organization(slug)
  yield* organizations.setStatus(id, status)
  return view(yield* organization(slug))
})

export const orgsCommand = Command.make("orgs").pipe(
  Command.withDescription("Organizations."),
  Command.withSubcommands([
    Command.make(
      "create",
      {
        slug: Argument.String("slug").pipe(
          Argument.withDescription("Short name, a permanent part of its models' names: lowercase letters, digits, hyphens"),
          Argument.withSchema(Slug)
        ),
        name: nameFlag,
        json
      },
      Effect.fn(function* ({ json, name, slug }) {
        const organizations = yield* Organizations
        const created = yield* organizations
          .create({ slug, name: Option.getOrElse(name, () => slug) })
          .pipe(Effect.catchTag("NameTaken", () => new CommandError({ message: `An organization ${slug} already exists.` })))
        yield* printRecord(json, view(created))
      })
    ).pipe(Command.withDescription("Creates an organization.")),
    Command.make(
      "list",
      { json },
      Effect.fn(function* ({ json }) {
        const organizations = yield* Organizations
        yield* printRows(json, (yield* organizations.list).map(view))
      })
    ).pipe(Command.withDescription("Lists the organizations.")),
    Command.make(
      "show",
      { slug, json },
      Effect.fn(function* ({ json, slug }) {
        yield* printRecord(json, view(yield* organization(slug)))
      })
    ).pipe(Command.withDescription("Shows an organization.")),
    Command.make(
      "rename",
      { slug, name: Argument.String("name").pipe(Argument.withDescription("The new full name"), Argument.withSchema(PlainText)), json },
      Effect.fn(function* ({ json, name, slug }) {
        const organizations = yield* Organizations
        const { id } = yield* organization(slug)
        yield* organizations.rename(id, name)
        yield* printRecord(json, view(yield* organization(slug)))
      })
    ).pipe(
      Command.withDescription("Changes an organization's full name. The slug cannot be changed, because it is part of the names of the organization's models.")
    ),
    Command.make(
      "suspend",
      { slug, yes, json },
      Effect.fn(function* ({ json, slug, yes }) {
        yield* organization(slug)
        yield* confirm(yes, `All keys of ${slug} will stop working until you resume the organization.`)
        yield* printRecord(json, yield* setStatus(slug, "suspended"))
      })
    ).pipe(Command.withDescription("Suspends an organization: every server refuses its keys with 401 within a second.")),
    Command.make(
      "resume",
      { slug, json },
      Effect.fn(function* ({ json, slug }) {
        yield* printRecord(json, yield* setStatus(slug, "active"))
      })
    ).pipe(Command.withDescription("Ends a suspension: the organization's keys work again."))
  ])
)
