import { availableParallelism } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"
import type { Benchmark } from "./Benchmark.ts"
import { compare, httpRequest, type Run } from "./compare.ts"
import { type Figure, figureOf, show, table } from "./figures.ts"
import { startLoadGenerator } from "./LoadGenerator.ts"
import { makeRoute } from "./makeDeployments.ts"
import { BenchError, startProgram } from "./Program.ts"

const root = join(import.meta.dirname, "../..")

interface Case {
  readonly name: string
  readonly stream: boolean
  readonly connections: number
  /** The moment that counts, of one answer. */
  readonly moment: (run: Run) => Run["whole"]
}

const cases: ReadonlyArray<Case> = [
  { name: "whole answer, 1 client", stream: false, connections: 1, moment: ({ whole }) => whole },
  { name: "whole answer, 16 clients", stream: false, connections: 16, moment: ({ whole }) => whole },
  { name: "stream, first frame, 1 client", stream: true, connections: 1, moment: ({ first }) => first },
  { name: "stream, first frame, 16 clients", stream: true, connections: 16, moment: ({ first }) => first }
]

const bodyOf = (model: string, stream: boolean) =>
  JSON.stringify({
    model,
    messages: [
      { role: "system", content: "You are the ship's clerk. Answer in one sentence." },
      { role: "user", content: "What does the crew do before the trial begins? ".repeat(16) }
    ],
    max_tokens: 64,
    stream
  })

const added = (through: ReadonlyArray<Run>, direct: ReadonlyArray<Run>, of: (run: Run) => number): Figure =>
  figureOf(through.map((run, round) => of(run) - (direct[round] === undefined ? Number.NaN : of(direct[round]))))

export const gatewayLatency: Benchmark = {
  name: "gateway",
  title: "What the gateway adds to the engine",
  measure: Effect.fnUntraced(function* (lab) {
    const other = Math.min(1, availableParallelism() - 1)
    const engine = yield* startProgram({
      name: "the engine",
      file: join(import.meta.dirname, "engine/main.ts"),
      readyPath: "/health",
      environment: (port) => ({ PORT: String(port) }),
      core: other
    })
    const model = yield* makeRoute(lab, `http://${engine.host}:${engine.port}`)
    const gateway = yield* startProgram({
      name: "Seatrial's gateway",
      file: join(root, "packages/gateway/src/main.ts"),
      readyPath: "/readyz",
      environment: (port) => ({ DATABASE_URL: lab.databaseUrl, GATEWAY_HOST: "127.0.0.1", GATEWAY_PORT: String(port), GATEWAY_GRACE_SECONDS: "2" }),
      core: 0
    })
    const generate = yield* startLoadGenerator(other)
    const recorded = lab.sql<{
      readonly ended: number
    }>`SELECT count(*)::int AS ended FROM requests WHERE org_id = ${lab.orgId} AND model = ${model} AND state = 'completed'`

    let answers = 0
    const rows: Array<ReadonlyArray<string>> = []
    for (const { connections, moment, name, stream } of cases) {
      const plan = {
        requests: [httpRequest("POST", "/v1/chat/completions", lab.key, bodyOf(model, stream))] as const,
        connections,
        warmSeconds: 0.3,
        seconds: 1
      }
      const [direct = [], through = []] = yield* compare(generate, 5, [
        { program: engine, plan },
        { program: gateway, plan }
      ])
      answers += through.reduce((sum, run) => sum + run.all, 0)
      const p50 = (run: Run) => moment(run).p50
      const p99 = (run: Run) => moment(run).p99
      rows.push([
        name,
        show(figureOf(direct.map(p50)), 2),
        show(figureOf(through.map(p50)), 2),
        show(added(through, direct, p50), 2),
        show(added(through, direct, p99), 2),
        show(figureOf(through.map((run, round) => p50(run) / (direct[round]?.whole.p50 === undefined ? Number.NaN : p50(direct[round])))), 2),
        show(figureOf(through.map(({ perSecond }) => perSecond))),
        show(figureOf(through.map(({ processorMicros }) => processorMicros ?? Number.NaN)))
      ])
    }
    // A gateway that lost its records would be fast for the wrong reason.
    const ended = (yield* recorded)[0]?.ended ?? 0
    if (ended < answers) return yield* new BenchError({ message: `The gateway gave ${answers} answers and recorded ${ended}.` })

    return `\`POST /v1/chat/completions\` through the gateway and straight to the engine, by the same load generator: a stand-in for an engine that answers at once, and streams 16
frames 2 ms apart. The gateway keeps to one core, engine and load generator to another. Metering is on: each request has its row committed when it begins and its row
and receipt before its last byte (${ended.toLocaleString("en-US")} records found, none missing), on a Postgres that syncs to disk.

${table(["", "engine p50 ms", "gateway p50 ms", "added p50 ms", "added p99 ms", "ratio of p50", "gateway answers/s", "processor µs per answer"], rows)}`
  })
}
