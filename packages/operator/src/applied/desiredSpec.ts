import { createHash } from "node:crypto"
import { type ModelId, normalizedClass, type ServingRequest, type Source, sortedJson } from "@seatrial/domain"
import type { ModelDeploymentSpec } from "../resources/ModelDeployment.ts"

/** The content of an object's specification, in the terms of the API. */
export interface DesiredSpec {
  /** The model to revise; null if the object creates its own. */
  readonly modelId: ModelId | null
  readonly source: Source
  readonly serving: ServingRequest
  readonly serve: boolean
}

const servingOf = (serving: NonNullable<ModelDeploymentSpec["serving"]>): ServingRequest => ({
  ...(serving.runtime === undefined ? {} : { runtime: serving.runtime }),
  ...(serving.hostClass === undefined ? {} : { host_class: serving.hostClass }),
  ...(serving.hostClasses === undefined ? {} : normalizedClass({ host_class: serving.hostClasses })),
  ...(serving.maxContext === undefined ? {} : { max_context: serving.maxContext }),
  ...(serving.kvCacheDtype === undefined ? {} : { kv_cache_dtype: serving.kvCacheDtype }),
  ...(serving.holdSeconds === undefined ? {} : { hold_seconds: serving.holdSeconds }),
  ...(serving.yarn === undefined
    ? {}
    : { yarn: { factor: serving.yarn.factor, ...(serving.yarn.originalContext === undefined ? {} : { original_context: serving.yarn.originalContext }) } }),
  ...(serving.engineFlags === undefined ? {} : { engine_flags: serving.engineFlags })
})

export const toDesiredSpec = ({ modelId, serve = true, serving = {}, source }: ModelDeploymentSpec): DesiredSpec => ({
  modelId: modelId ?? null,
  source: { kind: "model_hub", repo: source.repo, ...(source.ref === undefined ? {} : { ref: source.ref }) },
  serving: servingOf(serving),
  serve
})

/**
 * SHA-256 (lowercase hexadecimal) of a specification. The order of fields and the defaults of the API server do not
 * change it.
 */
export const desiredSpecHash = ({ modelId, ...specification }: DesiredSpec): string =>
  createHash("sha256")
    .update(sortedJson(modelId === null ? specification : { ...specification, modelId }))
    .digest("hex")
