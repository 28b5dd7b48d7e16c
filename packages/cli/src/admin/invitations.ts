import { InvitationId } from "@seatrial/domain"
import { type Invitation, Invitations } from "@seatrial/store"
import { Clock, Effect, Option, Redacted, Schema } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { CommandError } from "../CommandError.ts"
import { printRecord, printRows } from "../print.ts"
import { confirm, yesFlag as yes } from "./confirm.ts"
import { emailFlag as email, jsonFlag as json, nameFlag, orgFlag as org, organization, roleFlag } from "./organization.ts"
import { tokenFlag, tokenOf } from "./secretFlag.ts"

const view = (row: Invitation) => ({
  id: row.id,
  email: row.email,
  role: row.role,
  status: row.status,
  created_at: row.createdAt,
  expires_at: row.expiresAt
})

export const invitationsCommand = Command.make("invitations").pipe(
  Command.withDescription("Invitations to an organization. Seatrial sends no email: pass the token on yourself."),
  Command.withSubcommands([
    Command.make(
      "send",
      {
        org,
        email,
        role: roleFlag.pipe(Flag.withDefault("member")),
        days: Flag.Int("expires-in-days").pipe(
          Flag.withDescription("Days until the invitation expires, 1 to 30"),
          Flag.withSchema(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 30 }))),
          Flag.withDefault(7)
        ),
        json
      },
      Effect.fn(function* ({ days, email, json, org, role }) {
        const invitations = yield* Invitations
        const { id: orgId } = yield* organization(org)
        const now = yield* Clock.currentTimeMillis
        const { invitation, token } = yield* invitations.send({ orgId, email, role, expiresAt: now + days * 86_400_000 }).pipe(
          Effect.catchTag(
            "InvitationConflict",
            ({ reason }) =>
              new CommandError({
                message:
                  reason === "member"
                    ? `${email} is already a member of ${org}.`
                    : `${email} already has an invitation to ${org}. Withdraw it first; \`seatrial admin invitations list\` shows its ID.`
              })
          )
        )
        yield* printRecord(json, { ...view(invitation), token: Redacted.value(token) })
      })
    ).pipe(Command.withDescription("Creates an invitation and shows its token once.")),
    Command.make(
      "list",
      { org, json },
      Effect.fn(function* ({ json, org }) {
        const invitations = yield* Invitations
        const { id } = yield* organization(org)
        yield* printRows(json, (yield* invitations.list(id)).map(view))
      })
    ).pipe(Command.withDescription("Lists an organization's invitations, newest first.")),
    Command.make(
      "withdraw",
      { org, id: Argument.String("id").pipe(Argument.withDescription("The invitation's ID, inv_..."), Argument.withSchema(InvitationId)), yes, json },
      Effect.fn(function* ({ id, json, org, yes }) {
        const invitations = yield* Invitations
        const { id: orgId } = yield* organization(org)
        yield* confirm(yes, `The token of the invitation ${id} will stop working permanently.`)
        const withdrawn = yield* invitations.withdraw(orgId, id)
        if (Option.isNone(withdrawn)) return yield* new CommandError({ message: `${org} has no pending invitation ${id}.` })
        yield* printRecord(json, view(withdrawn.value))
      })
    ).pipe(Command.withDescription("Withdraws a pending invitation.")),
    Command.make(
      "accept",
      {
        token: tokenFlag("The invitation's token", "SEATRIAL_INVITATION"),
        name: nameFlag,
        json
      },
      Effect.fn(function* ({ json, name, token: tokenOption }) {
        const token = yield* tokenOf(tokenOption, "The invitation's token", "SEATRIAL_INVITATION")
        const invitations = yield* Invitations
        const { invitation, user } = yield* invitations.accept(token, name).pipe(
          Effect.catchTag(
            "InvitationInvalid",
            () =>
              new CommandError({
                message: "The token is unknown, or its invitation has expired, was withdrawn or was already accepted. Ask for a new invitation."
              })
          )
        )
        yield* printRecord(json, { id: user.id, email: user.email, name: user.name, role: invitation.role, invitation_id: invitation.id })
      })
    ).pipe(Command.withDescription("Accepts an invitation: the invited user becomes a member."))
  ])
)
