import type { Candidate } from "./candidates.ts"
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

/** Why none of the candidates' engines serves the model, and what they do serve. */
export const unsupported = ({ config }: RepositoryFacts, offered: ReadonlyArray<Candidate>): { readonly message: string; readonly remedy: string } => {
  const { architecture, quantization } = config
  const engines = offered.map(({ engine }) => engine)
  const purpose = engines.map((engine) => engine.otherPurpose?.(architecture) ?? null).find((said) => said !== null)
  if (purpose !== undefined) {
    return { message: `${architecture} ${purpose}; only models that answer in text are served.`, remedy: "Choose a model that generates text." }
  }
  const registering = engines.filter((engine) => engine.architectures.has(architecture))
  const issue = offered.flatMap(({ engine, hostClass }) => (engine.architectures.has(architecture) ? [engine.modelIssue?.(config, hostClass) ?? null] : []))
  const said = issue.find((found) => found !== null)
  const quantizations = [...new Set(registering.flatMap((engine) => [...engine.quantizations]))].sort().join(", ")
  if (said !== undefined && said !== null && registering.length > 0) {
    const remedy = `Choose another host class, or a checkpoint of one of these quantizations: ${quantizations}.`
    return { message: said, remedy }
  }
  return {
    message: `${architecture} with quantization ${quantization} is not supported by ${[...new Set(engines.map(({ version }) => version))].join(", ")}.`,
    remedy:
      registering.length === 0
        ? `Choose a model of one of these architectures: ${knownArchitectures(engines, architecture)}.`
        : `Choose a checkpoint of one of these quantizations: ${quantizations}.`
  }
}
