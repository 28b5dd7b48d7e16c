import {
  type InferencePath,
  noReasoningControls,
  noToolCalling,
  nothingServed,
  type PathContract,
  type ReasoningFormat,
  requestVocabulary,
  responseFormatVocabulary,
  type ServedContract,
  type ToolCallFormat
} from "@seatrial/domain"

/** The differences between the contracts of two engines. */
export interface Serving {
  readonly toolCalls: ReadonlyArray<ToolCallFormat>
  readonly toolCalling?: ServedContract["toolCalling"]
  readonly strict?: ReadonlyArray<ToolCallFormat>
  readonly reasoning: ReadonlyArray<ReasoningFormat>
  readonly reasoningControls?: ServedContract["reasoningControls"]
  /** Top-level fields of the gateway's vocabulary that the engine does not support. */
  readonly without?: ReadonlyArray<string>
}

/** An engine that supports tool calls completely. */
export const fullToolCalling: ServedContract["toolCalling"] = {
  tool_choice: { auto: true, required: true, named: true, none: true },
  parallel_calls: true,
  single_call: true,
  strict_arguments: true,
  tool_results: true
}

/** The contract of an engine behind the gateway: the gateway's vocabulary without the unsupported fields. */
export const servedContract = ({ reasoning, reasoningControls, strict = [], toolCalling, toolCalls, without = [] }: Serving): ServedContract => {
  const served = <Path extends InferencePath>(path: Path): PathContract<Path> => ({
    parameters: requestVocabulary[path].filter((field) => !without.includes(field)),
    responseFormats: responseFormatVocabulary[path]
  })
  return {
    ...nothingServed,
    toolCalling: toolCalling ?? noToolCalling,
    reasoningControls: reasoningControls ?? noReasoningControls,
    paths: {
      "/v1/chat/completions": served("/v1/chat/completions"),
      "/v1/completions": served("/v1/completions"),
      "/v1/responses": served("/v1/responses"),
      "/v1/messages": served("/v1/messages"),
      "/v1/messages/count_tokens": served("/v1/messages/count_tokens")
    },
    toolCallFormats: new Set(toolCalls),
    strictFormats: new Set(strict),
    reasoningFormats: new Set(reasoning)
  }
}
