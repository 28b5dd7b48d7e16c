import { Effect } from "effect"
import { comparisonTable, startFloor, startServer } from "./againstFloors.ts"
import type { Benchmark } from "./Benchmark.ts"
import { compare, httpRequest } from "./compare.ts"
import { startLoadGenerator } from "./LoadGenerator.ts"

const connections = 32
const unique = "x".repeat(24)

export const createDeployment: Benchmark = {
  name: "create",
  title: "Create a deployment",
  measure: Effect.fnUntraced(function* ({ own }) {
    const lab = yield* own
    const programs = [yield* startFloor(lab, "create", false), yield* startFloor(lab, "create", true), yield* startServer(lab)]
    const body = JSON.stringify({ model_name: unique, source: { kind: "model_hub", repo: "bench/model" } })
    const request = httpRequest("POST", "/v1/deployments", lab.key, body, { "idempotency-key": unique })
    const plan = { requests: [request] as const, unique, status: 201, connections, warmSeconds: 0.3, seconds: 1.5 }
    const runs = yield* compare(
      yield* startLoadGenerator(),
      5,
      programs.map((program) => ({ program, plan }))
    )
    return `\`POST /v1/deployments\` of a new model with a new idempotency key each, over ${connections} connections; Seatrial checks key, rate limits, scopes, the body and
the idempotency key. The baselines are a bare \`node:http\` process with the \`pg\` driver (pool of 10, as ours) that parses the body and sends the one statement
of a create: key, model, deployment, phase, audit event, work and notification. Each create is a commit that waits for the disk.

${comparisonTable(programs, runs)}`
  })
}
