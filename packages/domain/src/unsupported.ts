import { type Candidate, knowsModel, modelIssue, servesModel } from "./candidates.ts"
import type { EngineContract } from "./engineContract.ts"
import type { RepositoryFacts } from "./repository.ts"

const sharedPrefix = (one: string, other: string): number => {
  let length = 0
  while (length < one.length && one[length] === other[length]) length++
  return length
}

/** Most architectures that a refusal names. */
const namedArchitectures = 12

/** The architectures that engines know, those first whose names begin like the one that was asked for. */
const knownArchitectures = (engines: ReadonlyArray<EngineContract>, architecture: string): string => {
  const known = [...new Set(engines.flatMap((engine) => [...engine.architectures]))].sort()
  const near = known.toSorted((a, b) => sharedPrefix(b, architecture) - sharedPrefix(a, architecture)).slice(0, namedArchitectures)
  return known.length > near.length ? `${near.join(", ")} and ${known.length - near.length} others` : near.join(", ")
}

/** What is asked (`offered`), and what there is beside it. */
export interface Offers {
  readonly offered: ReadonlyArray<Candidate>
  /** All host classes with each of their runtimes. */
  readonly everywhere: ReadonlyArray<Candidate>
  /** All engines that are known, whether a host class offers them or not. */
  readonly engines: ReadonlyArray<EngineContract>
}

/** Quantizations, other than its own, whose checkpoints of the same model one of the candidates serves: none where its quantization is not what is wrong. */
const otherQuantizations = (facts: RepositoryFacts, offered: ReadonlyArray<Candidate>): ReadonlyArray<string> => {
  const { quantization: own, quantization_scheme: _, ...config } = facts.config
  if (own === "none") return []
  const isServed = (quantization: string, candidate: Candidate) => knowsModel({ ...facts, config: { ...config, quantization } }, candidate)
  const taken = offered.flatMap((candidate) => [...candidate.engine.quantizations].filter((other) => other !== own && isServed(other, candidate)))
  return [...new Set(taken)].sort()
}

/** What would serve a model that nothing configured has served, each found by trying it. */
const remedyFor = (facts: RepositoryFacts, { engines, everywhere, offered }: Offers): string => {
  const [there] = everywhere.filter((candidate) => servesModel(facts, candidate))
  if (there !== undefined) {
    return `Ask for the runtime ${there.engine.runtime} on the host class ${there.hostClass.name}, which computes it: that preview says what it lacks there.`
  }
  const quantizations = otherQuantizations(facts, offered)
  const checkpoints = quantizations.length === 0 ? [] : [`choose a checkpoint of one of these quantizations: ${quantizations.join(", ")}`]
  // Of a card that is not known nothing is refused for the card.
  const real = offered.slice(0, 1).map(({ hostClass }) => ({ ...hostClass, gpu_pool: "", simulated: false }))
  const able = engines.filter((engine) => real.some((hostClass) => servesModel(facts, { engine, hostClass }))).map(({ runtime }) => runtime)
  const isThere = everywhere.some(({ engine, hostClass }) => !hostClass.simulated && able.includes(engine.runtime))
  const operator = able.length === 0 ? [] : [`ask the cluster's operator for ${isThere ? "other" : "real"} GPUs with the runtime ${able.join(" or ")}`]
  const found = [...checkpoints, ...operator].join(", or ")
  return found === "" ? "Choose another model." : `${found.charAt(0).toUpperCase()}${found.slice(1)}.`
}

/** Why none of the offered candidates' engines serves the model, and what would help. */
export const unsupported = (facts: RepositoryFacts, offers: Offers): { readonly message: string; readonly remedy: string } => {
  const { offered } = offers
  const { config } = facts
  const { architecture, quantization } = config
  const engines = offered.map(({ engine }) => engine)
  const purpose = engines.map((engine) => engine.otherPurpose?.(architecture) ?? null).find((said) => said !== null)
  if (purpose !== undefined) {
    return { message: `${architecture} ${purpose}; only models that answer in text are served.`, remedy: "Choose a model that generates text." }
  }
  const issue = offered.flatMap((candidate) => (candidate.engine.architectures.has(architecture) ? [modelIssue(facts, candidate)] : []))
  const said = issue.find((found) => found !== null) ?? null
  const registered = issue.length > 0
  return {
    message: said ?? `${architecture} with quantization ${quantization} is not supported by ${[...new Set(engines.map(({ version }) => version))].join(", ")}.`,
    remedy: registered ? remedyFor(facts, offers) : `Choose a model of one of these architectures: ${knownArchitectures(engines, architecture)}.`
  }
}
