import { Command } from "effect/cli"
import { hubConnectionsCommand } from "./hubConnections.ts"
import { keysCommand } from "./keys.ts"
import { orgsCommand } from "./orgs.ts"
import { purchasesCommand } from "./purchases.ts"
import { usersCommand } from "./users.ts"

export const adminCommand = Command.make("admin").pipe(
  Command.withDescription("Administration, straight in Postgres (DATABASE_URL, else the system started in this folder). Each change writes its audit event."),
  Command.withSubcommands([orgsCommand, usersCommand, keysCommand, purchasesCommand, hubConnectionsCommand])
)
