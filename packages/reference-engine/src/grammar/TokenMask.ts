import type { ThoughtFollower, ThoughtMarks } from "../ThoughtReader.ts"
import type { Vocabulary } from "../Vocabulary.ts"
import type { Steps } from "./Grammar.ts"

/** Allows only tokens that continue a valid text. */
export interface TokenMask {
  /** Sets the logits of invalid tokens to minus infinity. */
  readonly mask: (logits: Float32Array) => void
  /** Advances by the chosen token. */
  readonly accept: (id: number) => void
}

/** `endTokens` are valid if the text may end. Special tokens are never valid, because they have no text. */
export const makeTokenMask = (from: Steps, vocabulary: Vocabulary, endTokens: ReadonlySet<number>): TokenMask => {
  let state: Steps | null = from
  const after = (id: number): Steps | null => {
    let reached = state
    for (const byte of vocabulary.bytesOf(id)) {
      if (reached === null) return null
      reached = reached.next(byte)
    }
    return reached
  }
  return {
    mask: (logits) => {
      for (let id = 0; id < logits.length; id++) {
        const allowed = endTokens.has(id) ? state?.mayEnd === true : !vocabulary.isSpecial(id) && vocabulary.bytesOf(id).length > 0 && after(id) !== null
        if (!allowed) logits[id] = Number.NEGATIVE_INFINITY
      }
    },
    accept: (id) => {
      if (!endTokens.has(id)) state = after(id)
    }
  }
}

/** Applies the mask only after the reasoning. */
export const afterThought = ({ accept, mask }: TokenMask, thought: ThoughtFollower, { open }: ThoughtMarks): TokenMask => ({
  mask: (logits) => {
    if (thought.thinks) return
    const opening = logits[open]
    mask(logits)
    if (thought.mayOpen && opening !== undefined) logits[open] = opening
  },
  accept: (id) => {
    const before = thought.thinks
    thought.take(id)
    if (!before && !thought.thinks) accept(id)
  }
})
