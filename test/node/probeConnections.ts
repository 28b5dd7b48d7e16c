import { Effect, Schema } from "effect"
import type { NodeClusterShape } from "./NodeCluster.ts"

/** How a connection ended. `refused`: the packet arrived, and no program listens there. */
const Outcome = Schema.Literals(["open", "refused", "filtered", "silent"])
const Outcomes = Schema.fromJsonString(Schema.Record(Schema.String, Outcome))

/** Connects to each target of its arguments, `name=host:port`. The nodes' rules answer what they forbid with an ICMP message. */
const script = `
const { connect } = require("node:net")
const codes = { ECONNREFUSED: "refused", EHOSTUNREACH: "filtered", EACCES: "filtered", ENETUNREACH: "filtered" }
const probe = (host, port) => new Promise((resolve) => {
  const socket = connect({ host, port, timeout: 5000 })
  const end = (outcome) => { socket.destroy(); resolve(outcome) }
  socket.on("connect", () => end("open")).on("timeout", () => end("silent")).on("error", ({ code }) => end(codes[code] ?? "silent"))
})
const targets = process.argv.slice(1).map((word) => word.split(/[=:]/))
Promise.all(targets.map(async ([name, host, port]) => [name, await probe(host, Number(port))]))
  .then((entries) => console.log(JSON.stringify(Object.fromEntries(entries))))
`

/** A pod that can run the probe. */
interface ProbeSource {
  readonly namespace: string
  readonly pod: string
  readonly container: string
}

/** The names of the targets that a pod reaches. Dies if a connection neither reaches its target nor is rejected. */
export const probeConnections = Effect.fnUntraced(function* (
  { kubectl }: Pick<NodeClusterShape, "kubectl">,
  { container, namespace, pod }: ProbeSource,
  targets: Readonly<Record<string, string>>
) {
  const words = Object.entries(targets).map((pair) => pair.join("="))
  const output = yield* kubectl([`--namespace=${namespace}`, "exec", pod, `--container=${container}`, "--", "node", "--eval", script, "--", ...words])
  const outcomes = Object.entries(Schema.decodeUnknownSync(Outcomes)(output.trim()))
  const silent = outcomes.filter(([, outcome]) => outcome === "silent").map(([name]) => name)
  if (silent.length > 0) return yield* Effect.die(new Error(`${pod} got no answer from ${silent.join(", ")}`))
  return outcomes.filter(([, outcome]) => outcome !== "filtered").map(([name]) => name)
})
