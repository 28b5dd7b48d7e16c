import { Organizations } from "@seatrial/store"
import { Effect, Option } from "effect"
import { Command, Flag } from "effect/cli"
import { printRecord } from "../print.ts"
import { emailFlag as email, jsonFlag as json, orgFlag as org, organization } from "./organization.ts"

export const usersCommand = Command.make("users").pipe(
  Command.withDescription("Users and their memberships."),
  Command.withSubcommands([
    Command.make(
      "add",
      {
        org,
        email,
        name: Flag.String("name").pipe(Flag.withDescription("Full name"), Flag.optional),
        role: Flag.Literals("role", ["owner", "member"]).pipe(Flag.withDescription("Role in the organization"), Flag.withDefault("member")),
        json
      },
      Effect.fn(function* ({ email, json, name, org, role }) {
        const organizations = yield* Organizations
        const { id: orgId } = yield* organization(org)
        yield* printRecord(json, { ...(yield* organizations.addUser({ orgId, email, name: Option.getOrElse(name, () => email), role })) })
      })
    ).pipe(Command.withDescription("Adds a user to an organization."))
  ])
)
