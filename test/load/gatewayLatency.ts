import { availableParallelism } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"
import type { Benchmark } from "./Benchmark.ts"
import { compare, httpRequest, type Run } from "./compare.ts"
import { type Figure, figureOf, show, table } from "./figures.ts"
import type { Lab } from "./Lab.ts"
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

/** Milliseconds that a commit of one row takes here, one after another: what no durable record can do without. */
const commitMillis = Effect.fnUntraced(function* ({ sql }: Lab) {
  yield* sql`CREATE TABLE bench_commits (n integer)`
  const times: Array<number> = []
  for (let n = 0; n < 100; n++) {
    const from = performance.now()
    yield* sql`INSERT INTO bench_commits VALUES (${n})`
    times.push(performance.now() - from)
  }
  return figureOf(times)
})

/** The same database, where a commit does not wait until the disk has it. */
const unsynced = (databaseUrl: string) => `${databaseUrl}${databaseUrl.includes("?") ? "&" : "?"}options=${encodeURIComponent("-c synchronous_commit=off")}`

const startGateway = (name: string, databaseUrl: string) =>
  startProgram({
    name,
    file: join(root, "packages/gateway/src/main.ts"),
    readyPath: "/readyz",
    environment: (port) => ({ DATABASE_URL: databaseUrl, GATEWAY_HOST: "127.0.0.1", GATEWAY_PORT: String(port), GATEWAY_GRACE_SECONDS: "2" }),
    core: 0
  })

const rowOf = (name: string, moment: Case["moment"], through: ReadonlyArray<Run>, direct: ReadonlyArray<Run>) => {
  const p50 = (run: Run) => moment(run).p50
  const p99 = (run: Run) => moment(run).p99
  return [
    name,
    show(figureOf(direct.map(p50)), 2),
    show(figureOf(through.map(p50)), 2),
    show(added(through, direct, p50), 2),
    show(added(through, direct, p99), 2),
    show(figureOf(through.map((run, round) => p50(run) / (direct[round] === undefined ? Number.NaN : p50(direct[round])))), 1),
    show(figureOf(through.map(({ perSecond }) => perSecond))),
    show(figureOf(through.map(({ processorMicros }) => processorMicros ?? Number.NaN)))
  ]
}

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
    const commit = yield* commitMillis(lab)
    const model = yield* makeRoute(lab, `http://${engine.host}:${engine.port}`)
    const durable = yield* startGateway("Seatrial's gateway", lab.databaseUrl)
    const quick = yield* startGateway("Seatrial's gateway on commits that do not wait for the disk", unsynced(lab.databaseUrl))
    const generate = yield* startLoadGenerator(other)

    const planOf = (stream: boolean, connections: number, warmSeconds: number, seconds: number) => ({
      requests: [httpRequest("POST", "/v1/chat/completions", lab.key, bodyOf(model, stream))] as const,
      connections,
      warmSeconds,
      seconds
    })
    let answers = 0
    for (const { host, port } of [durable, quick, durable, quick]) {
      for (const stream of [false, true]) answers += (yield* generate({ ...planOf(stream, 16, 0, 1), host, port })).all
    }
    const rows: Array<ReadonlyArray<string>> = []
    for (const { connections, moment, name, stream } of cases) {
      const plan = planOf(stream, connections, 0.2, 0.8)
      const subjects = [engine, durable, quick].map((program) => ({ program, plan }))
      const [direct = [], synced = [], relaxed = []] = yield* compare(generate, 5, subjects)
      answers += [...synced, ...relaxed].reduce((sum, run) => sum + run.all, 0)
      rows.push(rowOf(name, moment, synced, direct), rowOf(`${name}, no wait for the disk`, moment, relaxed, direct))
    }
    // A gateway that lost its records would be fast for the wrong reason.
    const recorded = yield* lab.sql<{ readonly ended: number }>`
      SELECT count(*)::int AS ended FROM requests JOIN receipts ON receipts.org_id = requests.org_id AND receipts.created_at = requests.created_at AND request_id = id
      WHERE requests.org_id = ${lab.orgId} AND requests.model = ${model} AND state = 'completed'`
    const ended = recorded[0]?.ended ?? 0
    if (ended < answers) return yield* new BenchError({ message: `The gateway gave ${answers} answers and recorded ${ended}.` })

    return `\`POST /v1/chat/completions\` through the gateway and straight to the engine, by the same load generator: a stand-in for an engine that answers at once, and streams 16
frames 2 ms apart. The gateway keeps to one core, engine and load generator to another. Metering is on: each request has its row committed before anything of the answer
goes out, and its end and receipt before the last byte; of ${ended.toLocaleString("en-US")} requests not one record is missing. One commit of one row takes
${show(commit, 2)} ms on this disk, and a request waits for one before its first frame and for two in all; in every second line Postgres
confirms a commit before the disk has it (\`synchronous_commit=off\`), which leaves what the gateway itself adds.

${table(["", "engine p50 ms", "gateway p50 ms", "added p50 ms", "added p99 ms", "ratio of p50", "gateway answers/s", "processor µs per answer"], rows)}`
  })
}
