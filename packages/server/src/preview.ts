import { Caller, type PreviewPayload, PreviewPayload as PreviewSchema } from "@seatrial/api"
import { derivePreview, type Preview, refusedPreview, servingProblem } from "@seatrial/domain"
import { engines } from "@seatrial/engines"
import { Hub } from "@seatrial/hub"
import { Deployments, HostClasses, HubConnections } from "@seatrial/store"
import { Effect } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { decodeBody, readJson } from "./jsonBody.ts"
import { invalidBody, invalidParameter, unavailable } from "./publicErrors.ts"
import { ServerSettings } from "./ServerSettings.ts"

const decodePayload = decodeBody(PreviewSchema)

/** `Retry-After` seconds of an unavailable hub that does not send its own. */
const hubRetrySeconds = 5

/**
 * Reads the repository as the user who created the key, and reports whether and how it can be served. Creates nothing.
 */
export const previewOperation = Effect.gen(function* () {
  const connections = yield* HubConnections
  const hostClasses = yield* HostClasses
  const deployments = yield* Deployments
  const hub = yield* Hub
  const { maxBodyBytes } = yield* ServerSettings

  const inspect = Effect.fnUntraced(function* ({ serving = {}, source }: PreviewPayload) {
    const classes = yield* hostClasses.list
    const problem = servingProblem(serving, classes, engines)
    if (problem !== null)
      return yield* problem.kind === "invalid" ? invalidBody(problem.param, problem.message) : invalidParameter(problem.param, problem.message)
    const { orgId, userId } = yield* Caller
    const token = yield* connections.find(orgId, userId)
    const ref = source.ref ?? null
    return yield* hub.inspect({ repo: source.repo, ref: source.ref }, token, "few").pipe(
      Effect.flatMap((facts) =>
        Effect.map(
          Effect.all([deployments.measuredStarts(orgId, facts.config.architecture), deployments.gpuLimit(orgId), hostClasses.capacities], { concurrency: 3 }),
          ([calibrations, gpuLimit, capacities]): Preview =>
            derivePreview({ facts, ref, request: serving, hostClasses: classes, engines, calibrations, gpuLimit, capacities })
        )
      ),
      Effect.catchTags({
        HubRefusal: ({ code, commit, message, remedy }) =>
          Effect.succeed<Preview>(refusedPreview({ kind: "model_hub", repo: source.repo, ref, commit }, code, message, remedy)),
        HubUnavailable: ({ message, retryAfter }) =>
          unavailable(message, retryAfter === undefined ? hubRetrySeconds : Math.max(1, Math.ceil(retryAfter / 1000)))
      })
    )
  })

  return Effect.fnUntraced(function* ({ request }: { readonly request: HttpServerRequest.HttpServerRequest }) {
    const payload = yield* decodePayload(yield* readJson(request, maxBodyBytes))
    return HttpServerResponse.jsonUnsafe(yield* inspect(payload))
  })
})
