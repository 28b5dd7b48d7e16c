import { revisionCapabilities, weightCommits } from "@seatrial/domain"
import { Runs } from "@seatrial/store"
import { compareLikelihood, differingFingerprints, LikelihoodComparison, readsTokenizer, type SuiteSubject, suite, unreadRepository } from "@seatrial/trial"
import { Clock, Effect } from "effect"
import { type BootVerdicts, keepVerdict } from "../gather/BootVerdicts.ts"
import { type EngineUnderTrial, subjectOf, unavailable } from "./EngineUnderTrial.ts"
import { withSuiteSubject } from "./suiteSubject.ts"
import { WorkUnavailable } from "./WorkResult.ts"

/** Longest that the fingerprints may take, and after them the likelihood of texts: callers wait for the model. */
const [fingerprintsLimit, likelihoodLimit] = ["60 seconds", "40 seconds"] as const

const within = (limit: typeof fingerprintsLimit | typeof likelihoodLimit) =>
  Effect.timeoutOrElse({ duration: limit, orElse: () => Effect.fail(new WorkUnavailable({ message: `The engine did not answer within ${limit}.` })) })

/** What fingerprints need of a model: nothing has to be read from the hub, which may be away when a model wakes. */
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
 * Compares an engine that has started again with what its revision was verified with: its fingerprints, and where some differ, or there are none, or its container was
 * started again in its pod, where nothing has looked at the weights first, the likelihood of texts. That reads the repository, where its tokenizer is one that we read: where
 * it cannot be told at the last try (`last`), the fingerprints alone decide, and what is known to answer otherwise does not pass for not compared.
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
    const kept = yield* runs.likelihood(run.orgId, revision.id)
    // Of other texts it says nothing.
    const likelihood = kept === null || kept.suiteVersion < suite.textsSince ? null : kept.likelihood
    if (differing === 0 && likelihood === null) return yield* same
    const answers = none ? "No greedy answers were kept" : `${differing} of ${fingerprints.length} greedy answers differ`
    // Of the repository only the tokenizer is needed; where we read none, texts are sent as they are, and the hub may be away.
    const compared = (known: SuiteSubject) => compareLikelihood({ ...known, salt: bare.salt, earlier: [{ fingerprints, likelihood }] })
    const reads = readsTokenizer(weightCommits(revision.facts)[0].files)
    const comparison = within(likelihoodLimit)(reads ? withSuiteSubject(trial, "30 seconds", compared) : compared(bare))
    const notCompared = LikelihoodComparison.NotCompared()
    const texts = likelihood === null ? notCompared : yield* last && !none ? Effect.orElseSucceed(comparison, () => notCompared) : comparison
    if (differing === 0 && texts._tag !== "Differs") return yield* same
    // Without likelihoods only the number of differing answers separates a card's rounding from other weights.
    const differs = texts._tag === "NotCompared" ? differing * 2 > fingerprints.length : texts._tag === "Differs"
    const message = `${answers}${describeTexts(texts)}.`
    yield* Effect.logWarning(`${run.id} after a start of its engine: ${message}`)
    keepVerdict(verdicts, run.engineRun, pod, { outcome: differs ? "differs" : "drifted", message, at: yield* Clock.currentTimeMillis })
  },
  (effect) =>
    effect.pipe(
      Effect.catchTags({
        EngineUnreachable: (error) => Effect.fail(unavailable(error)),
        Unexpected: ({ detail }) => Effect.fail(new WorkUnavailable({ message: `The engine: ${detail}.` }))
      })
    )
)
