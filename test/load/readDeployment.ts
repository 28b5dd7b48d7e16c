import { Effect } from "effect"
import { againstFloors } from "./againstFloors.ts"
import type { Benchmark } from "./Benchmark.ts"
import { makeDeployments } from "./makeDeployments.ts"
import { BenchError } from "./Program.ts"

const connections = 32

export const readDeployment: Benchmark = {
  name: "read",
  title: "Read one deployment",
  measure: Effect.fnUntraced(function* ({ own }) {
    const lab = yield* own
    const [first, ...others] = yield* makeDeployments(lab, 10_000)
    if (first === undefined) return yield* new BenchError({ message: "No deployment was made." })
    const figures = yield* againstFloors(lab, {
      statement: "deployment",
      paths: [`/v1/deployments/${first}`, ...others.map((id) => `/v1/deployments/${id}`)],
      same: { path: `/v1/org/deployments/${first}`, of: (answer) => answer },
      connections,
      rounds: 5,
      seconds: 1.5
    })
    return `\`GET /v1/deployments/{id}\` of 1,000 out of 10,000 deployments, in turn, over ${connections} connections; with key, rate limits and scope on our side. The floors
are a bare \`node:http\` process with the \`pg\` driver (pool of 10, as ours) that sends the same query and \`JSON.stringify\` of the row, and checks no key.

${figures}`
  })
}
