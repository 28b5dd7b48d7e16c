import { resolve } from "node:path"
import { Config, Schema } from "effect"

/** The ports if neither the environment nor an earlier start sets others. */
export const defaultPorts = { front: 8080, cluster: 6550, hub: 8090 } as const

const known = ["server", "gateway", "operator"] as const

/** Settings of `npm start`: name, description, default. The settings of server, operator and gateway also apply. */
export const startSettings = [
  { name: "SEATRIAL_STATE", description: "Folder for data, logs and the state file", default: ".seatrial" },
  {
    name: "SEATRIAL_PORT",
    description: "Port of API and gateway on 127.0.0.1; a free one if it is in use, which the next start reuses",
    default: defaultPorts.front
  },
  { name: "SEATRIAL_CLUSTER_PORT", description: "Port of the local cluster's API server; chosen like SEATRIAL_PORT", default: defaultPorts.cluster },
  { name: "SEATRIAL_HUB_PORT", description: "Port of the sample hub; chosen like SEATRIAL_PORT", default: defaultPorts.hub },
  { name: "SEATRIAL_DURABLE", description: "false: temporary data, deleted when the system stops", default: true },
  { name: "SEATRIAL_PROGRAMS", description: `Which of ${known.join(", ")} run here, comma-separated`, default: known.join(",") },
  { name: "DATABASE_URL", description: "Postgres server to use instead of the embedded one", default: undefined },
  { name: "KUBECONFIG", description: "Cluster to use instead of the local one", default: undefined },
  { name: "HF_ENDPOINT", description: "Model hub to use instead of the sample hub", default: undefined }
] as const

const text = (name: string) => Config.String(name).pipe(Config.withDefault(""))
const namesOf = (list: string) => list.split(",").map((name) => name.trim())
const Programs = Schema.String.check(
  Schema.makeFilter((list) => namesOf(list).every((name) => known.some((each) => each === name)), {
    message: `Expected one or more of ${known.join(", ")}, separated by commas`
  })
)
const program = (programs: ReadonlyArray<string>, name: string) => programs.includes(name)

export const settings = Config.all({
  folder: Config.String("SEATRIAL_STATE").pipe(
    Config.withDefault(".seatrial"),
    Config.map((folder) => resolve(folder))
  ),
  ports: Config.all({
    front: Config.Port("SEATRIAL_PORT").pipe(Config.option),
    cluster: Config.Port("SEATRIAL_CLUSTER_PORT").pipe(Config.option),
    hub: Config.Port("SEATRIAL_HUB_PORT").pipe(Config.option)
  }),
  durable: Config.Boolean("SEATRIAL_DURABLE").pipe(Config.withDefault(true)),
  programs: Config.schema(Programs, "SEATRIAL_PROGRAMS").pipe(
    Config.withDefault(known.join(",")),
    Config.map((list) => {
      const names = namesOf(list)
      const programs: Record<(typeof known)[number], boolean> = {
        server: program(names, "server"),
        gateway: program(names, "gateway"),
        operator: program(names, "operator")
      }
      return programs
    })
  ),
  database: text("DATABASE_URL"),
  kubeconfig: text("KUBECONFIG"),
  hub: text("HF_ENDPOINT")
})
