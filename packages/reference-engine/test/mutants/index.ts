import type { Fault } from "../../src/Seams.ts"
import { adapterMutants } from "./adapter.ts"
import { bodyMutants } from "./body.ts"
import { cacheMutants } from "./cache.ts"
import { characterMutants } from "./characters.ts"
import { drawingMutants } from "./drawing.ts"
import { forwardMutants } from "./forward.ts"
import { knownPromptMutants } from "./knownPrompts.ts"
import { lifeMutants } from "./life.ts"
import { loadedMutants } from "./loaded.ts"
import type { Mutant } from "./Mutant.ts"
import { pathMutants } from "./paths.ts"
import { pathWordMutants } from "./pathWords.ts"
import { promptMutants } from "./prompt.ts"
import { samplingMutants } from "./sampling.ts"
import { streamMutants } from "./stream.ts"
import { structureMutants } from "./structure.ts"
import { thoughtMutants } from "./thoughts.ts"

/** Every fault that can be injected, by name. */
export const mutants: ReadonlyMap<string, Mutant> = new Map(
  Object.entries({
    ...forwardMutants,
    ...loadedMutants,
    ...cacheMutants,
    ...samplingMutants,
    ...drawingMutants,
    ...promptMutants,
    ...bodyMutants,
    ...streamMutants,
    ...characterMutants,
    ...structureMutants,
    ...thoughtMutants,
    ...pathMutants,
    ...pathWordMutants,
    ...knownPromptMutants,
    ...lifeMutants,
    ...adapterMutants
  })
)

/** The fault of that name for one engine. Throws if there is none. */
export const faultNamed = (name: string): Fault => {
  const mutant = mutants.get(name)
  if (mutant === undefined) throw new Error(`no mutant ${name}`)
  return { name, seams: mutant.seams() }
}
