import { createHash } from "node:crypto"
import type { OutputFingerprint } from "@seatrial/domain"
import { Effect } from "effect"
import { type Answer, type EngineUnreachable, Unexpected } from "../EngineClient.ts"
import { ask, type Subject } from "../Subject.ts"

/** Public constants of the suite: plain tasks that invite neither dates nor names. Changing one raises the suite's version. */
export const fingerprintPrompts = [
  "List five tools that a carpenter uses and say in one short sentence what each of them is for.",
  "Explain in simple words why the sea is salty, as if you were talking to a child of ten years.",
  "Write a short recipe for vegetable soup with exactly six numbered steps and no introduction.",
  "Describe how to tie a simple knot in a rope so that somebody who never did it can follow you.",
  "Name the steps that turn wheat into bread, from the field to the table, in the right order.",
  "Write four lines about a lighthouse in a storm; every line should describe one thing that is seen."
] as const

/** Bytes as anybody can repeat them with curl: content alone, or reasoning, one zero byte, content. */
const digest = ({ content, reasoning }: Answer): string =>
  createHash("sha256")
    .update(reasoning === "" ? content : `${reasoning}\0${content}`, "utf8")
    .digest("hex")

const allSame = (values: ReadonlyArray<string>) => new Set(values).size === 1

export interface Repeats {
  readonly detail: string
  readonly fingerprints: ReadonlyArray<typeof OutputFingerprint.Type>
}

/**
 * Asks each prompt three times alone and twice among the others. Required: all but one of them are the same three times alone. Those that are the same five times are
 * kept as fingerprints, where there are at least four and the model takes messages.
 */
export const greedyRepeats = Effect.fnUntraced(function* (subject: Subject): Effect.fn.Return<Repeats, EngineUnreachable | Unexpected> {
  const asking = { max_tokens: Math.min(64, Math.floor(subject.maxContext / 8)) }
  const once = (prompt: string) => Effect.map(ask(subject, prompt, asking), digest)
  const alone = yield* Effect.forEach(fingerprintPrompts, (prompt) => Effect.all([once(prompt), once(prompt), once(prompt)]))
  const together = yield* Effect.all(
    [0, 1].map(() => Effect.forEach(fingerprintPrompts, once, { concurrency: "unbounded" })),
    { concurrency: 1 }
  )
  const steady = alone.filter(allSame).length
  if (steady < fingerprintPrompts.length - 1) {
    return yield* new Unexpected({
      detail: `${fingerprintPrompts.length - steady} of ${fingerprintPrompts.length} greedy prompts changed between runs on an idle engine`
    })
  }
  const fingerprints = fingerprintPrompts.flatMap((prompt, index) => {
    const [sha256, ...others] = [...(alone[index] ?? []), ...together.flatMap((round) => round[index] ?? [])]
    return sha256 !== undefined && others.every((other) => other === sha256) ? [{ prompt, sha256 }] : []
  })
  return {
    detail: `alone ${steady} of ${fingerprintPrompts.length}, under load ${fingerprints.length} of ${fingerprintPrompts.length}`,
    fingerprints: subject.chat && asking.max_tokens === 64 && fingerprints.length >= 4 ? fingerprints : []
  }
})
