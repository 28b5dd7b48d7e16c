import { Members, Organizations } from "@seatrial/store"
import { Effect, Option } from "effect"
import { Command, Flag } from "effect/cli"
import { CommandError } from "../CommandError.ts"
import { printRecord, printRows } from "../print.ts"
import { confirm, yesFlag as yes } from "./confirm.ts"
import { emailFlag as email, jsonFlag as json, nameFlag, orgFlag as org, organization, roleFlag, user } from "./organization.ts"

const lastOwner = (org: string, email: string) =>
  new CommandError({ message: `${email} is the last owner of ${org}. First make another member an owner with \`seatrial admin members set-role\`.` })
const notMember = (org: string, email: string) => new CommandError({ message: `${org} has no member ${email}.` })

export const membersCommand = Command.make("members").pipe(
  Command.withDescription("Members of an organization."),
  Command.withSubcommands([
    Command.make(
      "add",
      { org, email, name: nameFlag, role: roleFlag.pipe(Flag.withDefault("member")), json },
      Effect.fn(function* ({ email, json, name, org, role }) {
        const organizations = yield* Organizations
        const { id: orgId } = yield* organization(org)
        if (Option.isSome(yield* organizations.findUser(orgId, email))) {
          return yield* new CommandError({ message: `${email} is already a member of ${org}. \`seatrial admin members set-role\` changes the role.` })
        }
        const added = yield* organizations.addUser({ orgId, email, name: Option.getOrElse(name, () => email), role })
        yield* printRecord(json, { id: added.id, email: added.email, name: added.name, role })
      })
    ).pipe(Command.withDescription("Adds a user to an organization. Creates the user if the email address is new.")),
    Command.make(
      "list",
      { org, json },
      Effect.fn(function* ({ json, org }) {
        const members = yield* Members
        const { id } = yield* organization(org)
        yield* printRows(
          json,
          (yield* members.list(id)).map((row) => ({
            id: row.userId,
            email: row.email,
            name: row.name,
            role: row.role,
            hub_connected: row.hubConnected,
            joined_at: row.createdAt
          }))
        )
      })
    ).pipe(Command.withDescription("Lists an organization's members.")),
    Command.make(
      "set-role",
      { org, email, role: roleFlag, json },
      Effect.fn(function* ({ email, json, org, role }) {
        const members = yield* Members
        const owner = yield* organization(org)
        const changed = yield* members
          .changeRole(owner.id, (yield* user(owner, email)).id, role)
          .pipe(Effect.catchTag("LastOwner", () => lastOwner(org, email)))
        if (Option.isNone(changed)) return yield* notMember(org, email)
        yield* printRecord(json, { id: changed.value.userId, email: changed.value.email, role: changed.value.role })
      })
    ).pipe(Command.withDescription("Changes a member's role. The role of the last owner cannot be changed.")),
    Command.make(
      "remove",
      { org, email, yes, json },
      Effect.fn(function* ({ email, json, org, yes }) {
        const members = yield* Members
        const owner = yield* organization(org)
        const { id } = yield* user(owner, email)
        yield* confirm(yes, `${email} will be removed from ${org}. All keys of ${email} in ${org} are revoked permanently, and the hub token is deleted.`)
        const removed = yield* members.remove(owner.id, id).pipe(Effect.catchTag("LastOwner", () => lastOwner(org, email)))
        if (Option.isNone(removed)) return yield* notMember(org, email)
        yield* printRecord(json, { id, email, revoked_keys: removed.value })
      })
    ).pipe(Command.withDescription("Removes a member and revokes the member's keys. The change takes effect on every server within a second."))
  ])
)
