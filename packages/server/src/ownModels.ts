import { Caller, Empty } from "@seatrial/api"
import { type ModelOwner, OwnModels } from "@seatrial/store"
import { Effect } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { decodeBody, readJson } from "./jsonBody.ts"
import { modelManaged, modelNotActivated, notFound } from "./publicErrors.ts"
import { ServerSettings } from "./ServerSettings.ts"

const decodeEmpty = decodeBody(Empty)
const noContent = HttpServerResponse.empty({ status: 204 })

interface ModelPath {
  readonly params: { readonly id: string }
}

/** Operations that change an organization's own models. */
export const ownModelChanges = Effect.gen(function* () {
  const models = yield* OwnModels
  const { maxBodyBytes } = yield* ServerSettings

  const setStatus = (change: (typeof models)["disable"]) =>
    Effect.fnUntraced(function* ({ params, request }: ModelPath & { readonly request: HttpServerRequest.HttpServerRequest }) {
      const owner: ModelOwner = yield* Caller
      const body = yield* readJson(request, maxBodyBytes)
      if (body !== undefined) yield* decodeEmpty(body)
      yield* change(owner, params.id).pipe(Effect.catchTags({ ModelNotFound: () => notFound, ModelServesNothing: () => modelNotActivated }))
      return noContent
    })

  return {
    disable: setStatus(models.disable),
    enable: setStatus(models.enable),
    remove: Effect.fnUntraced(function* ({ params }: ModelPath) {
      const owner: ModelOwner = yield* Caller
      yield* models
        .remove(owner, params.id)
        .pipe(Effect.catchTags({ ModelNotFound: () => notFound, ModelManaged: ({ name, namespace }) => modelManaged(namespace, name) }))
      return noContent
    })
  }
})
