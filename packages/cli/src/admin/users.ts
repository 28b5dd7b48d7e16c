import { Members } from "@seatrial/store"
import { Effect } from "effect"
import { Command, Flag } from "effect/cli"
import { printRows } from "../print.ts"
import { jsonFlag as json, limitFlag as limit } from "./organization.ts"

export const usersCommand = Command.make("users").pipe(
  Command.withDescription("Users of all organizations. `seatrial admin members` adds and removes users."),
  Command.withSubcommands([
    Command.make(
      "list",
      { search: Flag.String("search").pipe(Flag.withDescription("Part of the email address or name"), Flag.withDefault("")), limit, json },
      Effect.fn(function* ({ json, limit, search }) {
        const members = yield* Members
        const rows = yield* members.users(search, limit)
        yield* printRows(
          json,
          rows.map(({ createdAt, email, id, name, organizations }) => ({ id, email, name, organizations, created_at: createdAt }))
        )
      })
    ).pipe(Command.withDescription("Lists users by email address, with the organizations that they belong to."))
  ])
)
