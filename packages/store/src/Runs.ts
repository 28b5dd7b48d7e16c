import { PgClient } from "@effect/sql-pg"
import {
  type Benchmark,
  type BenchmarkKey,
  type Calibration,
  type Check,
  type CheckReport,
  type Choices,
  DeploymentId,
  type EngineStart,
  type Failure,
  type Fit,
  Ids,
  type Measured,
  type ModelCapabilities,
  type ModelId,
  type OrgId,
  type Phase,
  type RepositoryFacts,
  type RevisionId,
  type RevisionStatus,
  type RunProgress,
  type ServingRequest,
  type ServingSettings,
  type Source,
  type UserId
} from "@seatrial/domain"
import { Cause, Clock, Context, Effect, Layer, Option, type Redacted, Schedule, Schema, Stream } from "effect"
import { SqlSchema } from "effect/sql"
import { HubConnections } from "./HubConnections.ts"
import { type ListenEvent, listen } from "./listen.ts"
import { listReservations, type Reservation } from "./listReservations.ts"
import { measuredStarts } from "./measuredStarts.ts"
import { leads, whileLeading } from "./OperatorTerms.ts"
import type { Endpoint } from "./Routes.ts"
import { activateRun } from "./runs/activate.ts"
import { earlierBenchmarks } from "./runs/earlierBenchmarks.ts"
import { earlierTrials, keptLikelihood } from "./runs/earlierTrials.ts"
import { enterPhase } from "./runs/enter.ts"
import { avoidedNodes, noteNodeFault } from "./runs/nodeFaults.ts"
import { observeRun } from "./runs/observe.ts"
import { publishEndpoints } from "./runs/publishEndpoints.ts"
import { recordChecks } from "./runs/recordChecks.ts"
import { recordEngineImage } from "./runs/recordEngineImage.ts"
import { recordProgress } from "./runs/recordProgress.ts"
import { recordResult } from "./runs/recordResult.ts"
import { recordScreening } from "./runs/recordScreening.ts"
import { recordStart } from "./runs/recordStart.ts"
import { forgetWeights, noteWeights } from "./runs/storedWeights.ts"

/** One way to serve a run's model: a host class with all that follows from it. */
export interface ServingPlan {
  readonly settings: ServingSettings
  readonly engineVersion: string
  /** What the host class runs the engine with when the run is screened. */
  readonly engineImage: string
  readonly estimate: RunRevision["estimate"]
  readonly capabilities: ModelCapabilities
}

/** The configuration revision that a run prepares, with what is known of it so far. */
export interface RunRevision {
  readonly id: RevisionId
  readonly status: RevisionStatus
  readonly facts: RepositoryFacts
  readonly settings: ServingSettings
  readonly engineVersion: string
  /** The image that it is tried and served with; null until its engine runs. */
  readonly engineImage: string | null
  /** `sha256:...` of that image, which its name may not stand for any more; null where its node told none, and until its engine runs. */
  readonly engineDigest: string | null
  readonly estimate: Fit & {
    readonly chosen_by?: Choices
    /** `sequence`: the KV cache of one sequence of `max_context` tokens, in bytes of one GPU. */
    readonly components?: { readonly sequence?: number }
  }
  readonly checks: CheckReport | null
  readonly measured: Measured | null
  readonly benchmark: Benchmark | null
}

export interface PublishedEndpoint extends Endpoint {
  /** Whether a gateway has reached it. */
  readonly reachable: boolean
}

/** Where a commit's files are known to be whole. */
export interface StoredWeights {
  /** As whoever noted it named it. */
  readonly store: string
  /** SHA-256 of the list of files. */
  readonly manifest: string
  /** The run whose download found them, and when, Unix milliseconds. */
  readonly verifiedBy: DeploymentId
  readonly verifiedAt: number
}

