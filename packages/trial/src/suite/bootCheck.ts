import type { OutputFingerprint } from "@seatrial/domain"
import { Effect, Result } from "effect"
import type { EngineUnreachable, Unexpected } from "../EngineClient.ts"
import { isBroken } from "./Check.ts"
import { digest, fingerprintFields } from "./fingerprints.ts"
import { textLikelihood } from "./likelihood.ts"
import { put, type SuiteSubject } from "./SuiteSubject.ts"

/** How many of the fingerprints an engine answers otherwise now. They were chosen for being the same under load, so all are asked at once. */
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

/** Whether texts are as likely as when the revision was verified (`subject.earlier`): null where that cannot be told. Else what differs, in numbers, or "". */
export const likelihoodDiffers = Effect.fnUntraced(function* (subject: SuiteSubject) {
  if (subject.earlier.every(({ likelihood }) => likelihood === null)) return null
  const result = yield* Effect.result(textLikelihood(() => undefined).run(subject))
  if (Result.isSuccess(result)) return result.success.includes("from an earlier trial") ? "" : null
  const { failure } = result
  if (failure._tag === "NotApplicable") return null
  // Whoever could not be asked is asked again.
  return failure._tag === "EngineUnreachable" || isBroken(failure) ? yield* failure : failure.detail
})
