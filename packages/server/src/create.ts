import { Caller, NewModel, Redeploy, RefusedCode } from "@seatrial/api"
import {
  Commit,
  currentTraceparent,
  type DeploymentOperation,
  defaultModelName,
  derivePreview,
  hostClassProblem,
  ModelId,
  normalizedClass,
  type ServingRequest,
  servingProblem,
  toV1Phase
} from "@seatrial/domain"
import { engines } from "@seatrial/engines"
import { Billing, type CreateInput, Deployments, HostClasses, type Operation } from "@seatrial/store"
import { Effect, Option, Schema } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { inputHash } from "./inputHash.ts"
import { decodeBody, readJson } from "./jsonBody.ts"
import {
  firstPurchaseRequired,
  idempotencyKeyReused,
  invalidBody,
  invalidParameter,
  missingScope,
  modelDeleted,
  modelNameTaken,
  modelNotFound,
  refusedAsPreviewed,
  usedUp
} from "./publicErrors.ts"
import { ServerSettings } from "./ServerSettings.ts"

const decodeNewModel = decodeBody(NewModel)
const decodeRedeploy = decodeBody(Redeploy)
const decodeModelId = Schema.decodeUnknownOption(ModelId)

type Decoded = { readonly _tag: "NewModel"; readonly body: NewModel } | { readonly _tag: "Redeploy"; readonly body: Redeploy }

const isCommit = Schema.is(Commit)

/** The commit that a create names; null if it names none, or a branch or tag. */
const commitOf = (decoded: Decoded): Commit | null => {
  const ref = decoded._tag === "NewModel" ? decoded.body.source.ref : decoded.body.ref
  return ref !== undefined && isCommit(ref) ? ref : null
}

const isRefusedCode = Schema.is(RefusedCode)

const has = (body: unknown, member: string): boolean => typeof body === "object" && body !== null && Object.hasOwn(body, member)
const newModelMembers = ["source", "model_name"] as const

/**
 * Decodes the body strictly: as a redeploy if it has `model_id`, otherwise as a new model. A member of the other kind
 * is reported by name.
 */
const decodeCreate = Effect.fnUntraced(function* (body: unknown) {
  const isRedeploy = has(body, "model_id")
  const conflict = isRedeploy ? newModelMembers.find((member) => has(body, member)) : undefined
  if (conflict !== undefined) return yield* invalidBody(conflict, `${conflict} is only for a new model. Remove it, or remove model_id.`)
  if (!isRedeploy && has(body, "ref")) return yield* invalidBody("ref", "ref requires model_id. With a source, use source.ref.")
  const decoded: Decoded = isRedeploy ? { _tag: "Redeploy", body: yield* decodeRedeploy(body) } : { _tag: "NewModel", body: yield* decodeNewModel(body) }
  return decoded
})

/** The input as a replay compares it: decoded, with defaults, and with `ref` as the caller sent it. */
const normalized = (decoded: Decoded, serving: ServingRequest, serve: boolean): unknown =>
  decoded._tag === "NewModel"
    ? { source: decoded.body.source, model_name: decoded.body.model_name ?? defaultModelName(decoded.body.source.repo), serving, serve }
    : { model_id: decoded.body.model_id, ref: decoded.body.ref ?? null, serving, serve }

const targetOf = Effect.fnUntraced(function* (decoded: Decoded) {
  if (decoded._tag === "NewModel") {
    const { model_name, source } = decoded.body
    const target: CreateInput["target"] = { _tag: "NewModel", source, slug: model_name ?? defaultModelName(source.repo) }
    return target
  }
  const modelId = decodeModelId(decoded.body.model_id)
  if (Option.isNone(modelId)) return yield* modelNotFound
  const target: CreateInput["target"] = { _tag: "Redeploy", modelId: modelId.value, ref: decoded.body.ref ?? null }
  return target
})

const answer = ({ id, modelId, phase, replayed, revisionId }: Operation) => {
  const status_url = `/v1/deployments/${id}`
  const body: DeploymentOperation = { id, object: "deployment", model_id: modelId, revision_id: revisionId, status: toV1Phase(phase), status_url }
  return HttpServerResponse.jsonUnsafe(body, {
    status: replayed ? 200 : 201,
    headers: replayed ? { location: status_url, "idempotent-replayed": "true" } : { location: status_url }
  })
}

