import { availableParallelism } from "node:os"
import { join } from "node:path"
import { Config, Effect, Fiber } from "effect"
import type { Benchmark } from "./Benchmark.ts"
import { compare, httpRequest, type Run } from "./compare.ts"
import { figureOf, show, table } from "./figures.ts"
import type { Lab } from "./Lab.ts"
import { type LoadGenerator, startLoadGenerator } from "./LoadGenerator.ts"
import { makeRoute } from "./makeDeployments.ts"
import { BenchError, type Program, residentMegabytes, startProgram } from "./Program.ts"
import { type Peer, startLiteLlm, startPortkey } from "./peers.ts"
import { startGateway } from "./startGateway.ts"

/** The requests of callers to one of the compared programs. */
interface Subject {
  readonly name: string
  readonly program: Program
  readonly request: (options: { readonly stream: boolean; readonly frames: number; readonly pause: number }) => string
}

const subjectOf = (name: string, program: Program, key: string, model: string, headers: Readonly<Record<string, string>> = {}): Subject => ({
  name,
  program,
  request: ({ frames, pause, stream }) =>
    httpRequest(
      "POST",
      "/v1/chat/completions",
      key,
      JSON.stringify({
        model,
        messages: [
          { role: "system", content: "You are the ship's clerk. Answer in one sentence." },
          { role: "user", content: "What does the crew do before the trial begins? ".repeat(16) }
        ],
        max_tokens: frames,
        stream,
        ...(pause === 0 ? {} : { seed: pause })
      }),
      headers
    )
})

const subjectOfPeer = (name: string, { headers, key, model, program }: Peer) => subjectOf(name, program, key, model, headers)

/** Milliseconds of sequential commits of one row on this machine: a lower bound for durable records. */
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

const rounds = 5

type Measured = ReadonlyArray<readonly [Subject, ReadonlyArray<Run>]>

/** The runs of each subject, in rotation. */
const measure = Effect.fnUntraced(function* (generate: LoadGenerator, subjects: ReadonlyArray<Subject>, connections: number, pause: number) {
  const plan = { connections, warmSeconds: 0.2, seconds: 0.8 }
  const runs = yield* compare(
    generate,
    rounds,
    subjects.map(({ program, request }) => ({ program, plan: { ...plan, requests: [request({ stream: false, frames: 64, pause })] as const } }))
  )
  return subjects.map((subject, index) => [subject, runs[index] ?? []] as const)
})

const over = (runs: ReadonlyArray<Run>, base: ReadonlyArray<Run>, of: (run: Run, base: Run) => number) =>
  figureOf(
    runs.flatMap((run, round) => {
      const other = base[round]
      return other === undefined ? [] : [of(run, other)]
    })
  )

const p50Of = ({ whole }: Run) => whole.p50
const p99Of = ({ whole }: Run) => whole.p99

/** A row per subject. The first one is the engine. Rates are compared with those of `ours`. */
const rowsOf = (what: string, measured: Measured, ours: Subject): ReadonlyArray<ReadonlyArray<string>> => {
  const direct = measured[0]?.[1] ?? []
  const mine = measured.find(([subject]) => subject === ours)?.[1] ?? []
  return measured.map(([subject, runs], index) => [
    what,
    subject.name,
    show(figureOf(runs.map(p50Of)), 2),
    index === 0
      ? ""
      : show(
          over(runs, direct, (run, base) => p50Of(run) - p50Of(base)),
          2
        ),
    index === 0
      ? ""
      : show(
          over(runs, direct, (run, base) => p99Of(run) - p99Of(base)),
          2
        ),
    show(figureOf(runs.map(({ perSecond }) => perSecond))),
    index === 0 ? "" : show(figureOf(runs.map(({ processorMicros }) => processorMicros ?? Number.NaN))),
    index === 0 || subject === ours
      ? ""
      : show(
          over(mine, runs, (run, other) => run.perSecond / other.perSecond),
          1
        )
  ])
}

