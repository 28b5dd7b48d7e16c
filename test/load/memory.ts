import { Config, Effect, Fiber } from "effect"
import { startServer } from "./againstFloors.ts"
import type { Benchmark } from "./Benchmark.ts"
import { httpRequest } from "./compare.ts"
import { table } from "./figures.ts"
import { startLoadGenerator } from "./LoadGenerator.ts"
import { BenchError, residentMegabytes } from "./Program.ts"

const connections = 32

const highest = (values: ReadonlyArray<number>) => Math.max(...values)

const mixes = [
  { name: "half look-ups, half pages of 50", path: "/v1/requests?limit=50&status=success" },
  { name: "half look-ups, a quarter pages of 50, a quarter pages of 200", path: "/v1/requests?limit=200" }
] as const

export const memory: Benchmark = {
  name: "memory",
  title: "Resident memory under load",
  measure: Effect.fnUntraced(function* ({ requests }) {
    const { lab, rows } = yield* requests
    const seconds = yield* Config.Int("BENCH_MEMORY_SECONDS").pipe(Config.withDefault(60))
    const newestRequests = yield* lab.sql<{ readonly id: string }>`
      SELECT id FROM requests WHERE org_id = ${lab.orgId} ORDER BY created_at DESC, id DESC LIMIT 1000`
    const generate = yield* startLoadGenerator()

    const under = Effect.fnUntraced(function* ({ name, path }: (typeof mixes)[number]) {
      const paths = newestRequests.flatMap(({ id }) => [`/v1/requests/${id}`, `/v1/org/requests/${id}`, "/v1/requests?limit=50", path])
      const [first, ...others] = paths.map((target) => httpRequest("GET", target, lab.key))
      if (first === undefined) return yield* new BenchError({ message: "No request was made." })
      const server = yield* startServer(lab)
      const idle = yield* residentMegabytes(server.pid)
      const load = yield* Effect.forkScoped(
        generate({ host: server.host, port: server.port, requests: [first, ...others], connections, warmSeconds: 0, seconds })
      )
      const memorySamples: Array<number> = []
      while (load.pollUnsafe() === undefined) {
        yield* Effect.sleep("1 second")
        const now = yield* residentMegabytes(server.pid)
        if (now !== null) memorySamples.push(now)
      }
      const { answers, perSecond } = yield* Fiber.join(load)
      const third = Math.floor(memorySamples.length / 3)
      const thirds = [memorySamples.slice(0, third), memorySamples.slice(third, 2 * third), memorySamples.slice(2 * third)].map(highest)
      return [name, answers.toLocaleString("en-US"), perSecond.toFixed(0), ...[idle ?? Number.NaN, ...thirds].map((value) => value.toFixed(0))]
    }, Effect.scoped)

    const lines = yield* Effect.forEach(mixes, under)
    return `Out of ${rows.toLocaleString("en-US")} requests, over ${connections} connections for ${seconds} s each. Resident memory of the server's process, read every second: before the first request, and
at most in each third of the time. V8's memory is limited as in the chart.

${table(["", "answers", "answers/s", "MB before", "first third", "second third", "last third"], lines)}`
  })
}
