import { type Engine, generate } from "./Generation.ts"

/** Generates one token and then calls `done`, even if it fails. */
export const warmUp = (engine: Engine, done: () => void) => {
  generate(
    engine,
    { temperature: 0, seed: 0 },
    { adapted: false, prompt: [0], grammar: null, thought: null, topLogprobs: null, defaultMaxTokens: null, requestedMaxTokens: 1 },
    () => {},
    () => done()
  )
}
