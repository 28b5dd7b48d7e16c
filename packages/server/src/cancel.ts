import { Caller, Empty } from "@seatrial/api"
import { DeploymentId } from "@seatrial/domain"
import { Deployments } from "@seatrial/store"
import { Effect, Schema } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { decodeBody, readJson } from "./jsonBody.ts"
import { deploymentFinished, notFound } from "./publicErrors.ts"
import { ServerSettings } from "./ServerSettings.ts"

const isDeploymentId = Schema.is(DeploymentId)

const decodeEmpty = decodeBody(Empty)

/** Cancels a run. */
export const cancelOperation = Effect.gen(function* () {
  const deployments = yield* Deployments
  const { maxBodyBytes } = yield* ServerSettings

  return Effect.fnUntraced(function* ({
    params,
    request
  }: {
    readonly params: { readonly id: string }
    readonly request: HttpServerRequest.HttpServerRequest
  }) {
    const { orgId, userId } = yield* Caller
    const body = yield* readJson(request, maxBodyBytes)
    if (body !== undefined) yield* decodeEmpty(body)
    if (!isDeploymentId(params.id)) return yield* notFound
    const id = yield* deployments.cancel(orgId, params.id, userId).pipe(
      Effect.catchTags({
        RecordNotFound: () => notFound,
        DeploymentFinished: ({ phase }) => deploymentFinished(phase)
      })
    )
    return HttpServerResponse.jsonUnsafe({ id, cancelled: true })
  })
})