/** Everything that Postgres holds about one run: what the operator's decisions see of it. Times are Unix milliseconds. */
export interface Run {
  readonly id: DeploymentId
  readonly orgId: OrgId
  readonly orgSlug: string
  readonly modelId: ModelId
  /** Callable name. */
  readonly model: string
  readonly phase: Phase
  readonly phaseSince: number
  readonly requeues: number
  readonly failure: Failure | null
  readonly source: Source
  readonly servingRequest: ServingRequest
  /** Who chose the settings that the request keeps from what the model had; null where a caller sent them. */
  readonly keptChoices: Choices | null
  readonly serve: boolean
  /** Whose hub connection is used. */
  readonly startedBy: UserId | null
  readonly createdAt: number
  /** The trace of the request that made it, as W3C Trace Context writes it. */
  readonly traceparent: string | null
  readonly endedAt: number | null
  readonly revision: RunRevision | null
  /** The ways to serve it that its request leaves open, in order of preference; its revision has the first. Empty if there is one only, and once the run has left the queue. */
  readonly placements: ReadonlyArray<ServingPlan>
  /** The revision that the model serves now; null where it serves none. */
  readonly activeRevisionId: RevisionId | null
  readonly modelDeleted: boolean
  readonly modelDisabled: boolean
  /** The run whose engine the revision is served by: this one, or the earlier one whose verified revision it reuses. */
  readonly engineRun: DeploymentId
  /** Other runs of the same revision that are unfinished. */
  readonly reusedBy: ReadonlyArray<DeploymentId>
  /** GPUs that the organisation may hold at once; null for any number. */
  readonly gpuLimit: number | null
  /** An older unfinished run of the same model, which goes first. */
  readonly olderRun: DeploymentId | null
  readonly endpoints: ReadonlyArray<PublishedEndpoint>
  /** Whether it was given the GPUs of what its model served. */
  readonly replaces: boolean
  /** An unfinished run of the model that was given this one's GPUs; only of what serves. */
  readonly replacedBy: DeploymentId | null
  /** What the model serves where that is another revision: the run whose engine it is, its host class and its GPUs. `differs`: it has no traffic, since it answers otherwise. */
  readonly predecessor: { readonly run: DeploymentId; readonly hostClass: string; readonly gpus: number; readonly differs?: boolean } | null
  /** Runs of the model that made a verified revision which does not serve, the newest ones, and how long that keeps its GPUs after `endedAt`; only until a run has some itself. */
  readonly candidates: ReadonlyArray<{ readonly run: DeploymentId; readonly gpus: number; readonly endedAt: number; readonly holdSeconds: number | null }>
  /** When gateways told last that somebody asks for its revision; told only of revisions with `hold_seconds`. */
  readonly lastUsedAt: number | null
  /** Requests under way on its revision; counted only where that gives its engine back (superseded, replaced, idling, or of a deleted or disabled model), else 0. */
  readonly inFlight: number
  /** The `ModelDeployment` that somebody applied and that this run was made for; `current` is null where another run stands for that now, or it was deleted. */
  readonly applied: {
    readonly namespace: string
    readonly name: string
    /** `namesModel`: whether the object named the model by id, which was there before it. */
    readonly current: { readonly uid: string; readonly generation: number; readonly namesModel: boolean } | null
  } | null
  /** Where the files of its commit are known to be; read only until its engine is ready. */
  readonly storedWeights: ReadonlyArray<StoredWeights>
  /** On which nodes it was tried and what was found there that may have been the node's fault. */
  readonly nodeFaults: ReadonlyArray<{ readonly node: string; readonly code: string; readonly at: number }>
  readonly history: ReadonlyArray<{ readonly phase: Phase; readonly at: number; readonly reason: string | null }>
  /** What was recorded last of what it does or waits for, and when; null if nothing was. */
  readonly progress: (RunProgress & { readonly at: number }) | null
}

/** How long a finished run that nobody released counts as live, milliseconds. */
const unreleasedMillis = 86_400_000

