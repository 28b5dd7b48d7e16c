import { baseInEngine, isBatchInvariant, quantizesAtStart, revisionCapabilities, slotsOf, weightCommits } from "@seatrial/domain"
import { Hub } from "@seatrial/hub"
import { KubeClient, Pod } from "@seatrial/kube"
import { Runs } from "@seatrial/store"
import { comparable, readRepository, referenceVersion, type SuiteSubject } from "@seatrial/trial"
import { type Duration, Effect, Option, Random, Semaphore } from "effect"
import { deploymentLabel } from "../resources/objectNames.ts"
import { type EngineUnderTrial, subjectOf } from "./EngineUnderTrial.ts"
import { observedStart } from "./observedStart.ts"
import { largestSmall, reading, readingLimit } from "./readingTokenizers.ts"
import { WorkUnavailable } from "./WorkResult.ts"

/** Files of the commit that the engine's answers are compared with. */
const wanted = new Set(["config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json"])

/**
 * MiB of tokenizer files that all suites may hold at once. In memory a tokenizer is five times as large, so this is a
 * quarter of the operator's memory in the chart. Most files have less than 20 MiB; a suite that exceeds the limit waits
 * for another one to end.
 */
const mostHeld = 96
const holding = Semaphore.makeUnsafe(mostHeld)

/** The number of slots of an engine whose settings do not say it. */
const usualSlots = 32

/**
 * The inputs of the check suite: the pinned repository, how the engine was started, the catalog entry, and earlier
 * trials.
 */
const suiteSubjectOf = Effect.fnUntraced(function* (trial: EngineUnderTrial, timeout: Duration.Input) {
  const hub = yield* Hub
  const runs = yield* Runs
  const kube = yield* KubeClient
  const { engine, namespace, pod, podClass, revision, run } = trial
  const { facts, settings } = revision
  const [{ commit, files, repo }] = weightCommits(facts)
  const token = yield* runs.hubToken(run.orgId, run.startedBy)
  const small = files.filter(({ path }) => wanted.has(path))
  const repository = yield* hub.readSmall({ repo, commit, files: small, limit: largestSmall, token }).pipe(
    Effect.mapError(({ message }) => new WorkUnavailable({ message })),
    Effect.flatMap((contents) =>
      Effect.timeoutOrElse(readRepository({ facts, files, commit, small: contents }), {
        duration: readingLimit,
        orElse: () => Effect.fail(new WorkUnavailable({ message: `The repository's tokenizer could not be read within ${readingLimit}.` }))
      })
    ),
    reading.withPermits(1)
  )
  // Read from the API server: the watched pods in memory omit the arguments of their containers.
  const pods = yield* Effect.mapError(
    kube.list(Pod, { namespace, labelSelector: `${deploymentLabel}=${run.engineRun}` }),
    () => new WorkUnavailable({ message: "The engine's pod could not be read from the cluster." })
  )
  const start = observedStart(
    pods.find(({ metadata }) => metadata.uid === pod.uid),
    pod,
    revision
  )
  const earlier = yield* runs.earlierTrials(run.orgId, revision)
  const reference = yield* runs.reference({ repo, commit, textsVersion: referenceVersion })
  const subject: SuiteSubject = {
    ...(yield* subjectOf(trial, timeout)),
    ...(facts.adapter === undefined ? {} : { baseName: baseInEngine(engine.wire, run.model), merged: trial.merged }),
    salt: "",
    seed: yield* Random.nextIntBetween(1, 2 ** 31),
    parameters: facts.parameters,
    slots: slotsOf(settings) ?? usualSlots,
    offers: engine.offers(settings, podClass.hostClass.simulated),
    metrics: engine.wire.trialMetrics,
    batchInvariant: isBatchInvariant(settings.engine_flags),
    capabilities: revisionCapabilities(engine, facts, settings),
    repository,
    start,
    reference: Option.getOrNull(reference),
    noReference: trial.noReference,
    reducesPrecision: settings.kv_cache_dtype !== "auto" || quantizesAtStart(settings),
    earlier: earlier.flatMap(comparable),
    cacheTokens: (metrics) => engine.measured({ metrics, log: "" }).kv_cache_tokens
  }
  return subject
})

/**
 * Provides the inputs of the check suite. The repository's tokenizer and template are released as soon as `use` ends.
 */
export const withSuiteSubject = <A, E, R>(trial: EngineUnderTrial, timeout: Duration.Input, use: (subject: SuiteSubject) => Effect.Effect<A, E, R>) => {
  const [{ files }] = weightCommits(trial.revision.facts)
  const { size = 0 } = files.find(({ path }) => path === "tokenizer.json") ?? {}
  const mebibytes = size > largestSmall ? 0 : Math.ceil(size / 1024 ** 2)
  return Effect.flatMap(suiteSubjectOf(trial, timeout), use).pipe(Effect.scoped, holding.withPermits(mebibytes))
}
