import { resolve } from "node:path"
import { Config, Schema } from "effect"

/** Settings of `npm start`: name, meaning, default. The settings of server, operator and gateway work too. */
export const startSettings = [
  { name: "SEATRIAL_STATE", description: "Folder for data, logs and the state file", default: ".seatrial" },
  { name: "SEATRIAL_PORT", description: "Port of API and gateway on 127.0.0.1; another is taken where it is not free", default: 8080 },
  { name: "SEATRIAL_CLUSTER_PORT", description: "Port of the local cluster's API server; another is taken where it is not free", default: 6550 },
  { name: "SEATRIAL_HUB_PORT", description: "Port of the sample hub; another is taken where it is not free", default: 8090 },
  { name: "SEATRIAL_DURABLE", description: "false: data for a trial run, gone at the end", default: true },
  { name: "SEATRIAL_PROGRAMS", description: "Which of server, gateway and operator run here, comma-separated", default: "server,gateway,operator" },
  { name: "DATABASE_URL", description: "A Postgres of your own instead of the embedded one", default: undefined },
  { name: "KUBECONFIG", description: "A cluster of your own instead of the local one", default: undefined },
  { name: "HF_ENDPOINT", description: "A model hub of your own instead of the sample hub", default: undefined }
] as const

const text = (name: string) => Config.String(name).pipe(Config.withDefault(""))
const known = ["server", "gateway", "operator"]
const namesOf = (list: string) => list.split(",").map((name) => name.trim())
const Programs = Schema.String.check(
  Schema.makeFilter((list) => namesOf(list).every((name) => known.includes(name)), {
    message: `Expected one or more of ${known.join(", ")}, separated by commas`
  })
)
const program = (programs: ReadonlyArray<string>, name: string) => programs.includes(name)

export const settings = Config.all({
  folder: Config.String("SEATRIAL_STATE").pipe(
    Config.withDefault(".seatrial"),
    Config.map((folder) => resolve(folder))
  ),
  port: Config.Port("SEATRIAL_PORT").pipe(Config.withDefault(8080)),
  clusterPort: Config.Port("SEATRIAL_CLUSTER_PORT").pipe(Config.withDefault(6550)),
  hubPort: Config.Port("SEATRIAL_HUB_PORT").pipe(Config.withDefault(8090)),
  durable: Config.Boolean("SEATRIAL_DURABLE").pipe(Config.withDefault(true)),
  programs: Config.schema(Programs, "SEATRIAL_PROGRAMS").pipe(
    Config.withDefault("server,gateway,operator"),
    Config.map((list) => {
      const names = namesOf(list)
      return { server: program(names, "server"), gateway: program(names, "gateway"), operator: program(names, "operator") }
    })
  ),
  database: text("DATABASE_URL"),
  kubeconfig: text("KUBECONFIG"),
  hub: text("HF_ENDPOINT")
})
