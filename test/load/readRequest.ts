import { Effect, Schema } from "effect"
import { againstFloors } from "./againstFloors.ts"
import type { Benchmark } from "./Benchmark.ts"
import { BenchError } from "./Program.ts"

const connections = 32

const decodeRecord = Schema.decodeUnknownSync(
  Schema.Struct({ id: Schema.String, state: Schema.String, endpoint: Schema.String, created_at: Schema.String, latency_ms: Schema.Finite })
)

export const readRequest: Benchmark = {
  name: "request",
  title: "Read one request",
  measure: Effect.fnUntraced(function* ({ requests }) {
    const { lab, rows } = yield* requests
    const newestRequests = yield* lab.sql<{ readonly id: string }>`
      SELECT id FROM requests WHERE org_id = ${lab.orgId} AND id LIKE '%5' ORDER BY created_at DESC, id DESC LIMIT 1000`
    const [first, ...others] = newestRequests.map(({ id }) => `/v1/requests/${id}`)
    if (first === undefined) return yield* new BenchError({ message: "No request was made." })
    const figures = yield* againstFloors(lab, {
      statement: "request",
      peer: true,
      paths: [first, ...others],
      same: { path: first, of: (answer) => decodeRecord(answer) },
      connections,
      rounds: 5,
      seconds: 1.5
    })
    return `\`GET /v1/requests/{id}\` of 1,000 out of ${rows.toLocaleString("en-US")} requests, in turn, over ${connections} connections; with key, rate limits and scope on our side. The floors
are a bare \`node:http\` process with the \`pg\` driver (pool of 10) that sends the same query and \`JSON.stringify\` of the row, and checks no key. The peer is a Fastify
server with the same driver and pool, named statements, a schema that serializes the answer, a cached key and token buckets.

${figures}`
  })
}
