import { PgClient } from "@effect/sql-pg"
import {
  Benchmark,
  type BenchmarkKey,
  type Calibration,
  type Check,
  type CheckReport,
  type DeploymentId,
  type EngineStart,
  type Failure,
  type Fit,
  Ids,
  Measured,
  type ModelCapabilities,
  type ModelEngines,
  type ModelId,
  type ModelReference,
  type OrgId,
  type Phase,
  type RepositoryFacts,
  type RevisionId,
  type RunProgress,
  type UserId
} from "@seatrial/domain"
import { Context, Effect, Layer, type Option, type Redacted, Schema, type Stream } from "effect"
import { HubConnections } from "./HubConnections.ts"
import { listReservations, type Reservation } from "./listReservations.ts"
import {
  addReference,
  type DifferentReference,
  findReference,
  findReferenceState,
  noteMissingReference,
  type ReferenceAttempt,
  type ReferenceKey,
  type ReferenceState
} from "./ModelReferences.ts"
import { measuredStarts } from "./measuredStarts.ts"
import type { PublishedPod } from "./Routes.ts"
import { activateRun } from "./runs/activate.ts"
import { earlierBenchmarks } from "./runs/earlierBenchmarks.ts"
import { earlierTrials, trialLikelihood } from "./runs/earlierTrials.ts"
import { enterPhase } from "./runs/enter.ts"
import { modelLoads, type ReplicasChange, type ReportedLoad, setReplicas } from "./runs/modelLoads.ts"
import { type MoveAnswers, moveAnswers, moveBack } from "./runs/moveBack.ts"
import { avoidedNodes, noteNodeFault } from "./runs/nodeFaults.ts"
import { observeRun } from "./runs/observe.ts"
import { publishEndpoints } from "./runs/publishEndpoints.ts"
import type { Run, RunRevision, ServingPlan } from "./runs/Run.ts"
import { recordChecks } from "./runs/recordChecks.ts"
import { recordEngineImage } from "./runs/recordEngineImage.ts"
import { recordEngines } from "./runs/recordEngines.ts"
import { recordProgress } from "./runs/recordProgress.ts"
import { recordResult } from "./runs/recordResult.ts"
import { recordScreening } from "./runs/recordScreening.ts"
import { recordStart } from "./runs/recordStart.ts"
import { release } from "./runs/release.ts"
import { type ChangedRun, runChanges } from "./runs/runChanges.ts"
import { forgetWeights, noteWeights } from "./runs/storedWeights.ts"
import type { Allowance } from "./spending/Account.ts"
import { makeUsedUp } from "./spending/usedUp.ts"

export type { MoveAnswers } from "./runs/moveBack.ts"
export type { Predecessor, PublishedEndpoint, Run, RunRevision, ServingPlan, StoredWeights } from "./runs/Run.ts"

