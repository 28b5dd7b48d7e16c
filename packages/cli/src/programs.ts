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

const storeSettings: ReadonlyArray<Setting> = [
  { name: "DATABASE_URL", description: "Postgres, as postgres://user:password@host:port/database" },
  { name: "DATABASE_POOL_SIZE", description: "Connections to Postgres", default: 10 },
  { name: "DATABASE_READ_POOL_SIZE", description: "Further connections for reading requests, opened when they are needed", default: 8 },
  { name: "DATABASE_STATEMENT_TIMEOUT", description: "After which Postgres gives up any other statement", default: "30 seconds" },
  {
    name: "DATABASE_MIGRATE",
    description: "Whether the program migrates the database at its start; if false it waits until `seatrial migrate` has",
    default: "true"
  },
  { name: "DATABASE_ROLE", description: "Role whose rights the program has, such as seatrial_server; by default those of the login", default: "" },
  { name: "DATABASE_APPLICATION_NAME", description: "Name under which Postgres shows the connections", default: "seatrial" }
]

const kubeSettings: ReadonlyArray<Setting> = [{ name: "KUBE_CONTEXT", description: "Context of the kubeconfig", default: "its current one" }]

const listed = (settings: ReadonlyArray<Setting>): string =>
  settings.map((setting) => `  ${setting.name}: ${setting.description}${setting.default === undefined ? "" : ` (default ${setting.default})`}`).join("\n")

/** A program of its own: its `main.ts` composes it, reads its settings from the environment and runs until it is told to stop. The command ends as it begins. */
const program = (name: string, what: string, settings: ReadonlyArray<Setting>, load: () => Promise<unknown>) =>
  Command.make(name, {}, () => Effect.promise(load)).pipe(
    Command.withShortDescription(what),
    Command.withDescription(`${what}\n\nSettings, from the environment:\n${listed([...storeSettings, ...settings])}`)
  )

export const serverCommand = program("server", "Runs the HTTP API.", [...serverSettings, ...hubSettings], () => import("@seatrial/server/main"))
export const operatorCommand = program(
  "operator",
  "Runs the controllers that drive Kubernetes.",
  [...operatorSettings, ...kubeSettings, ...hubSettings],
  () => import("@seatrial/operator/main")
)
export const gatewayCommand = program("gateway", "Runs the data path of inference.", gatewaySettings, () => import("@seatrial/gateway/main"))