/** The checks of the serving settings and the source, which a create shares with previews. */
const inputChecks = Effect.gen(function* () {
  const deployments = yield* Deployments
  const hostClasses = yield* HostClasses

  const checkServing = Effect.fnUntraced(function* (serving: ServingRequest) {
    const { hold_seconds: _, ...checked } = serving
    if (Object.keys(checked).length === 0) return
    const classes = yield* hostClasses.list
    const unknown = hostClassProblem(serving, classes)
    if (unknown !== null) return yield* refusedAsPreviewed("host_class_unknown", unknown.message, unknown.param)
    const problem = servingProblem(serving, classes, engines)
    if (problem === null) return
    return yield* problem.kind === "invalid" ? invalidBody(problem.param, problem.message) : invalidParameter(problem.param, problem.message)
  })

  /**
   * Refuses what a preview would refuse, if the hub is not needed for that: a full commit that the organization has
   * already deployed. Skips a redeploy that keeps its settings, because the settings are not known here.
   */
  const checkSource = Effect.fnUntraced(function* (decoded: Decoded, serving: ServingRequest) {
    const { orgId } = yield* Caller
    const ref = commitOf(decoded)
    if (ref === null || (decoded._tag === "Redeploy" && Object.keys(serving).length === 0)) return
    const of = decoded._tag === "NewModel" ? { repo: decoded.body.source.repo } : { modelId: decoded.body.model_id }
    const facts = yield* deployments.knownFacts(orgId, of, ref)
    if (Option.isNone(facts)) return
    const classes = yield* hostClasses.list
    if (classes.length === 0) return
    const calibrations = yield* deployments.measuredStarts(orgId, facts.value.config.architecture)
    const preview = derivePreview({ facts: facts.value, ref, request: serving, hostClasses: classes, engines, calibrations })
    if (preview.kind === "derived" || !isRefusedCode(preview.reason.code)) return
    const { reason, remedy } = preview
    return yield* refusedAsPreviewed(
      preview.reason.code,
      `${reason.message} ${remedy.message}`,
      reason.code === "context_too_long" ? "serving.max_context" : null
    )
  })

  return { checkServing, checkSource }
})

/** Creates a deployment, or returns the existing one of the idempotency key. */
export const createOperation = Effect.gen(function* () {
  const billing = yield* Billing
  const deployments = yield* Deployments
  const { checkServing, checkSource } = yield* inputChecks
  const { maxBodyBytes, requireFirstPurchase } = yield* ServerSettings

  return Effect.fnUntraced(function* (input: {
    readonly request: HttpServerRequest.HttpServerRequest
    readonly headers: { readonly "idempotency-key": string }
  }) {
    const caller = yield* Caller
    const decoded = yield* decodeCreate(yield* readJson(input.request, maxBodyBytes))
    const { serve = true } = decoded.body
    const serving = normalizedClass(decoded.body.serving ?? {})
    if (serve && !caller.scopes.has("models:write")) return yield* missingScope("models:write")
    const idempotencyKey = input.headers["idempotency-key"]
    const hash = inputHash(normalized(decoded, serving, serve))
    const check = Effect.gen(function* () {
      yield* checkServing(serving)
      yield* checkSource(decoded, serving)
      if (requireFirstPurchase && !caller.firstPurchase) return yield* firstPurchaseRequired
      const spent = caller.spendLimited ? yield* billing.usedUp(caller.orgId) : Option.none()
      if (Option.isSome(spent)) return yield* usedUp(spent.value.kind)
      return yield* targetOf(decoded)
    })
    const operation = yield* Effect.matchEffect(check, {
      // `create` itself detects a key that is already in use.
      onSuccess: (target) =>
        Effect.flatMap(currentTraceparent(input.request.headers.traceparent), (traceparent) =>
          deployments.create({ caller, idempotencyKey, inputHash: hash, target, serving, serve, traceparent })
        ),
      // A replay is not checked again: host classes, engines and the organization's account may have changed since the
      // first attempt.
      onFailure: (refused) =>
        Effect.flatMap(
          deployments.findOperation(caller.orgId, idempotencyKey, hash),
          Option.match({ onNone: () => Effect.fail(refused), onSome: Effect.succeed })
        )
    }).pipe(
      Effect.catchTags({
        IdempotencyKeyReused: () => idempotencyKeyReused,
        ModelDeleted: () => modelDeleted,
        ModelNameTaken: ({ slug }) => modelNameTaken(slug),
        RecordNotFound: () => modelNotFound
      })
    )
    return answer(operation)
  })
})
