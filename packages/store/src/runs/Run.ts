import type {
  Benchmark,
  CheckReport,
  Choices,
  DeploymentId,
  Failure,
  Fit,
  Measured,
  ModelCapabilities,
  ModelEngines,
  ModelId,
  OrgId,
  Phase,
  ReplicaLimits,
  RepositoryFacts,
  RevisionId,
  RevisionStatus,
  RunProgress,
  ServingRequest,
  ServingSettings,
  Source,
  UserId
} from "@seatrial/domain"
import type { Endpoint } from "../Routes.ts"

/** One way to serve a run's model: a host class with everything that depends on it. */
export interface ServingPlan {
  readonly settings: ServingSettings
  readonly engineVersion: string
  /** The engine image of the host class at the time of screening. */
  readonly engineImage: string
  readonly estimate: RunRevision["estimate"]
  readonly capabilities: ModelCapabilities
}

/** The configuration revision that a run prepares, with its results so far. */
export interface RunRevision {
  readonly id: RevisionId
  readonly status: RevisionStatus
  readonly facts: RepositoryFacts
  readonly settings: ServingSettings
  readonly engineVersion: string
  /** The image that it is tried and served with; null until its engine runs. */
  readonly engineImage: string | null
  /**
   * `sha256:...` of that image, because an image name can later refer to another image. Null until its engine runs, and
   * if the node does not report it.
   */
  readonly engineDigest: string | null
  readonly estimate: Fit & {
    readonly chosen_by?: Choices
    /** `sequence`: the KV cache of one sequence of `max_context` tokens, in bytes per GPU. */
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

/** A store that contains all files of a commit. */
export interface StoredWeights {
  /** The name of the store, as recorded by the download. */
  readonly store: string
  /** SHA-256 of the list of files. */
  readonly manifest: string
  /** The run whose download verified the files, and when, Unix milliseconds. */
  readonly verifiedBy: DeploymentId
  readonly verifiedAt: number
}

/** The serving revision of a run's model. */
export interface Predecessor {
  /** The run that owns its engine. */
  readonly run: DeploymentId
  readonly commit: string
  readonly hostClass: string
  readonly gpus: number
  /** Its engines that a gateway has reached. */
  readonly replicas: number
  /** Engines of revisions before it that still answer, while the model moves to it. Absent: none. */
  readonly earlier?: number
  /** Whether it gets no requests because its answers differ from the verified ones. */
  readonly differs?: boolean
}

/** Everything that Postgres stores about one run, as input of the operator's decisions. Times are Unix milliseconds. */
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
  /**
   * Who chose each setting that the request keeps from the model's earlier settings; null if the caller sent the
   * settings.
   */
  readonly keptChoices: Choices | null
  readonly serve: boolean
  /** The user whose hub connection is used. */
  readonly startedBy: UserId | null
  readonly createdAt: number
  /** The trace context of the create request, in the W3C `traceparent` format. */
  readonly traceparent: string | null
  readonly endedAt: number | null
  readonly revision: RunRevision | null
  /**
   * The serving options that the request permits, in order of preference; the revision has the first. Empty if there is
   * only one option, or if the run has left the queue.
   */
  readonly placements: ReadonlyArray<ServingPlan>
  /** The model's serving revision; null if none serves. */
  readonly activeRevisionId: RevisionId | null
  readonly modelDeleted: boolean
  readonly modelDisabled: boolean
  /** How many engines serve the model. Absent in records of earlier versions: one. */
  readonly replicas?: number
  /** The limits between which the autoscaler sets `replicas`; null or absent if it does not. */
  readonly scaling?: { readonly minReplicas: number; readonly maxReplicas: number; readonly target: number } | null
  /** What was last recorded about its engines; absent or null before that. */
  readonly engines?: ModelEngines | null
  /** The run whose engine serves the revision: this run, or the earlier run whose verified revision it reuses. */
  readonly engineRun: DeploymentId
  /** Other unfinished runs of the same revision. */
  readonly reusedBy: ReadonlyArray<DeploymentId>
  /** Maximum number of GPUs that the organization may hold; null: no limit. */
  readonly gpuLimit: number | null
  /** Whether its organization is prepaid, or the organization or one of its keys has a spend limit. */
  readonly spendLimited: boolean
  /** Since when its organization's billing is suspended; null if it is not. */
  readonly billingSuspendedAt: number | null
  /** The oldest unfinished run of the same model that is older than this run; it goes first. */
  readonly olderRun: DeploymentId | null
  readonly endpoints: ReadonlyArray<PublishedEndpoint>
  /**
   * While the model moves away from the run's revision: the pods of newer revisions that a gateway has reached. Null or
   * absent if the revision leaves at once.
   */
  readonly newer?: ReadonlyArray<string> | null
  /** Engines of earlier revisions that a gateway has reached, while the model moves to the run's revision. */
  readonly earlier?: number
  /** Whether the run took over the GPUs of the model's serving revision. */
  readonly replaces: boolean
  /** An unfinished run of the model that took over this run's GPUs; only set if this run's revision serves. */
  readonly replacedBy: DeploymentId | null
  /** The model's serving revision if it differs from the run's revision. */
  readonly predecessor: Predecessor | null
  /** The run that the model's applied object shows; null if this run does not serve, or shows its state itself. */
  readonly shownBy: DeploymentId | null
  /**
   * The newest runs of the model that verified a revision without serving it, and how long it holds its GPUs after
   * `endedAt`. Only read until the run itself has GPUs.
   */
  readonly candidates: ReadonlyArray<{ readonly run: DeploymentId; readonly gpus: number; readonly endedAt: number; readonly holdSeconds: number | null }>
  /** When gateways last reported a request for its revision. Only reported for revisions with `hold_seconds`. */
  readonly lastUsedAt: number | null
  /**
   * Requests in progress on its revision. Only counted if the revision gives up its engine (superseded, replaced, idle,
   * of a deleted or disabled model, or of an organization that may run out of funds); otherwise 0.
   */
  readonly inFlight: number
  /**
   * The `ModelDeployment` object that the run was created for. `current` is null if the object now has another run, or
   * was deleted. `replicas`, `scaling`: the number of engines or the limits that it sets; absent if it sets none.
   */
  readonly applied: {
    readonly namespace: string
    readonly name: string
    /** `namesModel`: whether the object names an existing model by ID. */
    readonly current: {
      readonly uid: string
      readonly generation: number
      readonly namesModel: boolean
      readonly replicas?: number
      readonly scaling?: ReplicaLimits
    } | null
  } | null
  /** Stores with the files of its commit; only read until its engine is ready. */
  readonly storedWeights: ReadonlyArray<StoredWeights>
  /** Nodes that it was tried on, with the problems that may have been the node's fault. */
  readonly nodeFaults: ReadonlyArray<{ readonly node: string; readonly code: string; readonly at: number }>
  readonly history: ReadonlyArray<{ readonly phase: Phase; readonly at: number; readonly reason: string | null }>
  /** The last recorded progress and its time; null if none was recorded. */
  readonly progress: (RunProgress & { readonly at: number }) | null
}
