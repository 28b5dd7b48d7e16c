import { revisionCapabilities, weightCommits } from "@seatrial/domain"
import { Runs } from "@seatrial/store"
import { compareLikelihood, differingFingerprints, LikelihoodComparison, readsTokenizer, type SuiteSubject, suite, unreadRepository } from "@seatrial/trial"
import { Clock, Effect } from "effect"
import { type BootVerdicts, inTurn, keepVerdict, type TextTurns } from "../gather/BootVerdicts.ts"
import { type EngineUnderTrial, subjectOf, unavailable } from "./EngineUnderTrial.ts"
import { withSuiteSubject } from "./suiteSubject.ts"
import { WorkUnavailable } from "./WorkResult.ts"

/** Time limits of the fingerprints and of the likelihoods. Callers wait for the model. */
const [fingerprintsLimit, likelihoodLimit] = ["60 seconds", "40 seconds"] as const

/**
 * Bytes of a greedy answer of 64 tokens. A malicious tokenizer may have tokens of a megabyte, and all engines of a model
 * are compared at the same time, in the memory that all organizations share.
 */
const mostGreedyBytes = 65_536

const within = (limit: typeof fingerprintsLimit | typeof likelihoodLimit) =>
  Effect.timeoutOrElse({ duration: limit, orElse: () => Effect.fail(new WorkUnavailable({ message: `The engine did not answer within ${limit}.` })) })

/** A subject that needs nothing from the hub, which may be unreachable when a model wakes. `mostBytes` bounds each answer. */
const bareSubject = Effect.fnUntraced(function* (trial: EngineUnderTrial, mostBytes?: number) {
  const { engine, pod, podClass, revision } = trial
  const { facts, settings } = revision
  const [{ commit, files }] = weightCommits(facts)
  const subject: SuiteSubject = {
    ...(yield* subjectOf(trial, "30 seconds", mostBytes)),
    salt: `start-${pod.uid}-${pod.restarts}`,
    seed: 0,
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
  return subject
})

type Fingerprints = Parameters<typeof differingFingerprints>[1]

const describeTexts = LikelihoodComparison.$match({
  NotCompared: () => "",
  Same: () => ", but the scores of fixed texts are the same",
  Differs: ({ detail }) => `, and the scores of fixed texts are not as expected (${detail})`
})

/** The likelihoods of the verified engine; null if there are none, or if they belong to other texts. */
const recordedLikelihood = Effect.fnUntraced(function* ({ revision, run }: EngineUnderTrial) {
  const runs = yield* Runs
  const recorded = yield* runs.likelihood(run.orgId, revision.id)
  return recorded === null || recorded.suiteVersion < suite.textsSince ? null : recorded.likelihood
})

interface TextComparison {
  readonly trial: EngineUnderTrial
  readonly bare: SuiteSubject
  readonly fingerprints: Fingerprints
  /** Whether the fingerprints alone decide if the comparison fails. */
  readonly isOptional: boolean
  readonly turns: TextTurns
}

/**
 * Compares the likelihood of texts. Only the tokenizer is read from the repository. Without a supported tokenizer,
 * texts are sent as they are and the hub is not needed.
 */
const compareTexts = Effect.fnUntraced(function* ({ bare, fingerprints, isOptional, trial, turns }: TextComparison) {
  const likelihood = yield* recordedLikelihood(trial)
  if (likelihood === null) return LikelihoodComparison.NotCompared()
  const compared = (known: SuiteSubject) => compareLikelihood({ ...known, salt: bare.salt, earlier: [{ fingerprints, likelihood }] })
  const readsRepository = readsTokenizer(weightCommits(trial.revision.facts)[0].files)
  const limited = within(likelihoodLimit)(readsRepository ? withSuiteSubject(trial, "30 seconds", compared) : compared(bare))
  const comparison = inTurn(turns, trial.run.id)(limited)
  return yield* isOptional ? Effect.orElseSucceed(comparison, () => LikelihoodComparison.NotCompared()) : comparison
})

/** `differing`: how many of the `total` greedy answers differ. */
const verdictOf = (
  differing: number,
  total: number,
  texts: LikelihoodComparison
): { readonly outcome: "same" | "drifted" | "differs"; readonly message: string } => {
  if (differing === 0 && texts._tag !== "Differs") return { outcome: "same", message: "" }
  const answers = total === 0 ? "No greedy answers were recorded" : `${differing} of ${total} greedy answers differ`
  // Without likelihoods, only the number of different answers separates rounding of the GPU from other weights.
  const differs = texts._tag === "NotCompared" ? differing * 2 > total : texts._tag === "Differs"
  return { outcome: differs ? "differs" : "drifted", message: `${answers}${describeTexts(texts)}.` }
}

interface ComparisonMemory {
  readonly bootVerdicts: BootVerdicts
  readonly textTurns: TextTurns
}

/**
 * Compares a restarted engine with its verified revision. Fingerprints come first. The likelihood of texts follows if
 * fingerprints differ or are missing, or if the container restarted in its pod: then no init container checked the
 * weights. The likelihood needs the repository if its tokenizer is supported. If that is unavailable at the last
 * attempt (`isLast`), the fingerprints alone decide: different answers must not pass as not compared.
 */
export const compareStart = Effect.fn("compareStart")(
  function* (trial: EngineUnderTrial, memory: ComparisonMemory, isLast: boolean) {
    const { pod, revision, run } = trial
    yield* Effect.annotateCurrentSpan("seatrial.deployment", run.id)
    const { fingerprints = [] } = revision.checks ?? {}
    const bare = yield* bareSubject(trial)
    const differing = yield* differingFingerprints(yield* bareSubject(trial, mostGreedyBytes), fingerprints).pipe(within(fingerprintsLimit))
    const hasFingerprints = fingerprints.length > 0
    const isSame = differing === 0 && hasFingerprints && pod.restarts === 0
    const turns = memory.textTurns
    const texts = isSame ? LikelihoodComparison.NotCompared() : yield* compareTexts({ trial, bare, fingerprints, isOptional: isLast && hasFingerprints, turns })
    const verdict = verdictOf(differing, fingerprints.length, texts)
    if (verdict.outcome !== "same") yield* Effect.logWarning(`${run.id} after a start of its engine: ${verdict.message}`)
    keepVerdict(memory.bootVerdicts, pod, { ...verdict, at: yield* Clock.currentTimeMillis })
  },
  (effect) =>
    effect.pipe(
      Effect.catchTags({
        EngineUnreachable: (error) => Effect.fail(unavailable(error)),
        Unexpected: ({ detail }) => Effect.fail(new WorkUnavailable({ message: `The engine returned an unexpected answer: ${detail}.` }))
      })
    )
)
