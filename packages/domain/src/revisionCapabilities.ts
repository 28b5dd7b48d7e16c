import { modelCapabilities } from "./capabilities.ts"
import { withoutParameters } from "./capabilityWithdrawals.ts"
import type { ModelCapabilities } from "./catalog.ts"
import type { EngineContract } from "./engineContract.ts"
import type { RepositoryFacts } from "./repository.ts"
import type { ServingSettings } from "./serving.ts"

/** The capabilities of a revision by its engine's contract and its settings, before a trial has confirmed them. */
export const revisionCapabilities = (
  { imageInput, served, unserved }: Pick<EngineContract, "imageInput" | "served" | "unserved">,
  facts: Pick<RepositoryFacts, "chat_template" | "commit" | "config">,
  { engine_flags: flags = {} }: Pick<ServingSettings, "engine_flags">
): ModelCapabilities => {
  const capabilities = modelCapabilities(imageInput === undefined ? served : { ...served, imageInput: imageInput(facts.config, flags) }, facts)
  return withoutParameters(capabilities, unserved?.(flags) ?? [])
}
