import { readFile } from "node:fs/promises"
import { Config, Effect, Fiber } from "effect"
import { startServer } from "./againstFloors.ts"
import type { Benchmark } from "./Benchmark.ts"
import { httpRequest } from "./compare.ts"
import { startLoadGenerator } from "./LoadGenerator.ts"
import { BenchError } from "./Program.ts"

const connections = 32

/** Resident memory of a process, MB; null where the system does not tell. */
const residentMegabytes = (pid: number): Effect.Effect<number | null> =>
  Effect.promise(async () => {
    const text = await readFile(`/proc/${pid}/status`, "utf8").catch(() => "")
    const kilobytes = /^VmRSS:\s+(\d+) kB/m.exec(text)?.[1]
    return kilobytes === undefined ? null : (Number(kilobytes) * 1_024) / 1_000_000
  })

const highest = (values: ReadonlyArray<number>) => Math.max(...values)

export const memory: Benchmark = {
  name: "memory",
  title: "Resident memory under load",
  measure: Effect.fnUntraced(function* (lab) {
    const { rows } = yield* lab.requests
    const seconds = yield* Config.Int("BENCH_MEMORY_SECONDS").pipe(Config.withDefault(60))
    const found = yield* lab.sql<{ readonly id: string }>`
      SELECT id FROM requests WHERE org_id = ${lab.orgId} ORDER BY created_at DESC, id DESC LIMIT 1000`
    const paths = found.flatMap(({ id }) => [`/v1/requests/${id}`, `/v1/org/requests/${id}`, "/v1/requests?limit=50", "/v1/requests?limit=50&status=success"])
    const [first, ...others] = paths.map((path) => httpRequest("GET", path, lab.key))
    if (first === undefined) return yield* new BenchError({ message: "No request was made." })
    const server = yield* startServer(lab)
    const idle = yield* residentMegabytes(server.pid)
    const generate = yield* startLoadGenerator()
    const load = yield* Effect.forkScoped(
      generate({ host: server.host, port: server.port, requests: [first, ...others], connections, warmSeconds: 0, seconds })
    )
    const seen: Array<number> = []
    while (load.pollUnsafe() === undefined) {
      yield* Effect.sleep("1 second")
      const now = yield* residentMegabytes(server.pid)
      if (now !== null) seen.push(now)
    }
    const { answers, perSecond } = yield* Fiber.join(load)
    const third = Math.floor(seen.length / 3)
    const [begin, middle, end] = [seen.slice(0, third), seen.slice(third, 2 * third), seen.slice(2 * third)].map(highest)
    return `Half look-ups of one request, half pages of 50 out of ${rows.toLocaleString("en-US")} requests, over ${connections} connections for ${seconds} s: ${answers.toLocaleString("en-US")}
answers, ${perSecond.toFixed(0)}/s. Resident memory of the server's process, read every second: ${idle?.toFixed(0) ?? "?"} MB before the first request, at most ${begin?.toFixed(0) ?? "?"}, ${middle?.toFixed(0) ?? "?"} and ${end?.toFixed(0) ?? "?"} MB in the
first, second and last third.`
  })
}