/** The operator's view of deployments. Every transition is one atomic compare-and-set together with its history row. */
export class Runs extends Context.Service<
  Runs,
  {
    /** Completes when Postgres answers. */
    readonly ping: Effect.Effect<void>
    readonly observe: (id: DeploymentId) => Effect.Effect<Option.Option<Run>>
    /**
     * Runs that may need work: unfinished runs, runs whose revision serves or has endpoints, and runs that ended in the
     * last day and were not released.
     */
    readonly live: Effect.Effect<ReadonlyArray<ChangedRun>>
    /** Start times of an architecture that the organization's engines reported. */
    readonly measuredStarts: (orgId: OrgId, architecture: string) => Effect.Effect<ReadonlyArray<Calibration>>
    /** The organization's newest benchmarks of that key, at most 20. */
    readonly earlierBenchmarks: (orgId: OrgId, key: BenchmarkKey) => Effect.Effect<ReadonlyArray<Benchmark>>
    /**
     * Which allowance of the organization (not of a key) is used up; null if it may spend. At most 15 seconds old.
     */
    readonly usedUp: (orgId: OrgId) => Effect.Effect<Allowance["kind"] | null>
    /** The loads of all models whose number of engines the autoscaler sets. */
    readonly modelLoads: Effect.Effect<ReadonlyArray<ReportedLoad>>
    /** False if the number is not `from` any more, if the autoscaler may not set it, or if another operator leads. */
    readonly setReplicas: (change: ReplicasChange) => Effect.Effect<boolean>
    /** GPUs that are reserved for organizations. */
    readonly reservations: Effect.Effect<ReadonlyArray<Reservation>>
    /**
     * Runs that changed (created, canceled, moved, endpoints reached). After a lost connection, all live runs are emitted
     * again.
     */
    readonly changes: Stream.Stream<ChangedRun>
    /**
     * False if the run has already left `from`. A requeue from the trial deletes the trial's results, and the next
     * trial starts over.
     */
    readonly enter: (input: {
      readonly id: DeploymentId
      readonly orgId: OrgId
      readonly from: Phase
      readonly to: Phase
      readonly reason: string
      readonly failure?: Failure
      /** Unix milliseconds; defaults to the current time. */
      readonly at?: number
      /** The model's serving revision gives its GPUs to the run until the run has ended. */
      readonly replaces?: boolean
      /** The return to `queued` does not count as a loss of GPUs, because the run had none. */
      readonly hadNoGpus?: boolean
      /**
       * The serving option with which the run leaves the queue, if its request permitted several. It becomes the option
       * of its revision.
       */
      readonly plan?: ServingPlan
    }) => Effect.Effect<boolean>
    /**
     * Records the result of screening: creates the run's draft revision once, or reuses the model's verified revision
     * with the same commit, engine version, image, GPU type and settings. False if the run has left `screening`.
     */
    readonly recordScreening: (
      input: Omit<ServingPlan, "estimate"> & {
        readonly id: DeploymentId
        readonly orgId: OrgId
        readonly facts: RepositoryFacts
        readonly estimate: Fit
        /**
         * All serving options that the request permits, in order of preference, the chosen one first; none if there is
         * only one.
         */
        readonly placements?: ReadonlyArray<ServingPlan>
      }
    ) => Effect.Effect<boolean>
    /**
     * Records that the run's download verified all files of its commit in that store. `manifest`: the SHA-256 of their
     * list.
     */
    readonly noteWeights: (id: DeploymentId, orgId: OrgId, stored: { readonly store: string; readonly manifest: string }) => Effect.Effect<void>
    /** Records that the files of its commit may be missing from that store. */
    readonly forgetWeights: (id: DeploymentId, orgId: OrgId, store: string) => Effect.Effect<void>
    /**
     * Records the image that its revision is tried and served with, and the image's digest, `sha256:...`; null if the
     * node does not report it. False if nothing new was recorded.
     */
    readonly recordEngineImage: (id: DeploymentId, orgId: OrgId, engine: { readonly image: string; readonly digest: string | null }) => Effect.Effect<boolean>
    /** Records the start times of the engine in a pod of its revision; only the first record of a pod counts. */
    readonly recordStart: (id: DeploymentId, orgId: OrgId, start: EngineStart) => Effect.Effect<void>
    /** Records a problem of the run on a node that may be the node's fault; once for each code. */
    readonly noteNodeFault: (id: DeploymentId, orgId: OrgId, fault: { readonly node: string; readonly code: string }) => Effect.Effect<void>
    /** Nodes to avoid for the run's engine if there are others. */
    readonly avoidedNodes: (id: DeploymentId, orgId: OrgId) => Effect.Effect<ReadonlyArray<string>>
    /** False if the run has left the phase that the result belongs to. */
    readonly recordChecks: (
      id: DeploymentId,
      orgId: OrgId,
      report: CheckReport,
      results?: {
        /** The capabilities of the revision, if a check showed that a capability does not work. */
        readonly capabilities?: ModelCapabilities
        /** Log-probabilities of the suite's texts, by text and token. */
        readonly likelihood?: ReadonlyArray<ReadonlyArray<number>>
      }
    ) => Effect.Effect<boolean>
    /** What an independent implementation computes for a commit that the run has verified. */
    readonly reference: (key: ReferenceKey) => Effect.Effect<Option.Option<ModelReference>>
    /** Whether a commit has a reference, and if not, why such an attempt found none. */
    readonly referenceState: (attempt: ReferenceAttempt) => Effect.Effect<ReferenceState>
    /** Adds what the operator has computed. Returns false if the commit has the same reference. */
    readonly addReference: (key: ReferenceKey, reference: ModelReference) => Effect.Effect<boolean, DifferentReference>
    /** Remembers why an attempt found no reference: a code. Returns false if a cause was known. */
    readonly noteMissingReference: (attempt: ReferenceAttempt, code: string) => Effect.Effect<boolean>
    /** Results of the organization's earlier trials of the same configuration, newest first. */
    readonly earlierTrials: (
      orgId: OrgId,
      revision: Pick<RunRevision, "engineVersion" | "estimate" | "facts" | "id" | "settings">
    ) => Effect.Effect<
      ReadonlyArray<{
        /** The engine version of that trial, if it differs. */
        readonly otherEngine: string | null
        readonly suite: string
        readonly suiteVersion: number
        /** The engine's hash over all loaded tensors; null if it reported none. */
        readonly loadedChecksum: string | null
        readonly fingerprints: CheckReport["fingerprints"]
        readonly likelihood: ReadonlyArray<ReadonlyArray<number>> | null
      }>
    >
    /** The likelihoods that the revision's own trial stored; null if it stored none. */
    readonly likelihood: (
      orgId: OrgId,
      revision: RevisionId
    ) => Effect.Effect<{ readonly suiteVersion: number; readonly likelihood: ReadonlyArray<ReadonlyArray<number>> | null } | null>
    /** `row`: the result as it appears in the revision's checks, and therefore in its receipts. */
    readonly recordMeasured: (id: DeploymentId, orgId: OrgId, measured: Measured, row: Check | null) => Effect.Effect<boolean>
    readonly recordBenchmark: (id: DeploymentId, orgId: OrgId, benchmark: Benchmark, row: Check | null) => Effect.Effect<boolean>
    /**
     * Replaces the published endpoints of the run's revision and notifies gateways immediately. False if the run has no
     * revision, or if another operator leads.
     */
    readonly publishEndpoints: (id: DeploymentId, orgId: OrgId, endpoints: ReadonlyArray<PublishedPod>) => Effect.Effect<boolean>
    /**
     * Moves the run to `activated` in one transaction: the revision becomes active with its verification frozen, the
     * earlier one is superseded, the model refers to it, and the audit event is written. With `serve: false` the
     * revision stays `draft` and is only marked as verified. False if the run was not in `from`.
     */
    readonly activate: (input: { readonly id: DeploymentId; readonly orgId: OrgId; readonly from: Phase }) => Effect.Effect<boolean>
    /**
     * While the model moves to the run's revision: the requests that both revisions answered. None if the model cannot
     * return to the earlier one.
     */
    readonly moveAnswers: (id: DeploymentId, orgId: OrgId) => Effect.Effect<Option.Option<MoveAnswers>>
    /**
     * Makes an earlier revision of the model the serving one again, in one transaction, and writes the audit event with
     * the reason. False if the run's revision does not serve, or the model has already returned from the earlier one.
     */
    readonly moveBack: (input: { readonly id: DeploymentId; readonly orgId: OrgId; readonly to: RevisionId; readonly reason: string }) => Effect.Effect<boolean>
    /** Records the current activity of the run for the API. Does not notify the operator. */
    readonly recordProgress: (id: DeploymentId, orgId: OrgId, progress: RunProgress) => Effect.Effect<void>
    /** Records for the API how many engines the model has. Does not notify the operator. */
    readonly recordEngines: (modelId: ModelId, orgId: OrgId, engines: ModelEngines) => Effect.Effect<void>
    /**
     * The hub token of the user, for downloads. Null, for runs of applied objects, returns the token that the
     * organization shares.
     */
    readonly hubToken: (orgId: OrgId, userId: UserId | null) => Effect.Effect<Option.Option<Redacted.Redacted<string>>>
    /**
     * Records that the cluster no longer has objects of this finished run: `live` omits it from now on, unless it
     * serves.
     */
    readonly release: (id: DeploymentId, orgId: OrgId) => Effect.Effect<void>
  }
