import { PgClient } from "@effect/sql-pg"
import { DeploymentId, Ids, ModelId, OrgId, Phase, ReplicaLimits, type ScalingRequest, type ServingRequest, type Source } from "@seatrial/domain"
import { Clock, Context, Effect, Layer, Option, Schema } from "effect"
import { SqlSchema } from "effect/sql"
import { adoptResource } from "./applied/adopt.ts"
import { cancelApplied } from "./applied/cancelApplied.ts"
import { lockResource } from "./applied/lock.ts"
import type { NamedModelRefused } from "./applied/NamedModelRefused.ts"
import { scaleApplied } from "./applied/scaleApplied.ts"
import type { ModelNameTaken } from "./Deployments.ts"
import { deleteModel } from "./models/deleteModel.ts"
import { leads, whileLeading } from "./OperatorTerms.ts"
import type { Allowance } from "./spending/Account.ts"
import { makeReadAccount } from "./spending/readAccount.ts"

/** The namespace and name of a `ModelDeployment` in the cluster. */
export interface ResourcePlace {
  readonly namespace: string
  readonly name: string
}

/** One specification of one object: a changed object has another generation, a recreated object has another uid. */
export interface ResourceVersion extends ResourcePlace {
  readonly uid: string
  readonly generation: number
}

const BindingRow = Schema.Struct({
  orgId: OrgId,
  orgSlug: Schema.String,
  uid: Schema.String,
  generation: Schema.BigInt,
  specHash: Schema.String,
  modelId: ModelId,
  /** True if the object names an existing model by ID; false if the model was created for the object. */
  namesModel: Schema.Boolean,
  repo: Schema.String,
  modelDeleted: Schema.Boolean,
  /** How many engines the object sets, as last recorded; null if it sets no number. */
  replicas: Schema.NullOr(Schema.Int),
  /** The limits for the autoscaler that the object sets, as last recorded; null if it sets none. */
  scaling: Schema.NullOr(ReplicaLimits),
  deploymentId: DeploymentId,
  phase: Phase
})

/** The model and the newest run of an object. */
export type Binding = Omit<typeof BindingRow.Type, "generation"> & { readonly generation: number }

export interface AdoptInput {
  readonly orgId: OrgId
  readonly resource: ResourceVersion
  /** SHA-256 of the specification, lower-case hexadecimal. */
  readonly specHash: string
  /** The existing model to deploy; null to use a model with the name of the object. */
  readonly modelId: ModelId | null
  readonly source: Source
  readonly serving: ServingRequest
  readonly serve: boolean
}

const OwnerRow = Schema.Struct({ orgId: OrgId, active: Schema.Boolean, firstPurchase: Schema.Boolean, spendLimited: Schema.Boolean })

/**
 * Whether an organization may deploy. `firstPurchase`: it has paid, and its billing is not suspended. `usedUp`: the
 * organization's allowance that is used up, or null.
 */
export interface ResourceOwner extends Omit<typeof OwnerRow.Type, "spendLimited"> {
  readonly usedUp: Allowance["kind"] | null
}

const resourceStatements = (sql: PgClient.PgClient) => {
  const findOwner = SqlSchema.findOneOption({
    Request: Schema.String,
    Result: OwnerRow,
    execute: (slug) => sql`
      SELECT id AS "orgId", status = 'active' AS active, first_purchase_at IS NOT NULL AND billing_suspended_at IS NULL AS "firstPurchase",
        spend_limited AS "spendLimited"
      FROM organizations WHERE slug = ${slug}`
  })
  // Looks up by namespace and name only, because the organization is not known yet.
  const findBinding = SqlSchema.findOneOption({
    Request: Schema.Struct({ namespace: Schema.String, name: Schema.String }),
    Result: BindingRow,
    execute: ({ name, namespace }) => sql`
      SELECT a.org_id AS "orgId", o.slug AS "orgSlug", a.uid, a.generation, a.spec_hash AS "specHash", a.model_id AS "modelId",
        a.names_model AS "namesModel", m.hf_repo AS repo,
        m.deleted_at IS NOT NULL AS "modelDeleted", a.replicas, a.scaling, a.deployment_id AS "deploymentId", d.phase
      FROM applied_resources a
      JOIN organizations o ON o.id = a.org_id
      JOIN models m ON m.org_id = a.org_id AND m.id = a.model_id
      JOIN deployments d ON d.org_id = a.org_id AND d.id = a.deployment_id
      WHERE a.namespace = ${namespace} AND a.name = ${name}`
  })
  const lockModel = SqlSchema.findOneOption({
    Request: Schema.Struct({ namespace: Schema.String, name: Schema.String }),
    Result: Schema.Struct({
      orgId: OrgId,
      id: ModelId,
      slug: Schema.String,
      status: Schema.String,
      visibility: Schema.String,
      hf_repo: Schema.String,
      revision_id: Schema.NullOr(Schema.String)
    }),
    execute: ({ name, namespace }) => sql`
      SELECT m.org_id AS "orgId", m.id, m.slug, m.status, m.visibility, m.hf_repo, m.active_revision_id AS revision_id
      FROM applied_resources a JOIN models m ON m.org_id = a.org_id AND m.id = a.model_id
      WHERE a.namespace = ${namespace} AND a.name = ${name} AND NOT a.names_model AND m.deleted_at IS NULL FOR UPDATE OF m`
  })
  return { findBinding, findOwner, lockModel }
}

