import { Caller, type DeploymentsQuery } from "@seatrial/api"
import { type Deployment, type DeploymentDetail, DeploymentId, type DeploymentProgress, foldV1, ModelId, toV1Phase } from "@seatrial/domain"
import { Deployments } from "@seatrial/store"
import { Effect, Option, Schema } from "effect"
import { HttpServerResponse } from "effect/http"
import { emptyPage, pageResponses } from "./lists.ts"
import { notFound } from "./publicErrors.ts"

/** How a path family renders deployments. */
export interface DeploymentFamily {
  readonly row: (row: Deployment) => unknown
  readonly detail: (detail: DeploymentDetail) => unknown
}

/** The org family has the full name of every phase. */
export const orgFamily: DeploymentFamily = { row: (row) => row, detail: (detail) => detail }

const v1History = ({ phases }: DeploymentDetail) => foldV1(phases.map(({ at, status }) => ({ phase: status, at })))

/** The `/v1` family has fewer phase names. Consecutive phases with the same name are merged. */
export const v1Family: DeploymentFamily = {
  row: (row) => ({ ...row, status: toV1Phase(row.status) }),
  detail: (detail) => ({ ...detail, status: toV1Phase(detail.status), phases: v1History(detail).map(({ at, phase }) => ({ status: phase, at })) })
}

const isDeploymentId = Schema.is(DeploymentId)
const isModelId = Schema.is(ModelId)

/** Operations that read deployments. */
export const deploymentReads = Effect.gen(function* () {
  const deployments = yield* Deployments
  const respondWithPage = yield* pageResponses

  const find = Effect.fnUntraced(function* (id: string) {
    const { orgId } = yield* Caller
    const detail = isDeploymentId(id) ? yield* deployments.find(orgId, id) : Option.none()
    return Option.isNone(detail) ? yield* notFound : detail.value
  })

  return {
    list:
      (operation: string, family: DeploymentFamily) =>
      ({ query }: { readonly query: DeploymentsQuery }) =>
        respondWithPage(
          operation,
          query,
          (orgId, page) => {
            const { model_id: modelId, status: bucket } = query
            if (modelId !== undefined && !isModelId(modelId)) return Effect.succeed(emptyPage)
            return deployments.list(orgId, { ...page, ...(modelId === undefined ? {} : { modelId }), ...(bucket === undefined ? {} : { bucket }) })
          },
          family.row
        ),
    get: (family: DeploymentFamily) =>
      Effect.fnUntraced(function* ({ params }: { readonly params: { readonly id: string } }) {
        return HttpServerResponse.jsonUnsafe(family.detail(yield* find(params.id)))
      }),
    events: Effect.fnUntraced(function* ({ params }: { readonly params: { readonly id: string } }) {
      const detail = yield* find(params.id)
      const data = v1History(detail).map(({ at, phase }) => ({ phase, entered_at: at }))
      return HttpServerResponse.jsonUnsafe({ deployment_id: detail.id, data })
    }),
    progress: Effect.fnUntraced(function* ({ params: { id } }: { readonly params: { readonly id: string } }) {
      const { orgId } = yield* Caller
      const progress = isDeploymentId(id) ? yield* deployments.progress(orgId, id) : Option.none()
      if (Option.isNone(progress)) return yield* notFound
      const { download, message, phase, queue, updatedAt: updated_at } = progress.value
      const status = toV1Phase(phase)
      const body: DeploymentProgress = { deployment_id: id, object: "deployment_progress", status, message, queue, download, updated_at }
      return HttpServerResponse.jsonUnsafe(body)
    })
  }
})
