import { type AdapterFacts, adapterName } from "@seatrial/domain"

/** A LoRA adapter of the model that an engine is started with. */
export interface AdapterFiles {
  readonly facts: AdapterFacts
  /** Its folder inside the container. */
  readonly path: string
  /** The chat template that goes with it. */
  readonly chatTemplate: string | null
}

/** `name=path`, which all engines accept. */
export const namedFolder = ({ path }: AdapterFiles): string => `${adapterName}=${path}`

/**
 * The argument for a chat template as text. Kubernetes expands `$(…)` in arguments and reads `$$` as one dollar sign.
 */
export const writtenArgument = (template: string): string => `--chat-template=${template.replaceAll("$", () => "$$")}`

/**
 * The argument for the chat template of an adapter: its file, or its text if there is no file. Empty if the adapter
 * uses the template of the base model.
 */
export const templateArgument = (adapter: AdapterFiles | undefined): ReadonlyArray<string> => {
  if (adapter === undefined || adapter.facts.template === "base") return []
  if (adapter.facts.template === "file") return [`--chat-template=${adapter.path}/chat_template.jinja`]
  return [writtenArgument(adapter.chatTemplate ?? "")]
}
