import { gatewaySettings } from "@seatrial/gateway/settings"
import { hubSettings } from "@seatrial/hub/settings"
import { operatorSettings } from "@seatrial/operator/settings"
import { serverSettings } from "@seatrial/server/settings"
import { Effect } from "effect"
import { Command } from "effect/cli"

interface Setting {
  readonly name: string
  readonly description: string
  readonly default?: unknown
}

const commonSettings: ReadonlyArray<Setting> = [
  { name: "DATABASE_URL", description: "Postgres, as postgres://user:password@host:port/database" },
  { name: "DATABASE_POOL_SIZE", description: "Connections to Postgres", default: 10 },
  { name: "DATABASE_READ_POOL_SIZE", description: "Additional connections to Postgres for reads, opened on demand", default: 8 },
  {
    name: "DATABASE_STATEMENT_TIMEOUT",
    description: "Timeout of a SQL statement. Migrations may take longer. Statements on the connections for reads time out after 5 seconds",
    default: "30 seconds"
  },
  {
    name: "DATABASE_MIGRATE",
    description: "Whether the program migrates the database at startup; if false, it waits until `seatrial migrate` has run",
    default: "true"
  },
  { name: "DATABASE_WAIT", description: "How long the program waits at startup for a Postgres that does not answer yet", default: "0" },
  { name: "DATABASE_ROLE", description: "Role that the program uses, for example seatrial_server; the role of the login if empty", default: "" },
  { name: "DATABASE_APPLICATION_NAME", description: "Name of the connections in Postgres", default: "seatrial" },
  { name: "LOG_LEVEL", description: "Lowest level that is logged: Trace, Debug, Info, Warn, Error, Fatal or None", default: "Info" }
]

const kubeSettings: ReadonlyArray<Setting> = [{ name: "KUBE_CONTEXT", description: "Context of the kubeconfig", default: "the current context" }]

const listed = (settings: ReadonlyArray<Setting>): string =>
  settings.map((setting) => `  ${setting.name}: ${setting.description}${setting.default === undefined ? "" : ` (default ${setting.default})`}`).join("\n")

/** A command that starts a program. Loading the `main.ts` of the program runs it until it receives a stop signal. */
const program = (name: string, what: string, settings: ReadonlyArray<Setting>, load: () => Promise<unknown>) =>
  Command.make(name, {}, () => Effect.promise(load)).pipe(
    Command.withShortDescription(what),
    Command.withDescription(`${what}\n\nSettings, from the environment:\n${listed([...commonSettings, ...settings])}`)
  )

export const serverCommand = program("server", "Runs the HTTP API.", [...serverSettings, ...hubSettings], () => import("@seatrial/server/main"))
export const operatorCommand = program(
  "operator",
  "Runs the operator, which moves deployments through their phases on Kubernetes.",
  [...operatorSettings, ...kubeSettings, ...hubSettings],
  () => import("@seatrial/operator/main")
)
export const gatewayCommand = program("gateway", "Runs the inference gateway.", gatewaySettings, () => import("@seatrial/gateway/main"))
