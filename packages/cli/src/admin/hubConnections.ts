import { HubConnections } from "@seatrial/store"
import { Effect, Redacted } from "effect"
import { Command } from "effect/cli"
import { CommandError } from "../CommandError.ts"
import { printRecord, printRows } from "../print.ts"
import { confirm, yesFlag as yes } from "./confirm.ts"
import { emailFlag as email, jsonFlag as json, orgFlag as org, organization, user } from "./organization.ts"
import { tokenFlag, tokenOf } from "./secretFlag.ts"

export const hubConnectionsCommand = Command.make("hub-connections").pipe(
  Command.withDescription("Tokens for private and gated repositories of the model hub, encrypted at rest with SEATRIAL_ENCRYPTION_KEY. They are never shown."),
  Command.withSubcommands([
    Command.make(
      "set",
      {
        org,
        email,
        token: tokenFlag("The hub's access token", "HF_TOKEN"),
        json
      },
      Effect.fn(function* ({ email, json, org, token: tokenOption }) {
        const token = yield* tokenOf(tokenOption, "The hub's access token", "HF_TOKEN")
        if (!/^[\x21-\x7e]+$/.test(Redacted.value(token)))
          return yield* new CommandError({
            message: "The hub's access token contains a space, a line break or another invalid character. Copy it again.",
            exitCode: 2
          })
        const connections = yield* HubConnections
        const owner = yield* organization(org)
        yield* connections.set(owner.id, (yield* user(owner, email)).id, token)
        yield* printRecord(json, { org, email, connected: true })
      })
    ).pipe(Command.withDescription("Stores a user's token and replaces the previous one.")),
    Command.make(
      "list",
      { org, json },
      Effect.fn(function* ({ json, org }) {
        const connections = yield* HubConnections
        const { id } = yield* organization(org)
        yield* printRows(
          json,
          (yield* connections.list(id)).map((row) => ({
            user_id: row.userId,
            email: row.email,
            shared: row.shared,
            created_at: row.createdAt,
            set_at: row.updatedAt,
            current_encryption_key: row.currentKey
          }))
        )
      })
    ).pipe(Command.withDescription("Lists the users of an organization who have a token.")),
    Command.make(
      "share",
      { org, email, json },
      Effect.fn(function* ({ email, json, org }) {
        const connections = yield* HubConnections
        const owner = yield* organization(org)
        const { id } = yield* user(owner, email)
        if (!(yield* connections.share(owner.id, id))) {
          return yield* new CommandError({ message: `${email} has no hub token in ${org}. \`seatrial admin hub-connections set\` stores one.` })
        }
        yield* printRecord(json, { org, email, shared: true })
      })
    ).pipe(
      Command.withDescription(
        "Lets ModelDeployments in the organization's namespaces read the hub with this user's token. An organization shares one token; sharing another replaces it."
      )
    ),
    Command.make(
      "unshare",
      { org, json },
      Effect.fn(function* ({ json, org }) {
        const connections = yield* HubConnections
        const { id } = yield* organization(org)
        if (!(yield* connections.share(id, null))) return yield* new CommandError({ message: `${org} shares no hub token.` })
        yield* printRecord(json, { org, shared: false })
      })
    ).pipe(Command.withDescription("Stops sharing: ModelDeployments read the hub without a token again. The user keeps the token.")),
    Command.make(
      "remove",
      { org, email, yes, json },
      Effect.fn(function* ({ email, json, org, yes }) {
        const connections = yield* HubConnections
        const owner = yield* organization(org)
        const { id } = yield* user(owner, email)
        yield* confirm(yes, `The hub token of ${email} in ${org} will be deleted.`)
        if (!(yield* connections.remove(owner.id, id))) return yield* new CommandError({ message: `${email} has no hub token in ${org}.` })
        yield* printRecord(json, { org, email, connected: false })
      })
    ).pipe(Command.withDescription("Deletes a user's token.")),
    Command.make(
      "rotate-key",
      { json },
      Effect.fn(function* ({ json }) {
        const connections = yield* HubConnections
        const done = yield* connections.rotateKey
        yield* printRecord(json, { ...done })
        if (done.unreadable > 0) {
          return yield* new CommandError({
            message: `${done.unreadable} tokens are encrypted with a key that is not in SEATRIAL_ENCRYPTION_KEY. Add that key, or set the tokens again.`
          })
        }
      })
    ).pipe(
      Command.withDescription(
        "Encrypts all tokens again with the first key of SEATRIAL_ENCRYPTION_KEY. The setting can also hold earlier keys, separated by commas. You can repeat this command at any time."
      )
    )
  ])
)