const streams = 256
const tokenPause = 20

/** The added delay of tokens. Each run is long enough for each stream to end and restart. */
const measureTokens = Effect.fnUntraced(function* (generate: LoadGenerator, subjects: ReadonlyArray<Subject>) {
  const plan = { connections: streams, stamped: true, warmSeconds: 1, seconds: 3 }
  const runs = yield* compare(
    generate,
    3,
    subjects.map(({ program, request }) => ({ program, plan: { ...plan, requests: [request({ stream: true, frames: 100, pause: tokenPause })] as const } }))
  )
  const direct = runs[0] ?? []
  const p50 = ({ frames }: Run) => frames?.p50 ?? Number.NaN
  const p99 = ({ frames }: Run) => frames?.p99 ?? Number.NaN
  return subjects.map(({ name }, index) => {
    const mine = runs[index] ?? []
    return [
      name,
      show(figureOf(mine.map(p50)), 2),
      show(figureOf(mine.map(p99)), 2),
      index === 0
        ? ""
        : show(
            over(mine, direct, (run, base) => p50(run) - p50(base)),
            2
          ),
      index === 0
        ? ""
        : show(
            over(mine, direct, (run, base) => p99(run) - p99(base)),
            2
          ),
      index === 0 ? "" : show(figureOf(mine.map(({ processorMicros }) => (processorMicros ?? Number.NaN) / 100)), 1)
    ]
  })
})

const openStreams = 2_000

/** Maximum resident memory of a gateway in MB, before and while this many streams are open. */
const measureMemory = Effect.fnUntraced(function* (generate: LoadGenerator, { program, request }: Subject) {
  const before = yield* residentMegabytes(program.pid)
  const load = yield* Effect.forkScoped(
    generate({
      host: program.host,
      port: program.port,
      requests: [request({ stream: true, frames: 24, pause: 500 })],
      connections: openStreams,
      warmSeconds: 0,
      seconds: 8
    })
  )
  let most = 0
  while (load.pollUnsafe() === undefined) {
    most = Math.max(most, (yield* residentMegabytes(program.pid)) ?? Number.NaN)
    yield* Effect.sleep("100 millis")
  }
  const { all } = yield* Fiber.join(load)
  if (all < openStreams) return yield* new BenchError({ message: `Only ${all} of ${openStreams} streams came to their end.` })
  return [(before ?? Number.NaN).toFixed(0), most.toFixed(0)] as const
})

const peers = [
  ["Portkey's gateway", startPortkey],
  ["LiteLLM's proxy", startLiteLlm]
] as const

