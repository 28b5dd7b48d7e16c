import { Console, Effect, type Scope } from "effect"
import type { Labs } from "./Lab.ts"

export interface Benchmark {
  /** `npm run bench -- NAME` runs only this benchmark. */
  readonly name: string
  readonly title: string
  /** Measures, and returns the section of the document: tables and explanations. */
  readonly measure: (labs: Labs) => Effect.Effect<string, unknown, Scope.Scope>
}

/** The failure of a benchmark whose goals do not depend on the machine. Its figures are still written, and the command fails. */
export const missesGoals = (what: string) =>
  Effect.andThen(
    Console.error(`${what} misses its goals.`),
    Effect.sync(() => {
      process.exitCode = 1
    })
  )
