import type { Effect, Scope } from "effect"
import type { Lab } from "./Lab.ts"

export interface Benchmark {
  /** `npm run bench -- NAME` runs this one alone. */
  readonly name: string
  readonly title: string
  /** Measures, and gives the benchmark's part of the document: tables and what one has to know to read them. */
  readonly measure: (lab: Lab) => Effect.Effect<string, unknown, Scope.Scope>
}
