import type { Seams } from "../Seams.ts"

/** One fault that a test puts into the engine: what it spoils, and how. */
export interface Mutant {
  readonly spoils: string
  /** Made anew for each engine. */
  readonly seams: () => Seams
}

export type Mutants = Readonly<Record<string, Mutant>>
