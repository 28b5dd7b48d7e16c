import { type Candidate, knowsModel, modelIssue, servesModel } from "./candidates.ts"
import type { EngineContract } from "./engineContract.ts"
import type { RepositoryFacts } from "./repository.ts"

const sharedPrefix = (one: string, other: string): number => {
  let length = 0
  while (length < one.length && one[length] === other[length]) length++
  return length
}

/** Maximum number of architectures in a refusal. */
const namedArchitectures = 12

/** The supported architectures, those with the longest common prefix with the requested one first. */
const knownArchitectures = (engines: ReadonlyArray<EngineContract>, architecture: string): string => {
  const known = [...new Set(engines.flatMap((engine) => [...engine.architectures]))].sort()
  const near = known.toSorted((a, b) => sharedPrefix(b, architecture) - sharedPrefix(a, architecture)).slice(0, namedArchitectures)
  return known.length > near.length ? `${near.join(", ")} and ${known.length - near.length} others` : near.join(", ")
}

/** The requested candidates (`offered`) and the alternatives. */
export interface Offers {
  readonly offered: ReadonlyArray<Candidate>
  /** All host classes with each of their runtimes. */
  readonly everywhere: ReadonlyArray<Candidate>
  /** All known engines, whether or not a host class offers them. */
  readonly engines: ReadonlyArray<EngineContract>
}

/** Other quantizations of the same model that a candidate serves; empty if the quantization is not the problem. */
const otherQuantizations = (facts: RepositoryFacts, offered: ReadonlyArray<Candidate>): ReadonlyArray<string> => {
  const { quantization: own, quantization_scheme: _, ...config } = facts.config
  if (own === "none") return []
  const isServed = (quantization: string, candidate: Candidate) => knowsModel({ ...facts, config: { ...config, quantization } }, candidate)
  const taken = offered.flatMap((candidate) => [...candidate.engine.quantizations].filter((other) => other !== own && isServed(other, candidate)))
  return [...new Set(taken)].sort()
}

/** What would serve a model that no requested candidate serves. Each proposal is tested. */
const remedyFor = (facts: RepositoryFacts, { engines, everywhere, offered }: Offers): string => {
  const [alternative] = everywhere.filter((candidate) => servesModel(facts, candidate))
  if (alternative !== undefined) {
    return `Request the runtime ${alternative.engine.runtime} on the host class ${alternative.hostClass.name}, which supports the model. Run a preview with these settings to see whether anything else must change.`
  }
  const quantizations = otherQuantizations(facts, offered)
  const checkpoints = quantizations.length === 0 ? [] : [`choose a checkpoint of one of these quantizations: ${quantizations.join(", ")}`]
  // An unknown card is never the reason for a refusal.
  const real = offered.slice(0, 1).map(({ hostClass }) => ({ ...hostClass, gpu_pool: "", simulated: false }))
  const able = engines.filter((engine) => real.some((hostClass) => servesModel(facts, { engine, hostClass }))).map(({ runtime }) => runtime)
  const isConfigured = everywhere.some(({ engine, hostClass }) => !hostClass.simulated && able.includes(engine.runtime))
  const operator = able.length === 0 ? [] : [`ask the cluster administrator for ${isConfigured ? "other" : "real"} GPUs with the runtime ${able.join(" or ")}`]
  const proposals = [...checkpoints, ...operator].join(", or ")
  return proposals === "" ? "Choose another model." : `${proposals.charAt(0).toUpperCase()}${proposals.slice(1)}.`
}

/** Why none of the requested candidates serves the model, and what would help. */
export const unsupported = (facts: RepositoryFacts, offers: Offers): { readonly message: string; readonly remedy: string } => {
  const { offered } = offers
  const { config } = facts
  const { architecture, quantization } = config
  const engines = offered.map(({ engine }) => engine)
  const purpose = engines.map((engine) => engine.otherPurpose?.(architecture) ?? null).find((text) => text !== null)
  if (purpose !== undefined) {
    return { message: `${architecture} ${purpose}. Seatrial serves only models that generate text.`, remedy: "Choose a model that generates text." }
  }
  const issue = offered.flatMap((candidate) => (candidate.engine.architectures.has(architecture) ? [modelIssue(facts, candidate)] : []))
  const issueText = issue.find((text) => text !== null) ?? null
  const registered = issue.length > 0
  return {
    message:
      issueText ?? `${architecture} with quantization ${quantization} is not supported by ${[...new Set(engines.map(({ version }) => version))].join(", ")}.`,
    remedy: registered ? remedyFor(facts, offers) : `Choose a model of one of these architectures: ${knownArchitectures(engines, architecture)}.`
  }
}
