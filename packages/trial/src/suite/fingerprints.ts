import { createHash } from "node:crypto"
import type { OutputFingerprint } from "@seatrial/domain"
import { Effect } from "effect"
import { type EngineUnreachable, Unexpected } from "../engineAnswers.ts"
import type { Reading } from "./readAnswer.ts"
import { put, type SuiteSubject } from "./SuiteSubject.ts"
import { saltOf } from "./saltOf.ts"
import { extentOf, thresholds } from "./thresholds.ts"

/**
 * Constants of the suite: plain tasks that invite neither dates nor names. A change of one raises the suite version.
 */
export const fingerprintPrompts = [
  "List five tools that a carpenter uses and say in one short sentence what each of them is for.",
  "Explain in simple words why the sea is salty, as if you were talking to a child of ten years.",
  "Write a short recipe for vegetable soup with exactly six numbered steps and no introduction.",
  "Describe how to tie a simple knot in a rope so that somebody who never did it can follow you.",
  "Name the steps that turn wheat into bread, from the field to the table, in the right order.",
  "Write four lines about a lighthouse in a storm; every line should describe one thing that is seen.",
  "Explain the difference between weather and climate in two sentences that a child can understand.",
  "Give three reasons why a wooden boat floats on water although it weighs more than a man can carry.",
  "Describe how a letter travels from the sender's desk to the reader's door, one step in each sentence.",
  "Compare a bicycle with a car in three short points: cost, speed, and how much room each one needs.",
  "Write instructions for planting a tree in a garden, beginning with the hole and ending with the water.",
  "Explain how a simple water pump works, using no more than four sentences and no technical words at all.",
  "List the things that one needs for a picnic at a lake and say why each of them should not be forgotten.",
  "Describe the sound of a small harbour in the early morning, before the first boats leave for the sea.",
  "Explain to a new colleague how to make good coffee for ten people with a pot, a filter and hot water.",
  "Write a notice of three sentences that asks people in a library to be quiet and to switch off phones."
] as const

/** The hashed bytes, reproducible with curl: content alone, or reasoning, one zero byte and content. */
export const digest = ({ content, reasoning }: Pick<Reading, "content" | "reasoning">): string =>
  createHash("sha256")
    .update(reasoning === "" ? content : `${reasoning}\0${content}`, "utf8")
    .digest("hex")

const allSame = (values: ReadonlyArray<string>) => new Set(values).size === 1

export interface Repeats {
  readonly detail: string
  readonly fingerprints: ReadonlyArray<typeof OutputFingerprint.Type>
  /** Number of fingerprints that differ from an earlier trial. */
  readonly drifted: number
}

/** Fields of a fingerprint request in addition to its prompt and the greedy settings. */
export const fingerprintFields = ({ maxContext }: SuiteSubject) => ({ max_tokens: Math.min(thresholds.fingerprintTokens, Math.floor(maxContext / 8)) })

/** Number of prompts over both runs of the check, and how many of them never changed alone. */
export interface RepeatedSum {
  steady: number
  all: number
}

/**
 * Sends each prompt three times alone and twice concurrently with the others. Required: nearly all answers are the same
 * three times alone; the second run judges the share over both runs. The first prompts with five equal answers become
 * fingerprints if there are enough of them and the model takes messages. Differences from the fingerprints of an
 * earlier trial are reported.
 */
export const greedyRepeats = Effect.fnUntraced(function* (
  subject: SuiteSubject,
  sum: RepeatedSum = { steady: 0, all: 0 }
): Effect.fn.Return<Repeats, EngineUnreachable | Unexpected> {
  const fields = fingerprintFields(subject)
  const prompts = fingerprintPrompts.slice(0, extentOf(subject.parameters).repeatedPrompts)
  const once = (prompt: string) => Effect.map(put(subject, prompt, fields), digest)
  // Each request avoids the prefix cache: cached values may be rounded differently, which another check covers.
  const digestOf = (prompt: string, turn: number) => Effect.map(put({ ...subject, salt: saltOf(subject.salt, turn) }, prompt, fields), digest)
  const alone = yield* Effect.forEach(prompts, (prompt) => Effect.all([digestOf(prompt, 1), digestOf(prompt, 2), digestOf(prompt, 3)]))
  const together = yield* Effect.all(
    [0, 1].map(() => Effect.forEach(prompts, once, { concurrency: "unbounded" })),
    { concurrency: 1 }
  )
  const steady = alone.filter(allSame).length
  sum.steady += steady
  sum.all += prompts.length
  if (sum.steady < sum.all - Math.floor(sum.all / thresholds.steadyOf)) {
    return yield* new Unexpected({ detail: `${sum.all - sum.steady} of ${sum.all} greedy prompts changed between runs on an idle engine`, open: true })
  }
  const stable = prompts.flatMap((prompt, index) => {
    const [sha256, ...further] = [...(alone[index] ?? []), ...together.flatMap((round) => round[index] ?? [])]
    return sha256 !== undefined && further.every((other) => other === sha256) ? [{ prompt, sha256 }] : []
  })
  const keeps = subject.chat && fields.max_tokens === thresholds.fingerprintTokens && stable.length >= thresholds.leastFingerprints
  const fingerprints = keeps ? stable.slice(0, thresholds.fingerprints) : []
  const before = new Map(subject.earlier.find(({ fingerprints }) => fingerprints.length > 0)?.fingerprints.map(({ prompt, sha256 }) => [prompt, sha256]))
  const known = fingerprints.filter(({ prompt }) => before.has(prompt))
  const drifted = known.filter(({ prompt, sha256 }) => before.get(prompt) !== sha256).length
  const compared =
    known.length === 0 ? "" : drifted === 0 ? `; ${known.length} as at an earlier trial` : `; ${drifted} of ${known.length} differ from an earlier trial`
  return { detail: `alone ${sum.steady} of ${sum.all}, stable under load ${stable.length} of ${prompts.length}${compared}`, fingerprints, drifted }
})
