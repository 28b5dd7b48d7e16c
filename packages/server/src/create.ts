import { Caller, NewModel, Redeploy, RefusedCode } from "@seatrial/api"
import {
  Commit,
  currentTraceparent,
  type DeploymentOperation,
  defaultModelName,
  derivePreview,
  hostClassProblem,
  ModelId,
  type ServingRequest,
  servingProblem,
  toV1Phase
} from "@seatrial/domain"
import { engines } from "@seatrial/engines"
import { Billing, type CreateInput, Deployments, HostClasses, type Operation } from "@seatrial/store"
import { Effect, Option, Schema } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { inputHash } from "./canonicalJson.ts"
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
const isRefusedCode = Schema.is(RefusedCode)

const has = (body: unknown, member: string): boolean => typeof body === "object" && body !== null && Object.hasOwn(body, member)
const ofNewModels = ["source", "model_name"] as const

/** The two kinds of body differ in whether they name a model; each is then decoded strictly, and what belongs to the other kind is named. */
const decodeCreate = Effect.fnUntraced(function* (body: unknown) {
  const namesModel = has(body, "model_id")
  const besides = namesModel ? ofNewModels.find((member) => has(body, member)) : undefined
  if (besides !== undefined) return yield* invalidBody(besides, `${besides} is for a new model: it cannot stand beside model_id.`)
  if (!namesModel && has(body, "ref")) return yield* invalidBody("ref", "ref stands beside model_id only: with a source it is source.ref.")
  const decoded: Decoded = namesModel ? { _tag: "Redeploy", body: yield* decodeRedeploy(body) } : { _tag: "NewModel", body: yield* decodeNewModel(body) }
  return decoded
})

/** The input as it is compared on a replay: decoded, with its defaults, and the `ref` as it was written. */
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

/** Makes a deployment, or gives the one that the idempotency key already stands for. */
export const createOperation = Effect.gen(function* () {
  const billing = yield* Billing
  const deployments = yield* Deployments
  const hostClasses = yield* HostClasses
  const { maxBodyBytes, requireFirstPurchase } = yield* ServerSettings

  const checkServing = Effect.fnUntraced(function* (serving: ServingRequest) {
    const { hold_seconds: _, ...looked } = serving
    if (Object.keys(looked).length === 0) return
    const classes = yield* hostClasses.list
    const unknown = hostClassProblem(serving, classes)
    if (unknown !== null) return yield* refusedAsPreviewed("host_class_unknown", unknown.message, unknown.param)
    const problem = servingProblem(serving, classes, engines)
    if (problem === null) return
    return yield* problem.kind === "invalid" ? invalidBody(problem.param, problem.message) : invalidParameter(problem.param, problem.message)
  })

  /**
   * What a preview would refuse, where nobody has to be asked: a full commit that the organization has deployed before. A redeploy that keeps its settings is not
   * looked at, since they are not known here.
   */
  const checkSource = Effect.fnUntraced(function* (decoded: Decoded, serving: ServingRequest) {
    const { orgId } = yield* Caller
    const ref = decoded._tag === "NewModel" ? decoded.body.source.ref : decoded.body.ref
    if (ref === undefined || !isCommit(ref) || (decoded._tag === "Redeploy" && Object.keys(serving).length === 0)) return
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

  return Effect.fnUntraced(function* (given: {
    readonly request: HttpServerRequest.HttpServerRequest
    readonly headers: { readonly "idempotency-key": string }
  }) {
    const caller = yield* Caller
    const decoded = yield* decodeCreate(yield* readJson(given.request, maxBodyBytes))
    const { serve = true, serving = {} } = decoded.body
    if (serve && !caller.scopes.has("models:write")) return yield* missingScope("models:write")
    const idempotencyKey = given.headers["idempotency-key"]
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
      // Whether the key is bound already shows when it is to be bound.
      onSuccess: (target) =>
        Effect.flatMap(currentTraceparent(given.request.headers.traceparent), (traceparent) =>
          deployments.create({ caller, idempotencyKey, inputHash: hash, target, serving, serve, traceparent })
        ),
      // What a first try was held to is not asked again: since then host classes, engines and the organization's account may have changed.
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
