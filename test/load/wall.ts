import { join } from "node:path"
import { Effect } from "effect"
import { comparisonTable, startServer } from "./againstFloors.ts"
import type { Benchmark } from "./Benchmark.ts"
import { compare, httpRequest } from "./compare.ts"
import { startLoadGenerator } from "./LoadGenerator.ts"
import { makeDeployments } from "./makeDeployments.ts"
import { BenchError } from "./Program.ts"

const connections = 32

export const wall: Benchmark = {
  name: "wall",
  title: "Row-level security",
  measure: Effect.fnUntraced(function* ({ requests }) {
    const { lab, rows } = yield* requests
    const deployments = yield* makeDeployments(lab, 1_000)
    const { data } = yield* lab.listJson(lab.orgId, { limit: 50, after: null })
    const ids = Array.from(data.matchAll(/"id":"(req_[^"]+)"/g), ([, id]) => id)
    const [first, ...others] = deployments.map((id) => `/v1/deployments/${id}`)
    if (first === undefined || ids.length === 0) return yield* new BenchError({ message: "Nothing was made." })
    const without = yield* startServer(lab, {}, { name: "rights of the owner, no organization set", file: join(import.meta.dirname, "withoutWall/main.ts") })
    const withWall = yield* startServer(lab, { DATABASE_ROLE: "seatrial_server" }, { name: "role of the server, row-level security" })
    const generate = yield* startLoadGenerator()
    const paths: ReadonlyArray<readonly [string, readonly [string, ...ReadonlyArray<string>]]> = [
      ["`GET /v1/deployments/{id}`", [first, ...others]],
      ["`GET /v1/deployments?limit=50`", ["/v1/deployments?limit=50"]],
      ["`GET /v1/requests/{id}`", [`/v1/requests/${ids[0]}`, ...ids.slice(1).map((id) => `/v1/requests/${id}`)]],
      ["`GET /v1/requests?limit=50`", ["/v1/requests?limit=50"]]
    ]
    const tables: Array<string> = []
    for (const [what, [path, ...further]] of paths) {
      const plan = {
        requests: [httpRequest("GET", path, lab.key), ...further.map((other) => httpRequest("GET", other, lab.key))] as const,
        connections,
        warmSeconds: 0.3,
        seconds: 1.5
      }
      const programs = [without, withWall]
      const runs = yield* compare(
        generate,
        5,
        programs.map((program) => ({ program, plan }))
      )
      tables.push(`${what}:\n\n${comparisonTable(programs, runs)}`)
    }
    return `The cost of row-level security: two processes of the server on one database, over ${connections} connections of one key, with ${rows.toLocaleString("en-US")} requests and ${deployments.length.toLocaleString("en-US")} deployments. One has the rights of the owner of the tables; the
other has \`DATABASE_ROLE=seatrial_server\` and sets the organization. A connection that has the caller's organization already needs no statement, so callers of many organizations cost one short statement more for
each change. The statements on requests set the organization themselves in both.

${tables.join("\n\n")}`
  })
}
