import type {
  Benchmark,
  CheckReport,
  Commit,
  DeploymentId,
  Failure,
  Fit,
  Measured,
  ModelId,
  OrgId,
  Phase,
  RepositoryFacts,
  RevisionId,
  RevisionStatus,
  ServingRequest,
  ServingSettings,
  Source,
  UserId
} from "@seatrial/domain"
import { Context, type Effect, type Option, type Redacted, type Stream } from "effect"
import type { Endpoint } from "./Routes.ts"

/** The configuration revision that a run prepares, with what is known of it so far. */
export interface RunRevision {
  readonly id: RevisionId
  readonly status: RevisionStatus
  readonly facts: RepositoryFacts
  readonly settings: ServingSettings
  readonly engineVersion: string
  readonly estimate: Fit
  readonly checks: CheckReport | null
  readonly measured: Measured | null
  readonly benchmark: Benchmark | null
}

export interface PublishedEndpoint extends Endpoint {
  /** Whether a gateway has reached it. */
  readonly reachable: boolean
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
  readonly serve: boolean
  /** Whose hub connection is used. */
  readonly startedBy: UserId | null
  readonly createdAt: number
  readonly endedAt: number | null
  readonly revision: RunRevision | null
  /** The revision that the model serves now; null where it serves none. */
  readonly activeRevisionId: RevisionId | null
  readonly modelDeleted: boolean
  /** An older unfinished run of the same model, which goes first. */
  readonly olderRun: DeploymentId | null
  readonly endpoints: ReadonlyArray<PublishedEndpoint>
  readonly history: ReadonlyArray<{ readonly phase: Phase; readonly at: number; readonly reason: string | null }>
}

/** The operator's side of deployments. Every transition is one compare-and-set with its phase row in one transaction. */
export class Runs extends Context.Service<
  Runs,
  {
    readonly observe: (id: DeploymentId) => Effect.Effect<Option.Option<Run>>
    /** Runs that may need work: unfinished, and those whose revision serves or may still have objects in the cluster. */
    readonly live: Effect.Effect<ReadonlyArray<DeploymentId>>
    /** Ids of runs as they change (created, cancelled, moved, endpoints reached); after a lost connection all live ones again. */
    readonly changes: Stream.Stream<DeploymentId>
    /** False where the run is no longer in `from`: somebody else was first. */
    readonly enter: (input: {
      readonly id: DeploymentId
      readonly orgId: OrgId
      readonly from: Phase
      readonly to: Phase
      readonly reason: string
      readonly failure?: Failure
    }) => Effect.Effect<boolean>
    /** What screening found: makes the draft revision, once for a run. False where the run left `screening`. */
    readonly recordScreening: (input: {
      readonly id: DeploymentId
      readonly orgId: OrgId
      readonly facts: RepositoryFacts
      readonly settings: ServingSettings
      readonly engineVersion: string
      readonly estimate: Fit
    }) => Effect.Effect<boolean>
    /** False where the run is no longer in the phase that the result belongs to. */
    readonly recordChecks: (id: DeploymentId, orgId: OrgId, report: CheckReport) => Effect.Effect<boolean>
    readonly recordMeasured: (id: DeploymentId, orgId: OrgId, measured: Measured) => Effect.Effect<boolean>
    readonly recordBenchmark: (id: DeploymentId, orgId: OrgId, benchmark: Benchmark) => Effect.Effect<boolean>
    /** The pods that serve the run's revision now, replacing what was published of it; gateways hear of it at once. */
    readonly publishEndpoints: (id: DeploymentId, orgId: OrgId, endpoints: ReadonlyArray<Endpoint>) => Effect.Effect<void>
    /**
     * From `activating` to `activated` in one transaction: the revision becomes active with its verification frozen, the earlier one superseded, the model points to
     * it, the audit event is written. With `serve: false` the revision stays `draft` and is only marked verified. False where the run was not in `from`.
     */
    readonly activate: (input: { readonly id: DeploymentId; readonly orgId: OrgId; readonly from: Phase }) => Effect.Effect<boolean>
    /** Whether any run's revision of this commit and repository was materialized before is for the cluster to say; this is the hub token to fetch it with. */
    readonly hubToken: (orgId: OrgId, userId: UserId | null) => Effect.Effect<Option.Option<Redacted.Redacted<string>>>
    /** Full commits that some unfinished or serving revision needs. */
    readonly neededCommits: Effect.Effect<ReadonlyArray<{ readonly repo: string; readonly commit: Commit }>>
  }
>()("seatrial/Runs") {}
