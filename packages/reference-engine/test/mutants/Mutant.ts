import type { Seams } from "../../src/Seams.ts"

/** One fault that a test injects into the engine. */
export interface Mutant {
  readonly spoils: string
  /** Called for each engine. */
  readonly seams: () => Seams
}

export type Mutants = Readonly<Record<string, Mutant>>
