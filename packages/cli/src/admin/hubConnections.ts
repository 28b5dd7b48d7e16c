import { HubConnections } from "@seatrial/store"
import { Effect, Redacted } from "effect"
import { Command } from "effect/cli"
import { CommandError } from "../CommandError.ts"
import { printRecord, printRows } from "../print.ts"
import { confirm, yesFlag as yes } from "./confirm.ts"
import { emailFlag as email, jsonFlag as json, orgFlag as org, organization, user } from "./organization.ts"
import { tokenFlag, tokenOf } from "./secretFlag.ts"

export const hubConnectionsCommand = Command.make("hub-connections").pipe(
  Command.withDescription(
    "Tokens that open private and gated repositories of the model hub, encrypted at rest with SEATRIAL_ENCRYPTION_KEY. None is ever shown."
  ),
  Command.withSubcommands([
    Command.make(
      "set",
      {
        org,
        email,
        token: tokenFlag("The hub's access token", "HF_TOKEN"),
        json
      },
      Effect.fn(function* ({ email, json, org, token: given }) {
        const token = yield* tokenOf(given, "The hub's access token", "HF_TOKEN")
        if (!/^[\x21-\x7e]+$/.test(Redacted.value(token)))
          return yield* new CommandError({
            message: "The hub's access token holds a space, a line break or another character that no token has. Was it copied whole, and nothing else?",
            exitCode: 2
          })
        const connections = yield* HubConnections
        const owner = yield* organization(org)
        yield* connections.set(owner.id, (yield* user(owner, email)).id, token)
        yield* printRecord(json, { org, email, connected: true })
      })
    ).pipe(Command.withDescription("Stores a user's token, in place of the one before.")),
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
    ).pipe(Command.withDescription("Lists whose tokens an organization has.")),
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
        "Lets ModelDeployments that somebody applies in the organization's namespaces read the hub with this user's token. One token of an organization is shared; another takes its place."
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
    ).pipe(Command.withDescription("Ends that: ModelDeployments that somebody applies read the hub without a token again. The token stays its user's.")),
    Command.make(
      "remove",
      { org, email, yes, json },
      Effect.fn(function* ({ email, json, org, yes }) {
        const connections = yield* HubConnections
        const owner = yield* organization(org)
        const { id } = yield* user(owner, email)
        yield* confirm(yes, `The hub token of ${email} in ${org} is forgotten.`)
        if (!(yield* connections.remove(owner.id, id))) return yield* new CommandError({ message: `${email} has no hub token in ${org}.` })
        yield* printRecord(json, { org, email, connected: false })
      })
    ).pipe(Command.withDescription("Forgets a user's token.")),
    Command.make(
      "rotate-key",
      { json },
      Effect.fn(function* ({ json }) {
        const connections = yield* HubConnections
        const done = yield* connections.rotateKey
        yield* printRecord(json, { ...done })
        if (done.unreadable > 0) {
          return yield* new CommandError({
            message: `${done.unreadable} tokens were sealed with a key that SEATRIAL_ENCRYPTION_KEY does not have. Add that key to it, or let their users set them again.`
          })
        }
      })
    ).pipe(
      Command.withDescription(
        "Seals all tokens anew with the first key of SEATRIAL_ENCRYPTION_KEY, which may hold earlier ones after it, separated by commas. May be run again at any time."
      )
    )
  ])
)
