import { baseInEngine, revisionCapabilities, weightCommits } from "@seatrial/domain"
import { Hub } from "@seatrial/hub"
import { KubeClient, Pod } from "@seatrial/kube"
import { Runs } from "@seatrial/store"
import { comparable, readRepository, type SuiteSubject } from "@seatrial/trial"
import { type Duration, Effect, Semaphore } from "effect"
import { deploymentLabel } from "../resources/objectNames.ts"
import { type EngineUnderTrial, subjectOf } from "./EngineUnderTrial.ts"
import { startSeen } from "./startSeen.ts"
import { WorkUnavailable } from "./WorkResult.ts"

/** Files of the commit that the engine's answers are held against. */
const wanted = new Set(["config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json"])

/** Largest of them that is read, in bytes; a model with a larger tokenizer is tried without ours. */
const largestSmall = 40 * 1024 * 1024

/**
 * One tokenizer is read at a time, and that is all that suites wait for one another: the larger ones take hundreds of megabytes while they are, and after a change of
 * leader all runs in their checks begin together. A suite itself may take an hour, on GPUs that its organization pays for.
 */
const reading = Semaphore.makeUnsafe(1)

/** Longest that it may take to read one: some seconds where the machine is busy, and for ever where its author wants that. */
const readingLimit = "2 minutes"

/**
 * MiB of tokenizers' files that suites hold at once. In memory a tokenizer is five times as large, so this is a quarter of what the chart gives an operator; most files have
 * less than 20, and only who would be beyond it waits for another suite to end.
 */
const mostHeld = 96
const holding = Semaphore.makeUnsafe(mostHeld)

const sequences = (flags: Readonly<Record<string, unknown>> = {}): number => {
  const told = flags.max_num_seqs ?? flags.max_running_requests
  return typeof told === "number" ? told : 32
}

/** What the check suite needs beside: the pinned repository read by us, how the engine was started, what the catalog would show, and earlier trials. */
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
  // As it stands with the API server: what is kept of pods in memory does not say what their containers were told.
  const pods = yield* Effect.mapError(
    kube.list(Pod, { namespace, labelSelector: `${deploymentLabel}=${run.engineRun}` }),
    () => new WorkUnavailable({ message: "The cluster did not tell of the engine's pod." })
  )
  const start = startSeen(
    pods.find(({ metadata }) => metadata.uid === pod.uid),
    pod,
    revision
  )
  const earlier = yield* runs.earlierTrials(run.orgId, revision)
  const flags = settings.engine_flags ?? {}
  const subject: SuiteSubject = {
    ...(yield* subjectOf(trial, timeout)),
    ...(facts.adapter === undefined ? {} : { baseName: baseInEngine(engine.wire, run.model), merged: trial.merged }),
    salt: "",
    parameters: facts.parameters,
    slots: sequences(flags),
    offers: engine.offers(settings, podClass.hostClass.simulated),
    batchInvariant: flags.batch_invariant === true || flags.enable_deterministic_inference === true,
    capabilities: revisionCapabilities(engine, facts, settings),
    repository,
    start,
    earlier: earlier.flatMap(comparable),
    cacheTokens: (metrics) => engine.measured({ metrics, log: "" }).kv_cache_tokens
  }
  return subject
})

/** Does something with what the check suite needs. The pinned repository's tokenizer and template are held for as long as that takes, and end with it at once. */
export const withSuiteSubject = <A, E, R>(trial: EngineUnderTrial, timeout: Duration.Input, use: (subject: SuiteSubject) => Effect.Effect<A, E, R>) => {
  const [{ files }] = weightCommits(trial.revision.facts)
  const { size = 0 } = files.find(({ path }) => path === "tokenizer.json") ?? {}
  const mebibytes = size > largestSmall ? 0 : Math.ceil(size / 1024 ** 2)
  return Effect.flatMap(suiteSubjectOf(trial, timeout), use).pipe(Effect.scoped, holding.withPermits(mebibytes))
}
