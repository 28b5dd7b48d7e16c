import type {
  Deployment,
  DeploymentBucket,
  DeploymentDetail,
  DeploymentId,
  ModelId,
  OrgId,
  Phase,
  RevisionId,
  ServingRequest,
  Source,
  UserId
} from "@seatrial/domain"
import { Context, Data, type Effect, type Option } from "effect"
import type { Caller } from "./ApiKeys.ts"
import type { Page, PageRequest } from "./Page.ts"

/** The idempotency key was used with other input. */
export class IdempotencyKeyReused extends Data.TaggedError("IdempotencyKeyReused") {}
/** A replay, but the model has been deleted since. */
export class ModelDeleted extends Data.TaggedError("ModelDeleted") {}
/** The organisation has a model of that name. */
export class ModelNameTaken extends Data.TaggedError("ModelNameTaken")<{ readonly slug: string }> {}
/** The organisation has no such record. */
export class RecordNotFound extends Data.TaggedError("RecordNotFound") {}
/** The run is over. */
export class DeploymentFinished extends Data.TaggedError("DeploymentFinished")<{ readonly phase: Phase }> {}

export interface CreateInput {
  readonly caller: Caller
  readonly idempotencyKey: string
  /** SHA-256 of the canonical decoded input, lower-case hexadecimal. */
  readonly inputHash: string
  /** A new model from a source, or another run of a model that exists. */
  readonly target:
    | { readonly _tag: "NewModel"; readonly source: Source; readonly slug: string }
    | { readonly _tag: "Redeploy"; readonly modelId: ModelId; readonly ref: string | null }
  readonly serving: ServingRequest
  readonly serve: boolean
}

export interface Operation {
  readonly id: DeploymentId
  readonly modelId: ModelId
  readonly revisionId: RevisionId | null
  readonly phase: Phase
  /** Whether this is an earlier create's operation. */
  readonly replayed: boolean
}

/** Deployments as the API sees them; each statement names the organisation. */
export class Deployments extends Context.Service<
  Deployments,
  {
    /**
     * Makes the run, its first phase, the model where it is new, the idempotency record, the audit event and the operator's work in one transaction, or gives the
     * operation that the key already stands for. Of two at once the second waits and gets the first's.
     */
    readonly create: (input: CreateInput) => Effect.Effect<Operation, IdempotencyKeyReused | ModelDeleted | ModelNameTaken | RecordNotFound>
    readonly list: (orgId: OrgId, query: PageRequest & { readonly modelId?: string; readonly bucket?: DeploymentBucket }) => Effect.Effect<Page<Deployment>>
    readonly find: (orgId: OrgId, id: string) => Effect.Effect<Option.Option<DeploymentDetail>>
    /** Ends the run before anything else does, in one conditional update. */
    readonly cancel: (orgId: OrgId, id: string, by: UserId) => Effect.Effect<DeploymentId, RecordNotFound | DeploymentFinished>
  }
>()("seatrial/Deployments") {}
