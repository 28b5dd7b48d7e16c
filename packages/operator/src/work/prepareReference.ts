import { weightCommits } from "@seatrial/domain"
import { engineFor } from "@seatrial/engines"
import { Hub } from "@seatrial/hub"
import { Job, KubeClient } from "@seatrial/kube"
import { type RunRevision, Runs } from "@seatrial/store"
import { requestOf } from "@seatrial/trial"
import { Effect } from "effect"
import { alreadyExists } from "../apply/ActionContext.ts"
import type { Gathered } from "../gather/gather.ts"
import type { OperatorSettings } from "../OperatorSettings.ts"
import { type ReferencePlan, referenceJob, referencePlan } from "../objects/referenceJob.ts"
import { referenceLabel } from "../resources/objectNames.ts"
import { weightsClaimOf } from "../resources/PodClass.ts"
import { persist } from "./persist.ts"
import { largestSmall, reading, readingLimit } from "./readingTokenizers.ts"
import { WorkUnavailable } from "./WorkResult.ts"

type JobSettings = Pick<OperatorSettings, "fetchImage" | "namespace" | "pullSecrets" | "weightsClaim">

type Placed = Pick<Gathered, "podClass" | "run">

/** Files of the commit that a request is made of. */
const wanted = new Set(["config.json", "tokenizer.json", "tokenizer_config.json"])

/** What the Job computes: the texts in tokens of the model. Null if the tokenizer cannot be read. */
const readRequest = Effect.fnUntraced(function* ({ run }: Placed, { facts }: RunRevision) {
  const hub = yield* Hub
  const [{ commit, files, repo }] = weightCommits(facts)
  const token = yield* (yield* Runs).hubToken(run.orgId, run.startedBy)
  const small = files.filter(({ path }) => wanted.has(path))
  const contents = yield* Effect.mapError(
    hub.readSmall({ repo, commit, files: small, limit: largestSmall, token }),
    ({ message }) => new WorkUnavailable({ message })
  )
  const [tokenizer, config, tokenizerConfig] = ["tokenizer.json", "config.json", "tokenizer_config.json"].map((path) => contents.get(path))
  if (tokenizer === undefined) return null
  const decoder = new TextDecoder()
  return yield* requestOf({
    commit,
    config: decoder.decode(config),
    tokenizer,
    tokenizerConfig: tokenizerConfig === undefined ? "{}" : decoder.decode(tokenizerConfig)
  }).pipe(
    Effect.scoped,
    Effect.catchTag("NoReference", () => Effect.succeed(null)),
    Effect.timeoutOrElse({
      duration: readingLimit,
      orElse: () => Effect.fail(new WorkUnavailable({ message: `The repository's tokenizer could not be read within ${readingLimit}.` }))
    })
  )
})

/** Creates the Job, unless this or another run has created it and no watch has shown it yet. */
const createJob = Effect.fnUntraced(function* (gathered: Placed, revision: RunRevision, plan: ReferencePlan, settings: JobSettings) {
  const kube = yield* KubeClient
  const unavailable = ({ message }: { readonly message: string }) => new WorkUnavailable({ message: `The Job of the reference was not created: ${message}` })
  const { namespace } = settings
  const jobs = yield* Effect.mapError(kube.list(Job, { namespace, labelSelector: `${referenceLabel}=${plan.name}` }), unavailable)
  if (jobs.length > 0) return
  const request = yield* reading.withPermits(1)(readRequest(gathered, revision))
  if (request === null) return yield* Effect.asVoid(persist((yield* Runs).noteMissingReference(plan.attempt, "no_tokenizer")))
  const job = referenceJob({ plan, revision, settings, weightsClaim: weightsClaimOf(gathered.podClass, settings) }, request)
  yield* Effect.asVoid(kube.create(Job, job)).pipe(
    Effect.catchIf(alreadyExists, () => Effect.void),
    Effect.mapError(unavailable)
  )
})

/** Creates the Job that computes the reference of the run's commit. */
export const prepareReference = Effect.fn("prepareReference")(function* (gathered: Placed, settings: JobSettings) {
  const { podClass, run } = gathered
  const engine = run.revision === null ? undefined : engineFor(run.revision.settings.runtime)
  const plan = run.revision === null || podClass === null || engine === undefined ? null : referencePlan(run.revision, podClass, engine)
  if (run.revision === null || plan === null) return yield* new WorkUnavailable({ message: "The host class computes no references." })
  yield* createJob(gathered, run.revision, plan, settings)
})
