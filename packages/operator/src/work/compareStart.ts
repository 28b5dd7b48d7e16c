import { revisionCapabilities, weightCommits } from "@seatrial/domain"
import { Runs } from "@seatrial/store"
import { compareLikelihood, differingFingerprints, LikelihoodComparison, readsTokenizer, type SuiteSubject, suite, unreadRepository } from "@seatrial/trial"
import { Clock, Effect } from "effect"
import { type BootVerdicts, keepVerdict } from "../gather/BootVerdicts.ts"
import { type EngineUnderTrial, subjectOf, unavailable } from "./EngineUnderTrial.ts"
import { withSuiteSubject } from "./suiteSubject.ts"
import { WorkUnavailable } from "./WorkResult.ts"

/** Time limits of the fingerprints and of the likelihoods. Callers wait for the model. */
const [fingerprintsLimit, likelihoodLimit] = ["60 seconds", "40 seconds"] as const

const within = (limit: typeof fingerprintsLimit | typeof likelihoodLimit) =>
  Effect.timeoutOrElse({ duration: limit, orElse: () => Effect.fail(new WorkUnavailable({ message: `The engine did not answer within ${limit}.` })) })

/** The subject for fingerprints. It needs nothing from the hub, which may be unreachable when a model wakes. */
const bareSubject = Effect.fnUntraced(function* (trial: EngineUnderTrial) {
  const { engine, pod, podClass, revision, run } = trial
  const { facts, settings } = revision
  const [{ commit, files }] = weightCommits(facts)
  const subject: SuiteSubject = {
    ...(yield* subjectOf(trial, "30 seconds")),
    salt: `start-${pod.uid}-${pod.restarts}`,
    parameters: facts.parameters,
    slots: 1,
    offers: engine.offers(settings, podClass.hostClass.simulated),
    metrics: engine.wire.trialMetrics,
    batchInvariant: false,
    capabilities: revisionCapabilities(engine, facts, settings),
    repository: unreadRepository({ facts, files, commit }),
    start: { verifiedFiles: null, readOnly: false, offline: false, localPath: false, ownImage: null },
    earlier: [],
    cacheTokens: () => null
  }
  yield* Effect.annotateCurrentSpan("seatrial.deployment", run.id)
  return subject
})

const describeTexts = LikelihoodComparison.$match({
  NotCompared: () => "",
  Same: () => ", the likelihood of texts does not",
  Differs: ({ detail }) => `, and texts are ${detail}`
})

/**
 * Compares a restarted engine with its verified revision. Fingerprints come first. The likelihood of texts follows if
 * fingerprints differ or are missing, or if the container restarted in its pod, where no init container checked the
 * weights. The likelihood needs the repository if its tokenizer is supported. If that is unavailable at the last
 * attempt (`last`), the fingerprints alone decide: different answers must not pass as not compared.
 */
export const compareStart = Effect.fn("compareStart")(
  function* (trial: EngineUnderTrial, verdicts: BootVerdicts, last: boolean) {
    const runs = yield* Runs
    const { pod, revision, run } = trial
    const { fingerprints = [] } = revision.checks ?? {}
    const bare = yield* bareSubject(trial)
    const differing = yield* differingFingerprints(bare, fingerprints).pipe(within(fingerprintsLimit))
    const same = Effect.map(Clock.currentTimeMillis, (at) => keepVerdict(verdicts, run.engineRun, pod, { outcome: "same", message: "", at }))
    const none = fingerprints.length === 0
    if (differing === 0 && !none && pod.restarts === 0) return yield* same
    const recorded = yield* runs.likelihood(run.orgId, revision.id)
    // The recorded likelihoods belong to other texts.
    const likelihood = recorded === null || recorded.suiteVersion < suite.textsSince ? null : recorded.likelihood
    if (differing === 0 && likelihood === null) return yield* same
    const answers = none ? "No greedy answers were recorded" : `${differing} of ${fingerprints.length} greedy answers differ`
    // Only the tokenizer is read from the repository. Without a supported tokenizer, texts are sent as they are and the
    // hub is not needed.
    const compared = (known: SuiteSubject) => compareLikelihood({ ...known, salt: bare.salt, earlier: [{ fingerprints, likelihood }] })
    const reads = readsTokenizer(weightCommits(revision.facts)[0].files)
    const comparison = within(likelihoodLimit)(reads ? withSuiteSubject(trial, "30 seconds", compared) : compared(bare))
    const notCompared = LikelihoodComparison.NotCompared()
    const texts = likelihood === null ? notCompared : yield* last && !none ? Effect.orElseSucceed(comparison, () => notCompared) : comparison
    if (differing === 0 && texts._tag !== "Differs") return yield* same
    // Without likelihoods, only the number of different answers separates rounding of the GPU from other weights.
    const differs = texts._tag === "NotCompared" ? differing * 2 > fingerprints.length : texts._tag === "Differs"
    const message = `${answers}${describeTexts(texts)}.`
    yield* Effect.logWarning(`${run.id} after a start of its engine: ${message}`)
    keepVerdict(verdicts, run.engineRun, pod, { outcome: differs ? "differs" : "drifted", message, at: yield* Clock.currentTimeMillis })
  },
  (effect) =>
    effect.pipe(
      Effect.catchTags({
        EngineUnreachable: (error) => Effect.fail(unavailable(error)),
        Unexpected: ({ detail }) => Effect.fail(new WorkUnavailable({ message: `The engine returned an unexpected answer: ${detail}.` }))
      })
    )
)
