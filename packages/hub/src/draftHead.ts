import { Predicate } from "effect"

type Json = Readonly<Record<PropertyKey, unknown>>

/** Architectures that only draft tokens for another model, by the names of their trainers, with a description. */
const architectures: ReadonlyArray<readonly [name: RegExp, what: string]> = [
  [/eagle-?3|Eagle3/i, "an EAGLE-3 head"],
  [/eagle(?!2_5_VL)/i, "an EAGLE head"],
  [/medusa/i, "a set of Medusa heads"],
  [/mlpspeculator/i, "an MLP speculator"],
  [/dflash|dspark|domino/i, "a block-drafting head"],
  [/(?:mtp|nextn)(?:model|forcausallm)?$/i, "a multi-token prediction head"],
  [/speculator|draftmodel|assistantmodel$/i, "a speculative head"]
]

/** Members of a configuration that no complete model has. */
const members: Readonly<Record<string, string>> = {
  medusa_num_heads: "a set of Medusa heads",
  eagle_config: "an EAGLE head",
  draft_vocab_size: "an EAGLE-3 head",
  speculators_config: "a speculative head",
  speculators_model_type: "a speculative head"
}

/** The model that a head drafts for, if the configuration names it. */
const verifierOf = (config: Json): string | null => {
  const speculators = config.speculators_config
  const verifier = Predicate.isObject(speculators) ? speculators.verifier : undefined
  const verifierName = Predicate.isObject(verifier) ? verifier.name_or_path : config.base_model_name_or_path
  return typeof verifierName === "string" && /^[\w.-]{1,96}\/[\w.-]{1,96}$/.test(verifierName) ? verifierName : null
}

/**
 * A description of a repository that holds only a draft head for another model, as the rest of a sentence; null for all
 * others.
 */
export const draftHead = (config: Json): string | null => {
  const architectureNames = Array.isArray(config.architectures) ? config.architectures.filter((name) => typeof name === "string") : []
  const architecture = architectures.find(([pattern]) => architectureNames.some((name) => pattern.test(name)))?.[1]
  const member = Object.entries(members).find(([name]) => config[name] !== undefined && config[name] !== null)?.[1]
  const what = architecture ?? member
  if (what === undefined) return null
  const verifier = verifierOf(config)
  return `${what} that drafts tokens for ${verifier ?? "another model"}, and holds no model of its own`
}
