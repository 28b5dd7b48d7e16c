import type { SuiteSubject } from "@seatrial/trial"
import { mutants } from "../../packages/reference-engine/test/mutants/index.ts"
import { askedWrongly } from "./askedWrongly.ts"
import { fileMutants } from "./fileMutants.ts"
import type { Files } from "./serveSample.ts"

/** One fault of the engine, of its files, or of its requested settings. */
export interface Case {
  readonly name: string
  readonly spoils: string
  readonly mutant?: string
  readonly files?: () => Files
  readonly change?: (subject: SuiteSubject) => SuiteSubject
}

export const cases: ReadonlyArray<Case> = [
  ...[...mutants].map(([name, { spoils }]) => ({ name, spoils, mutant: name })),
  ...Object.entries(fileMutants).map(([name, { files, spoils }]) => ({ name, spoils, files })),
  ...Object.entries(askedWrongly).map(([name, { spoils, subject }]) => ({ name, spoils, change: subject }))
]
