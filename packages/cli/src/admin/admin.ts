import type { HubConnections } from "@seatrial/store"
import type { Layer } from "effect"
import { Command } from "effect/cli"
import { creditsCommand } from "./credits.ts"
import { hubConnectionsCommand } from "./hubConnections.ts"
import { invitationsCommand } from "./invitations.ts"
import { keysCommand } from "./keys.ts"
import { billingCommand, limitsCommand } from "./limits.ts"
import { membersCommand } from "./members.ts"
import { modelsCommand } from "./models.ts"
import { orgsCommand } from "./orgs.ts"
import { purchasesCommand } from "./purchases.ts"
import { referencesCommand } from "./references.ts"
import { reservationsCommand } from "./reservations.ts"
import { usageCommand } from "./usage.ts"
import { usersCommand } from "./users.ts"

/** The administration commands. Hub connections have a separate layer, because only they need the encryption key. */
export const makeAdminCommand = <E, R>(layerHubConnections: Layer.Layer<HubConnections, E, R>) =>
  Command.make("admin").pipe(
    Command.withDescription(
      "Administration, directly in Postgres (DATABASE_URL, or the system that runs in this folder). Each change of an organization writes an audit event."
    ),
    Command.withSubcommands([
      orgsCommand,
      usersCommand,
      membersCommand,
      invitationsCommand,
      keysCommand,
      purchasesCommand,
      creditsCommand,
      limitsCommand,
      billingCommand,
      reservationsCommand,
      usageCommand,
      modelsCommand,
      referencesCommand,
      hubConnectionsCommand.pipe(Command.provide(layerHubConnections))
    ])
  )