export const gatewayLatency: Benchmark = {
  name: "gateway",
  title: "What the gateway adds to the engine",
  measure: Effect.fnUntraced(function* ({ own }) {
    const lab = yield* own
    const other = Math.min(1, availableParallelism() - 1)
    const engine = yield* startProgram({
      name: "the engine",
      file: join(import.meta.dirname, "engine/main.ts"),
      readyPath: "/health",
      environment: (port) => ({ PORT: String(port) }),
      core: other
    })
    const passThrough = yield* startProgram({
      name: "the bare pass-through",
      file: join(import.meta.dirname, "passThrough/main.ts"),
      readyPath: "/health",
      environment: (port) => ({ PORT: String(port), ENGINE: `http://${engine.host}:${engine.port}` }),
      core: 0
    })
    const commit = yield* commitMillis(lab)
    const model = yield* makeRoute(lab, { number: 1, urls: [`http://${engine.host}:${engine.port}`] })
    const gateway = yield* startGateway(lab, { name: "Seatrial's gateway", file: "packages/gateway/src/main.ts" })
    const unmetered = yield* startGateway(lab, { name: "Seatrial's gateway without records", file: "test/load/unmetered/main.ts" })
    const generate = yield* startLoadGenerator(other)

    const direct = subjectOf("the engine itself", engine, lab.key, model)
    const ours = subjectOf("Seatrial's gateway", gateway, lab.key, model)
    const bare = subjectOf("a bare `node:http` pass-through", passThrough, lab.key, model)
    const recordless = subjectOf("Seatrial's gateway without records", unmetered, lab.key, model)
    const withPeers = yield* Config.Boolean("BENCH_PEERS").pipe(Config.withDefault(true))
    const rivals = yield* Effect.forEach(withPeers ? peers : [], ([name, start]) =>
      Effect.map(start(engine, 0), (peer) => subjectOfPeer(`${name}, ${peer.program.name.split(" ").at(-1)}`, peer))
    )
    const all = [direct, bare, recordless, ours, ...rivals]

    // Compilation by V8 makes the first figures worse.
    for (const { program, request } of [recordless, ours]) {
      for (const stream of [false, true]) {
        const requests = [request({ stream, frames: 16, pause: 0 })] as const
        yield* generate({ requests, connections: 16, warmSeconds: 0, seconds: 4, host: program.host, port: program.port })
      }
    }
    const rows: Array<ReadonlyArray<string>> = []
    for (const connections of [1, 16, 64]) {
      const measured = yield* measure(generate, all, connections, 0)
      rows.push(...rowsOf(`${connections}`, measured, ours))
    }
    const paced = yield* measure(generate, [direct, bare, recordless, ours], 16, 20)
    rows.push(...rowsOf("16, of an engine that takes 20 ms", paced, ours))
    const tokens = yield* measureTokens(generate, [direct, bare, ours])
    const [before, most] = yield* measureMemory(generate, ours)

    // Check that the gateway has written all records, because losing them would make it faster.
    const counted = yield* lab.sql<{ readonly recorded: number; readonly complete: number }>`
      SELECT count(*)::int AS recorded, count(*) FILTER (WHERE q.state = 'completed' AND q.status_code = 200 AND r.request_id IS NOT NULL)::int AS complete
      FROM requests q LEFT JOIN receipts r ON r.org_id = q.org_id AND r.created_at = q.created_at AND r.request_id = q.id
      WHERE q.org_id = ${lab.orgId} AND q.model = ${model}`
    const { complete = 0, recorded = 0 } = counted[0] ?? {}
    if (recorded === 0 || recorded !== complete) return yield* new BenchError({ message: `Of ${recorded} records ${complete} are complete.` })

    return `\`POST /v1/chat/completions\` through the gateway and straight to the engine, by the same load generator. The engine is a stand-in that computes nothing. Each gateway uses
one core, engine and load generator another, and Postgres what is left. Metering is on: each request has its row committed before anything of the answer goes out,
and its end and receipt before the last byte; of ${recorded.toLocaleString("en-US")} requests each has a complete record and a receipt. One commit of one row takes ${show(commit, 2)} ms on this disk. The same
gateway without records shows what they cost, and the bare pass-through what \`node:http\` does. The other gateways are used as published: Portkey's checks no key
of its own, LiteLLM's has a master key, and neither keeps records. The last column says how many times as many answers a second Seatrial's gateway gives. The engine
answers at once unless a row says otherwise, so clients keep each gateway's core busy: a latency is then mostly the number of clients
times the processor time.

${table(["clients", "", "p50 ms", "added p50 ms", "added p99 ms", "answers/s", "processor µs per answer", "ours is × this"], rows)}

${streams} streams of a token each ${tokenPause} ms, ${(streams * 1_000) / tokenPause} tokens a second: from when the engine sent a token to when the client had it.

${table(["", "p50 ms", "p99 ms", "p50 later, ms", "p99 later, ms", "processor µs per token"], tokens)}

With ${openStreams.toLocaleString("en-US")} streams open at once the gateway's process has ${most} MB resident at most (${before} MB before, after all the load above).
V8's memory is limited as in the chart.`
  })
}
