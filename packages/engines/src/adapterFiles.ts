import { type AdapterFacts, adapterName } from "@seatrial/domain"

/** A LoRA adapter of the model that an engine is started with. */
export interface AdapterFiles {
  readonly facts: AdapterFacts
  /** Its folder inside the container. */
  readonly path: string
  /** The chat template that goes with it. */
  readonly chatTemplate: string | null
}

/** `name=path`, as all engines take it. */
export const namedFolder = ({ path }: AdapterFiles): string => `${adapterName}=${path}`

/** A chat template as text. Of what Kubernetes reads, two dollar signs are one, and `$(` is a variable's beginning. */
export const writtenArgument = (template: string): string => `--chat-template=${template.replaceAll("$", () => "$$")}`

/** The argument for an adapter's own chat template: its file, or as text where it has none and the engine takes one. */
export const templateArgument = (adapter: AdapterFiles | undefined): ReadonlyArray<string> => {
  if (adapter === undefined || adapter.facts.template === "base") return []
  if (adapter.facts.template === "file") return [`--chat-template=${adapter.path}/chat_template.jinja`]
  return [writtenArgument(adapter.chatTemplate ?? "")]
}
