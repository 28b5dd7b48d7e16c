import { HubConnections } from "@seatrial/store"
import { Config, Effect } from "effect"
import { Command, Flag } from "effect/cli"
import { printRecord } from "../print.ts"
import { emailFlag as email, orgFlag as org, organization, user } from "./organization.ts"

export const hubConnectionsCommand = Command.make("hub-connections").pipe(
  Command.withDescription("Tokens that open private and gated repositories of the model hub."),
  Command.withSubcommands([
    Command.make(
      "set",
      { org, email, token: Flag.Redacted("token").pipe(Flag.withDescription("The hub's access token"), Flag.withFallbackConfig(Config.Redacted("HF_TOKEN"))) },
      Effect.fn(function* ({ email, org, token }) {
        const connections = yield* HubConnections
        const owner = yield* organization(org)
        yield* connections.set(owner.id, (yield* user(owner, email)).id, token)
        yield* printRecord(false, { org, email, connected: true })
      })
    ).pipe(Command.withDescription("Stores a user's token, encrypted.")),
    Command.make(
      "remove",
      { org, email },
      Effect.fn(function* ({ email, org }) {
        const connections = yield* HubConnections
        const owner = yield* organization(org)
        yield* connections.remove(owner.id, (yield* user(owner, email)).id)
        yield* printRecord(false, { org, email, connected: false })
      })
    ).pipe(Command.withDescription("Forgets a user's token."))
  ])
)