/** Turns `ModelDeployment` objects from the cluster into deployments. */
export class AppliedResources extends Context.Service<
  AppliedResources,
  {
    readonly owner: (slug: string) => Effect.Effect<Option.Option<ResourceOwner>>
    readonly find: (place: ResourcePlace) => Effect.Effect<Option.Option<Binding>>
    /**
     * Returns the run for this version of the object, and creates it if needed, in one transaction that is safe to
     * repeat: the model if it is new, the run with its first phase, the idempotency record (uid and generation of the
     * object), the audit event as actor `system`, and the outbox row. An earlier unfinished run of the object is
     * canceled; a serving revision continues to serve. If the object names a model and omits ref or serving, they
     * default as in the API's create.
     */
    readonly adopt: (input: AdoptInput) => Effect.Effect<DeploymentId, ModelNameTaken | NamedModelRefused>
    /**
     * Binds the same specification to another version of the object, for example after the object was recreated. No run
     * is created.
     */
    readonly rebind: (version: ResourceVersion, specHash: string) => Effect.Effect<void>
    /**
     * Records the number of engines that the object sets, or its limits for the autoscaler, and gives them to its
     * model, with an audit event as actor `system`. Null: the object sets neither, and the model keeps what it has.
     */
    readonly scale: (place: ResourcePlace, scaling: ScalingRequest | null) => Effect.Effect<void>
    /**
     * Call this after the object was deleted: cancels its unfinished run, deletes its model and retires the serving
     * revision. A model that the object only named is not changed. False if the object had no binding.
     */
    readonly retire: (place: ResourcePlace) => Effect.Effect<boolean>
  }
>()("seatrial/AppliedResources") {
  static readonly layerSql = Layer.effect(
    AppliedResources,
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const ids = yield* Ids
      const readAccount = makeReadAccount(sql)
      const remove = deleteModel(sql, ids)
      const cancel = cancelApplied(sql)

      const { findBinding, findOwner, lockModel } = resourceStatements(sql)

      return AppliedResources.of({
        owner: Effect.fn("AppliedResources.owner")(function* (slug) {
          const row = yield* Effect.orDie(findOwner(slug))
          if (Option.isNone(row)) return Option.none()
          const { spendLimited, ...owner } = row.value
          const usedUp = spendLimited ? (yield* Effect.orDie(readAccount(owner.orgId))).usedUp() : undefined
          return Option.some({ ...owner, usedUp: usedUp?.kind ?? null })
        }),
        find: Effect.fn("AppliedResources.find")((place) =>
          Effect.orDie(findBinding(place)).pipe(Effect.map(Option.map((row) => ({ ...row, generation: Number(row.generation) }))))
        ),
        adopt: adoptResource(sql, ids),
        rebind: Effect.fn("AppliedResources.rebind")(function* ({ generation, name, namespace, uid }, specHash) {
          const at = new Date(yield* Clock.currentTimeMillis)
          yield* sql`
            WITH bound AS (
              UPDATE applied_resources SET uid = ${uid}, generation = ${generation}, updated_at = ${at}
              WHERE ${yield* leads(sql)} AND namespace = ${namespace} AND name = ${name} AND spec_hash = ${specHash}
              RETURNING deployment_id
            )
            SELECT pg_notify('deployments', deployment_id) FROM bound`.pipe(Effect.orDie)
        }),
        scale: scaleApplied(sql, ids),
        retire: Effect.fn("AppliedResources.retire")((place) =>
          Effect.gen(function* () {
            yield* lockResource(sql, place)
            const model = yield* lockModel(place)
            if (Option.isSome(model)) yield* remove(model.value.orgId, model.value, { actorKind: "system" })
            else yield* cancel(place, new Date(yield* Clock.currentTimeMillis), "Its ModelDeployment was deleted.")
            const deleted = yield* sql`DELETE FROM applied_resources WHERE namespace = ${place.namespace} AND name = ${place.name} RETURNING 1`
            return deleted.length > 0
          }).pipe((retiring) => whileLeading(sql, retiring), Effect.orDie)
        )
      })
    })
  )
}
