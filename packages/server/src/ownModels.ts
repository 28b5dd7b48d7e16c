import { Caller, Empty } from "@seatrial/api"
import { FixedReplicas, ReplicaLimits } from "@seatrial/domain"
import { Billing, type ModelOwner, OwnModels } from "@seatrial/store"
import { Effect, Option, Predicate } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { decodeBody, readJson } from "./jsonBody.ts"
import { firstPurchaseRequired, modelManaged, modelNotActivated, notFound, scalingManaged, usedUp } from "./publicErrors.ts"
import { ServerSettings } from "./ServerSettings.ts"

const decodeEmpty = decodeBody(Empty)
const decodeFixed = decodeBody(FixedReplicas)
const decodeLimits = decodeBody(ReplicaLimits)
/** Decodes the form that the body has members of, so that an error names the right member. */
const decodeScaling = (body: unknown) =>
  Predicate.isObject(body) && ["min_replicas", "max_replicas", "target"].some((name) => name in body) ? decodeLimits(body) : decodeFixed(body)
const noContent = HttpServerResponse.empty({ status: 204 })

interface ModelPath {
  readonly params: { readonly id: string }
}

/** Operations that change an organization's own models. */
export const ownModelChanges = Effect.gen(function* () {
  const models = yield* OwnModels
  const billing = yield* Billing
  const { maxBodyBytes, requireFirstPurchase } = yield* ServerSettings

  /** An enabled model gets its engine back, which costs money like a deployment. */
  const checkFunds = Effect.gen(function* () {
    const { firstPurchase, orgId, spendLimited } = yield* Caller
    if (requireFirstPurchase && !firstPurchase) return yield* firstPurchaseRequired
    const spent = spendLimited ? yield* billing.usedUp(orgId) : Option.none()
    if (Option.isSome(spent)) return yield* usedUp(spent.value.kind)
  })

  const setStatus = (change: (typeof models)["disable"], costsMoney: boolean) =>
    Effect.fnUntraced(function* ({ params, request }: ModelPath & { readonly request: HttpServerRequest.HttpServerRequest }) {
      const owner: ModelOwner = yield* Caller
      const body = yield* readJson(request, maxBodyBytes)
      if (body !== undefined) yield* decodeEmpty(body)
      if (costsMoney) yield* checkFunds
      yield* change(owner, params.id).pipe(Effect.catchTags({ ModelNotFound: () => notFound, ModelServesNothing: () => modelNotActivated }))
      return noContent
    })

  return {
    disable: setStatus(models.disable, false),
    enable: setStatus(models.enable, true),
    getScaling: Effect.fnUntraced(function* ({ params }: ModelPath) {
      const owner: ModelOwner = yield* Caller
      return yield* models.scaling(owner, params.id).pipe(Effect.catchTag("ModelNotFound", () => notFound))
    }),
    setScaling: Effect.fnUntraced(function* ({ params, request }: ModelPath & { readonly request: HttpServerRequest.HttpServerRequest }) {
      const owner: ModelOwner = yield* Caller
      const scaling = yield* decodeScaling(yield* readJson(request, maxBodyBytes))
      return yield* models.scale(owner, params.id, scaling).pipe(Effect.catchTags({ ModelNotFound: () => notFound, ModelManaged: scalingManaged }))
    }),
    getLoad: Effect.fnUntraced(function* ({ params }: ModelPath) {
      const owner: ModelOwner = yield* Caller
      return yield* models.load(owner, params.id).pipe(Effect.catchTag("ModelNotFound", () => notFound))
    }),
    remove: Effect.fnUntraced(function* ({ params }: ModelPath) {
      const owner: ModelOwner = yield* Caller
      yield* models
        .remove(owner, params.id)
        .pipe(Effect.catchTags({ ModelNotFound: () => notFound, ModelManaged: ({ name, namespace }) => modelManaged(namespace, name) }))
      return noContent
    })
  }
})
