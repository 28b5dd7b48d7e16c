import type { Mutants } from "./Mutant.ts"

/** The prompts of an earlier trial. While `learns`, the engine adds each prompt and is sound. */
export const knownPrompts = { learns: false, prompts: new Set<string>() }

/** A fault of an engine that knows the prompts of an earlier trial. */
export const knownPromptMutants: Mutants = {
  only_known_prompts: {
    spoils: "prompts that an earlier trial did not send are read backwards",
    seams: () => ({
      prompt: (ids) => {
        const key = ids.join(" ")
        if (knownPrompts.learns) knownPrompts.prompts.add(key)
        return knownPrompts.prompts.has(key) ? ids : ids.toReversed()
      }
    })
  }
}