>()("seatrial/Runs") {
  static readonly layerSql = Layer.effect(
    Runs,
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const ids = yield* Ids
      const hubConnections = yield* HubConnections
      const addOne = addReference(sql)

      const usedUp = yield* makeUsedUp(sql)

      const { changes, live } = runChanges(sql)

      return Runs.of({
        ping: Effect.orDie(Effect.asVoid(sql`SELECT 1`)),
        observe: observeRun(sql),
        live: live.pipe(Effect.withSpan("Runs.live")),
        measuredStarts: measuredStarts(sql),
        earlierBenchmarks: earlierBenchmarks(sql),
        usedUp,
        modelLoads: modelLoads(sql),
        setReplicas: setReplicas(sql),
        reservations: listReservations(sql).pipe(Effect.withSpan("Runs.reservations")),
        changes,
        enter: enterPhase(sql, ids),
        recordScreening: recordScreening(sql, ids),
        noteWeights: noteWeights(sql),
        forgetWeights: forgetWeights(sql),
        recordEngineImage: recordEngineImage(sql),
        recordStart: recordStart(sql),
        noteNodeFault: noteNodeFault(sql),
        avoidedNodes: avoidedNodes(sql),
        recordChecks: recordChecks(sql),
        reference: Effect.fn("Runs.reference")(findReference(sql)),
        referenceState: Effect.fn("Runs.referenceState")(findReferenceState(sql)),
        addReference: Effect.fn("Runs.addReference")((key, reference) => addOne({ ...key, source: "operator", reference })),
        noteMissingReference: Effect.fn("Runs.noteMissingReference")(noteMissingReference(sql)),
        earlierTrials: earlierTrials(sql),
        likelihood: trialLikelihood(sql),
        recordMeasured: recordResult(sql, "measured", "measuring", Schema.encodeSync(Measured)),
        recordBenchmark: recordResult(sql, "benchmark", "benchmarking", Schema.encodeSync(Benchmark)),
        publishEndpoints: publishEndpoints(sql),
        activate: activateRun(sql, ids),
        moveAnswers: moveAnswers(sql),
        moveBack: moveBack(sql, ids),
        recordProgress: recordProgress(sql),
        recordEngines: recordEngines(sql),
        hubToken: Effect.fn("Runs.hubToken")((orgId, userId) => (userId === null ? hubConnections.findShared(orgId) : hubConnections.find(orgId, userId))),
        release: release(sql)
      })
    })
  )
}
