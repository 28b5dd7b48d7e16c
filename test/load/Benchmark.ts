import { Console, Effect, type Scope } from "effect"
import type { Lab } from "./Lab.ts"

export interface Benchmark {
  /** `npm run bench -- NAME` runs this one alone. */
  readonly name: string
  readonly title: string
  /** Measures, and gives the benchmark's part of the document: tables and what one has to know to read them. */
  readonly measure: (lab: Lab) => Effect.Effect<string, unknown, Scope.Scope>
}

/** Said of a benchmark whose goals do not depend on the machine: its figures are written down, and the command fails. */
export const missesGoals = (what: string) =>
  Effect.andThen(
    Console.error(`${what} misses its goals.`),
    Effect.sync(() => {
      process.exitCode = 1
    })
  )