/** The operator's side of deployments. Every transition is one compare-and-set with its phase row in one transaction. */
export class Runs extends Context.Service<
  Runs,
  {
    /** Ends once Postgres answers. */
    readonly ping: Effect.Effect<void>
    readonly observe: (id: DeploymentId) => Effect.Effect<Option.Option<Run>>
    /** Runs that may need work: unfinished, those whose revision serves or has endpoints, and those that ended in the last day and were not released. */
    readonly live: Effect.Effect<ReadonlyArray<DeploymentId>>
    /** What the organisation's starts of an architecture took, as far as their engines told. */
    readonly measuredStarts: (orgId: OrgId, architecture: string) => Effect.Effect<ReadonlyArray<Calibration>>
    /** The organisation's newest benchmarks of that key, 20 at most. */
    readonly earlierBenchmarks: (orgId: OrgId, key: BenchmarkKey) => Effect.Effect<ReadonlyArray<Benchmark>>
    /** GPUs that are set aside for organisations. */
    readonly reservations: Effect.Effect<ReadonlyArray<Reservation>>
    /** Ids of runs as they change (created, cancelled, moved, endpoints reached); after a lost connection all live ones again. */
    readonly changes: Stream.Stream<DeploymentId>
    /**
     * False where the run is no longer in `from`: somebody else was first. What falls back from its trial to the queue is tried anew: its results are gone.
     */
    readonly enter: (input: {
      readonly id: DeploymentId
      readonly orgId: OrgId
      readonly from: Phase
      readonly to: Phase
      readonly reason: string
      readonly failure?: Failure
      /** When, Unix milliseconds; by default now. */
      readonly at?: number
      /** What the model serves gives its GPUs to the run until that has ended. */
      readonly replaces?: boolean
      /** The way to serve it on which it leaves the queue, if its request left several open: from now on its revision has this one. */
      readonly plan?: ServingPlan
    }) => Effect.Effect<boolean>
    /**
     * What screening found: makes the draft revision, once for a run, or takes the model's verified one where commit, engine version, image, card and settings are the same.
     * False where the run left `screening`.
     */
    readonly recordScreening: (
      input: Omit<ServingPlan, "estimate"> & {
        readonly id: DeploymentId
        readonly orgId: OrgId
        readonly facts: RepositoryFacts
        readonly estimate: Fit
        /** All ways to serve it that the request leaves open, in order of preference, this one first; none if there is this one only. */
        readonly placements?: ReadonlyArray<ServingPlan>
      }
    ) => Effect.Effect<boolean>
    /** Its download found all files of its commit in that store; `manifest`: the SHA-256 of their list. */
    readonly noteWeights: (id: DeploymentId, orgId: OrgId, stored: { readonly store: string; readonly manifest: string }) => Effect.Effect<void>
    /** The files of its commit may not be in that store any more. */
    readonly forgetWeights: (id: DeploymentId, orgId: OrgId, store: string) => Effect.Effect<void>
    /** With which image its revision is tried and serves from now on, and which that is, `sha256:...`; null: its node does not say. False where that is known. */
    readonly recordEngineImage: (id: DeploymentId, orgId: OrgId, engine: { readonly image: string; readonly digest: string | null }) => Effect.Effect<boolean>
    /** How long the engine of a pod of its revision took to start; only the first time that it is told of that pod. */
    readonly recordStart: (id: DeploymentId, orgId: OrgId, start: EngineStart) => Effect.Effect<void>
    /** Something went wrong with the run on that node that may have been the node's fault; told once of each code. */
    readonly noteNodeFault: (id: DeploymentId, orgId: OrgId, fault: { readonly node: string; readonly code: string }) => Effect.Effect<void>
    /** Nodes that an engine of the run had better not come to, where there are others. */
    readonly avoidedNodes: (id: DeploymentId, orgId: OrgId) => Effect.Effect<ReadonlyArray<string>>
    /** False where the run is no longer in the phase that the result belongs to. */
    readonly recordChecks: (
      id: DeploymentId,
      orgId: OrgId,
      report: CheckReport,
      kept?: {
        /** What the revision can do from now on, where a check did not see something working. */
        readonly capabilities?: ModelCapabilities
        /** Log-probabilities of the suite's texts, by text and token. */
        readonly likelihood?: ReadonlyArray<ReadonlyArray<number>>
      }
    ) => Effect.Effect<boolean>
    /** What earlier trials of the same found, of the organisation's own, newest first. */
    readonly earlierTrials: (
      orgId: OrgId,
      revision: Pick<RunRevision, "engineVersion" | "estimate" | "facts" | "id" | "settings">
    ) => Effect.Effect<
      ReadonlyArray<{
        /** The version of the engine that it was of, where that is another. */
        readonly otherEngine: string | null
        readonly suite: string
        readonly suiteVersion: number
        /** The engine's hash over all tensors that it had loaded; null if it reported none. */
        readonly loadedChecksum: string | null
        readonly fingerprints: CheckReport["fingerprints"]
        readonly likelihood: ReadonlyArray<ReadonlyArray<number>> | null
      }>
    >
    /** The likelihoods that the revision's own trial kept; null where it kept none. */
    readonly likelihood: (
      orgId: OrgId,
      revision: RevisionId
    ) => Effect.Effect<{ readonly suiteVersion: number; readonly likelihood: ReadonlyArray<ReadonlyArray<number>> | null } | null>
    /** `row`: what the revision's checks, and with them its receipts, say of it. */
    readonly recordMeasured: (id: DeploymentId, orgId: OrgId, measured: Measured, row: Check | null) => Effect.Effect<boolean>
    readonly recordBenchmark: (id: DeploymentId, orgId: OrgId, benchmark: Benchmark, row: Check | null) => Effect.Effect<boolean>
    /** The pods that serve the run's revision now, replacing what was published of it; gateways hear of it at once. False where there is no revision, or another operator leads. */
    readonly publishEndpoints: (id: DeploymentId, orgId: OrgId, endpoints: ReadonlyArray<Endpoint>) => Effect.Effect<boolean>
    /**
     * From `activating` to `activated` in one transaction: the revision becomes active with its verification frozen, the earlier one superseded, the model points to
     * it, the audit event is written. With `serve: false` the revision stays `draft` and is only marked verified. False where the run was not in `from`.
     */
    readonly activate: (input: { readonly id: DeploymentId; readonly orgId: OrgId; readonly from: Phase }) => Effect.Effect<boolean>
    /** What the run does or waits for now, for the API. Wakes no operator. */
    readonly recordProgress: (id: DeploymentId, orgId: OrgId, progress: RunProgress) => Effect.Effect<void>
    /** The token of that user's hub connection, to fetch the weights with. Nobody, of an applied object's run, has the one that the organisation shares. */
    readonly hubToken: (orgId: OrgId, userId: UserId | null) => Effect.Effect<Option.Option<Redacted.Redacted<string>>>
    /** The cluster holds nothing of this finished run any more: `live` leaves it out from now on, unless it serves. */
    readonly release: (id: DeploymentId, orgId: OrgId) => Effect.Effect<void>
  }
