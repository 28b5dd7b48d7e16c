import { Effect } from "effect"
import type { LoadPlan, LoadResult } from "./generator/LoadPlan.ts"
import type { LoadGenerator } from "./LoadGenerator.ts"
import { type BenchError, type Program, processorMicros } from "./Program.ts"

/** The result of one run of a subject. */
export interface Run extends LoadResult {
  /** Processor time of the subject per response in microseconds. Null if the system does not report it. */
  readonly processorMicros: number | null
}

export interface Subject {
  readonly program: Program
  readonly plan: Omit<LoadPlan, "host" | "port">
}

/**
 * Measures the subjects in rotation, so that other load on the machine affects all of them equally. A first round, four times as long, warms up
 * the compiler and is not counted. Returns the runs of each subject in order.
 */
export const compare = Effect.fnUntraced(function* (
  generate: LoadGenerator,
  rounds: number,
  subjects: ReadonlyArray<Subject>
): Effect.fn.Return<ReadonlyArray<ReadonlyArray<Run>>, BenchError> {
  const run = Effect.fnUntraced(function* ({ plan, program }: Subject) {
    const before = yield* processorMicros(program.pid)
    const result = yield* generate({ ...plan, host: program.host, port: program.port })
    const after = yield* processorMicros(program.pid)
    return { ...result, processorMicros: before === null || after === null ? null : (after - before) / result.all }
  })
  for (const subject of subjects) yield* run({ ...subject, plan: { ...subject.plan, warmSeconds: 0, seconds: 4 * subject.plan.seconds } })
  const runs = subjects.map((): Array<Run> => [])
  for (let round = 0; round < rounds; round++) {
    for (const [index, subject] of subjects.entries()) runs[index]?.push(yield* run(subject))
  }
  return runs
})

/** The request as bytes of HTTP/1.1. */
export const httpRequest = (method: string, path: string, key: string, body?: string, headers: Readonly<Record<string, string>> = {}): string =>
  [
    `${method} ${path} HTTP/1.1`,
    "host: 127.0.0.1",
    `authorization: Bearer ${key}`,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    ...(body === undefined ? [] : ["content-type: application/json", `content-length: ${Buffer.byteLength(body)}`]),
    "",
    body ?? ""
  ].join("\r\n")
