import type { OutputFingerprint } from "@seatrial/domain"
import { Data, Effect, Result } from "effect"
import type { EngineUnreachable, Unexpected } from "../engineAnswers.ts"
import { isBroken } from "./Check.ts"
import { digest, fingerprintFields } from "./fingerprints.ts"
import { scoreLikelihood } from "./likelihood.ts"
import { put, type SuiteSubject } from "./SuiteSubject.ts"

/**
 * Number of fingerprints that the engine now answers differently. All are requested at once: they were chosen because
 * they do not change under load.
 */
export const differingFingerprints = (
  subject: SuiteSubject,
  fingerprints: ReadonlyArray<typeof OutputFingerprint.Type>
): Effect.Effect<number, EngineUnreachable | Unexpected> =>
  Effect.map(
    Effect.forEach(fingerprints, ({ prompt, sha256 }) => Effect.map(put(subject, prompt, fingerprintFields(subject)), (answer) => digest(answer) !== sha256), {
      concurrency: "unbounded"
    }),
    (differ) => differ.filter(Boolean).length
  )

/**
 * How the likelihood of texts compares with the likelihood at the verification of the revision. `detail`: the figures
 * as text, for people.
 */
export type LikelihoodComparison = Data.TaggedEnum<{
  NotCompared: object
  Same: object
  Differs: { readonly detail: string }
}>
export const LikelihoodComparison = Data.taggedEnum<LikelihoodComparison>()

/**
 * Compares the likelihood of texts with `subject.earlier`. Fails if the engine cannot be reached or answers with an
 * HTTP 5xx, so that the caller tries again.
 */
export const compareLikelihood = Effect.fnUntraced(function* (subject: SuiteSubject): Effect.fn.Return<LikelihoodComparison, EngineUnreachable | Unexpected> {
  if (subject.earlier.every(({ likelihood }) => likelihood === null)) return LikelihoodComparison.NotCompared()
  const result = yield* Effect.result(scoreLikelihood(subject))
  if (Result.isSuccess(result)) return result.success.isCompared ? LikelihoodComparison.Same() : LikelihoodComparison.NotCompared()
  const { failure } = result
  if (failure._tag === "NotApplicable") return LikelihoodComparison.NotCompared()
  return failure._tag === "EngineUnreachable" || isBroken(failure) ? yield* failure : LikelihoodComparison.Differs({ detail: failure.detail })
})