>()("seatrial/Runs") {
  static readonly layerSql = Layer.effect(
    Runs,
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const ids = yield* Ids
      const hubConnections = yield* HubConnections

      const IdRow = Schema.Struct({ id: DeploymentId })
      const findLive = SqlSchema.findAll({
        Request: Schema.Finite,
        Result: IdRow,
        execute: (now) => sql`
          SELECT id FROM deployments WHERE ended_at IS NULL
          UNION SELECT d.id FROM models m JOIN deployments d ON d.org_id = m.org_id AND d.revision_id = m.active_revision_id WHERE m.deleted_at IS NULL
          UNION SELECT deployment_id FROM endpoints
          UNION SELECT id FROM deployments WHERE ended_at IS NOT NULL AND released_at IS NULL AND ended_at > ${new Date(now - unreleasedMillis)}
          ORDER BY id`
      })
      const live = Clock.currentTimeMillis.pipe(
        Effect.flatMap(findLive),
        Effect.map((rows) => rows.map(({ id }) => id)),
        Effect.orDie
      )
      const drainOutbox = SqlSchema.findAll({
        Request: Schema.Void,
        Result: IdRow,
        execute: () => sql`WITH work AS (DELETE FROM outbox RETURNING deployment_id) SELECT DISTINCT deployment_id AS id FROM work`
      })

      /** Postgres may go away between a notification and what is read or written because of it: that ends nobody who listens. */
      const tolerant = <A>(effect: Effect.Effect<A>) =>
        Effect.tapCause(effect, (cause) =>
          Cause.hasInterruptsOnly(cause) ? Effect.void : Effect.logWarning("the outbox could not be read; it is tried again", Cause.pretty(cause))
        ).pipe(Effect.sandbox)
      /** All that was missed while nobody listened: what is left in the outbox, then everything that is live. */
      const missed = Effect.gen(function* () {
        const left = yield* Effect.orDie(whileLeading(sql, drainOutbox()))
        return [...new Set([...left.map(({ id }) => id), ...(yield* live)])]
      }).pipe(
        tolerant,
        Effect.retry(Schedule.spaced("1 second")),
        Effect.catch((cause) => Effect.failCause(cause))
      )
      const decodeId = Schema.decodeOption(DeploymentId)
      /** What was heard together is taken from the outbox together. */
      const heard = Effect.fnUntraced(function* (payloads: ReadonlyArray<string>) {
        const found = [...new Set(payloads.flatMap((payload) => Option.toArray(decodeId(payload))))]
        // A row that stays is heard of again.
        if (found.length > 0)
          yield* Effect.orDie(sql`DELETE FROM outbox WHERE ${yield* leads(sql)} AND ${sql.in("deployment_id", found)}`).pipe(tolerant, Effect.ignore)
        return found
      })
      const toldBy = Effect.fnUntraced(function* (events: ReadonlyArray<ListenEvent>) {
        const anew = events.some(({ _tag }) => _tag === "Listening") ? yield* missed : []
        return [...anew, ...(yield* heard(events.flatMap((event) => (event._tag === "Notified" ? [event.payload] : []))))]
      })

      return Runs.of({
        ping: Effect.orDie(Effect.asVoid(sql`SELECT 1`)),
        observe: observeRun(sql),
        live: live.pipe(Effect.withSpan("Runs.live")),
        measuredStarts: measuredStarts(sql),
        earlierBenchmarks: earlierBenchmarks(sql),
        reservations: listReservations(sql).pipe(Effect.withSpan("Runs.reservations")),
        changes: listen(sql, "deployments").pipe(Stream.chunks, Stream.mapEffect(toldBy), Stream.flattenIterable),
        enter: enterPhase(sql, ids),
        recordScreening: recordScreening(sql, ids),
        noteWeights: noteWeights(sql),
        forgetWeights: forgetWeights(sql),
        recordEngineImage: recordEngineImage(sql),
        recordStart: recordStart(sql),
        noteNodeFault: noteNodeFault(sql),
        avoidedNodes: avoidedNodes(sql),
        recordChecks: recordChecks(sql),
        earlierTrials: earlierTrials(sql),
        likelihood: keptLikelihood(sql),
        recordMeasured: recordResult(sql, "measured", "measuring"),
        recordBenchmark: recordResult(sql, "benchmark", "benchmarking"),
        publishEndpoints: publishEndpoints(sql),
        activate: activateRun(sql, ids),
        recordProgress: recordProgress(sql),
        hubToken: Effect.fn("Runs.hubToken")((orgId, userId) => (userId === null ? hubConnections.findShared(orgId) : hubConnections.find(orgId, userId))),
        release: Effect.fn("Runs.release")(function* (id, orgId) {
          const at = new Date(yield* Clock.currentTimeMillis)
          yield* Effect.orDie(
            sql`UPDATE deployments SET released_at = ${at} WHERE ${yield* leads(sql)} AND org_id = ${orgId} AND id = ${id} AND ended_at IS NOT NULL AND released_at IS NULL`
          )
        })
      })
    })
  )
}
