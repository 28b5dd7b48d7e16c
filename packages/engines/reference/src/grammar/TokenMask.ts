import type { Vocabulary } from "../Vocabulary.ts"
import type { Steps } from "./Grammar.ts"

/** Lets only those tokens through with which a text can go on. */
export interface TokenMask {
  /** Sets every token that must not come to minus infinity. */
  readonly mask: (logits: Float32Array) => void
  /** Goes on by the token that was chosen. */
  readonly accept: (id: number) => void
}

/** `endTokens` may come where the text may end. Special tokens never come: they are no text. */
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
