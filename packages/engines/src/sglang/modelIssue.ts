import { type EngineLoad, type KvCacheDtype, type ModelConfig, shapeOf } from "@seatrial/domain"
import { capabilityText, computeCapability } from "../computeCapability.ts"
import { quantizationIssue } from "../quantizationIssue.ts"
import { type OwnTypes, typeIssue } from "../typeIssue.ts"
import { ownTypes } from "./generated/architectures.ts"
import { sglangQuantization } from "./quantizationRules.ts"

type Card = EngineLoad["card"]

const own: OwnTypes = { version: sglangQuantization.version, types: ownTypes, architectures: new Set() }

/** Why SGLang 0.5.23 cannot serve a model on a GPU with any settings; null if it can. */
export const sglangModelIssue = (config: ModelConfig, card: Card): string | null => {
  const issue = typeIssue(own, config) ?? quantizationIssue(sglangQuantization, config, card.gpu_pool)
  if (issue !== null) return issue
  const has = computeCapability(card.gpu_pool)
  if (has !== null && has < 75) return `${sglangQuantization.version} needs a card of compute capability 7.5; ${card.gpu_pool} has ${capabilityText(has)}.`
  const sparse = shapeOf(config).layers.some((group) => group.kind === "latent" && group.index_bytes > 0)
  if (has !== null && has < 90 && sparse) {
    return `${sglangQuantization.version} needs a card of compute capability 9.0 for sparse latent attention; ${card.gpu_pool} has ${capabilityText(has)}.`
  }
  return null
}

/** Why the KV cache cannot have this type on a GPU; null if it can. */
export const sglangCacheIssue = (_: ModelConfig, dtype: KvCacheDtype, card: Card): string | null => {
  const has = computeCapability(card.gpu_pool)
  if (dtype === "auto" || has === null || has >= 80) return null
  return `${sglangQuantization.version} reads an 8-bit KV cache on cards of compute capability 8.0 and up; ${card.gpu_pool} has ${capabilityText(has)}.`
}
