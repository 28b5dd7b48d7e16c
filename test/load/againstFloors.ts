import { join } from "node:path"
import { isDeepStrictEqual } from "node:util"
import { Effect, type Scope } from "effect"
import { compare, httpRequest, type Run } from "./compare.ts"
import { figureOf, show, table } from "./figures.ts"
import type { statements } from "./floor/statements.ts"
import type { Lab } from "./Lab.ts"
import { startLoadGenerator } from "./LoadGenerator.ts"
import { BenchError, type Program, profiling, startProgram } from "./Program.ts"

const root = join(import.meta.dirname, "../..")
const plenty = "1000000000"

export const startServer = (
  lab: Lab,
  further: Readonly<Record<string, string>> = {},
  { file = join(root, "packages/server/src/main.ts"), name = "Seatrial's server" }: { readonly file?: string; readonly name?: string } = {}
) =>
  startProgram({
    name,
    file,
    readyPath: "/readyz",
    environment: (port) => ({
      DATABASE_URL: lab.databaseUrl,
      SERVER_PORT: String(port),
      // As in the chart.
      NODE_OPTIONS: `--max-semi-space-size=8 --max-old-space-size=256 ${profiling}`,
      SEATRIAL_CURSOR_KEY: "a cursor key of the benchmark",
      SEATRIAL_ENCRYPTION_KEY: Buffer.alloc(32, 1).toString("base64"),
      // The limits are checked as usual, but never reached.
      SERVER_READS_PER_KEY: plenty,
      SERVER_READS_PER_KEY_BURST: plenty,
      SERVER_READS_PER_ORG: plenty,
      SERVER_READS_PER_ORG_BURST: plenty,
      SERVER_WRITES_PER_ORG: plenty,
      ...further
    })
  })

export const startFloor = (lab: Lab, statement: keyof typeof statements, prepared: boolean) =>
  startProgram({
    name: prepared ? "`node:http` + `pg`, named statement" : "`node:http` + `pg`",
    file: join(import.meta.dirname, "floor/main.ts"),
    readyPath: "/healthz",
    environment: (port) => ({
      DATABASE_URL: lab.databaseUrl,
      PORT: String(port),
      ORG_ID: lab.orgId,
      USER_ID: lab.userId,
      STATEMENT: statement,
      PREPARED: String(prepared)
    })
  })

const fetchJson = ({ host, name, port }: Program, path: string, key: string) =>
  Effect.tryPromise({
    try: async (): Promise<unknown> => {
      const answer = await fetch(`http://${host}:${port}${path}`, { headers: { authorization: `Bearer ${key}` } })
      const text = await answer.text()
      if (answer.status !== 200) throw new Error(`${answer.status} ${text.slice(0, 500)}`)
      return JSON.parse(text)
    },
    catch: (cause) => new BenchError({ message: `${name} does not answer ${path}: ${cause}` })
  })

export const startPeer = (lab: Lab) =>
  startProgram({
    name: "Fastify",
    file: join(import.meta.dirname, "peer/main.ts"),
    readyPath: "/healthz",
    environment: (port) => ({ DATABASE_URL: lab.databaseUrl, PORT: String(port) })
  })

export interface FloorComparison {
  readonly statement: keyof typeof statements
  /** Whether to measure the Fastify server as well. */
  readonly peer?: boolean
  /** Requests in rotation. */
  readonly paths: readonly [string, ...ReadonlyArray<string>]
  /** A request to which all must give the same answer, and the part of it to compare. */
  readonly same: { readonly path: string; readonly of: (answer: unknown) => unknown }
  readonly connections: number
  readonly rounds: number
  readonly seconds: number
}

const ordinals = ["first", "second", "third"]

const ratios = (runs: ReadonlyArray<Run>, floor: ReadonlyArray<Run>) =>
  figureOf(runs.map((run, round) => run.perSecond / (floor[round]?.perSecond ?? Number.NaN)))

const row = (name: string, runs: ReadonlyArray<Run>, floors: ReadonlyArray<ReadonlyArray<Run>>) => [
  name,
  show(figureOf(runs.map(({ perSecond }) => perSecond))),
  ...floors.map((floor) => (floor === runs ? "1" : show(ratios(runs, floor), 2))),
  show(figureOf(runs.map(({ whole }) => whole.p50)), 2),
  show(figureOf(runs.map(({ whole }) => whole.p99)), 2),
  show(figureOf(runs.map(({ processorMicros }) => processorMicros ?? Number.NaN)))
]

/** The results of the programs. The last one is compared with the others. */
export const comparisonTable = (programs: ReadonlyArray<Program>, runs: ReadonlyArray<ReadonlyArray<Run>>): string => {
  const compared = runs.slice(0, -1)
  return table(
    ["", "answers/s", ...compared.map((_, index) => `ratio to the ${ordinals[index]}`), "p50 ms", "p99 ms", "processor µs per answer"],
    programs.map(({ name }, index) => row(name, runs[index] ?? [], compared))
  )
}

/** Compares Seatrial's server with minimal servers on the same database, each in a separate process. Returns a table. */
export const againstFloors = Effect.fnUntraced(function* (lab: Lab, options: FloorComparison): Effect.fn.Return<string, BenchError, Scope.Scope> {
  const plain = yield* startFloor(lab, options.statement, false)
  const preparedFloor = yield* startFloor(lab, options.statement, true)
  const peers = options.peer === true ? [yield* startPeer(lab)] : []
  const server = yield* startServer(lab)

  const expected = options.same.of(yield* fetchJson(plain, options.same.path, lab.key))
  for (const program of [...peers, server]) {
    const actual = options.same.of(yield* fetchJson(program, options.same.path, lab.key))
    if (expected === undefined || !isDeepStrictEqual(actual, expected))
      return yield* new BenchError({ message: `${program.name} and ${plain.name} differ in ${options.same.path}.` })
  }

  const [first, ...others] = options.paths
  const plan = {
    requests: [httpRequest("GET", first, lab.key), ...others.map((path) => httpRequest("GET", path, lab.key))] as const,
    connections: options.connections,
    warmSeconds: 0.3,
    seconds: options.seconds
  }
  const generate = yield* startLoadGenerator()
  const programs = [plain, preparedFloor, ...peers, server]
  const runs = yield* compare(
    generate,
    options.rounds,
    programs.map((program) => ({ program, plan }))
  )
  return comparisonTable(programs, runs)
})
