import { Effect, Schema } from "effect"
import { againstFloors } from "./againstFloors.ts"
import type { Benchmark } from "./Benchmark.ts"

const connections = 32

const Listed = Schema.Struct({ data: Schema.Array(Schema.Struct({ id: Schema.String, latency_ms: Schema.Finite })) })
/** Undefined if there are fewer than 50, so that a comparison fails. */
const rowsOf = (answer: unknown) => {
  const { data } = Schema.decodeUnknownSync(Listed)(answer)
  return data.length === 50 ? data : undefined
}

export const listRequests: Benchmark = {
  name: "list",
  title: "List 50 requests",
  measure: Effect.fnUntraced(function* ({ requests }) {
    const { lab, organizations, rows, seconds } = yield* requests
    const figures = yield* againstFloors(lab, {
      statement: "list",
      paths: ["/v1/requests?limit=50"],
      same: { path: "/v1/requests?limit=50", of: rowsOf },
      connections,
      rounds: 5,
      seconds: 1.5
    })
    return `\`GET /v1/requests?limit=50\` out of ${rows.toLocaleString("en-US")} requests of ${organizations} organizations, one of which holds half and asks (made in
${seconds.toFixed(0)} s; \`BENCH_REQUESTS\` sets another number), over ${connections} connections. The baselines send the same query and \`JSON.stringify\` of its rows.

${figures}`
  })
}
