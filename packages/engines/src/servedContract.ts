import {
  noReasoningControls,
  noToolCalling,
  nothingServed,
  type ReasoningFormat,
  requestVocabulary,
  responseFormatVocabulary,
  type ServedContract,
  type ToolCallFormat
} from "@seatrial/domain"

const chat = "/v1/chat/completions"
const text = "/v1/completions"

/** What tells one engine's contract from another's. */
export interface Serving {
  readonly toolCalls: ReadonlyArray<ToolCallFormat>
  readonly toolCalling?: ServedContract["toolCalling"]
  readonly reasoning: ReadonlyArray<ReasoningFormat>
  readonly reasoningControls?: ServedContract["reasoningControls"]
  /** Top-level fields of the gateway's vocabulary that it does not serve. */
  readonly without?: ReadonlyArray<string>
}

/** What an engine serves behind the gateway: the gateway's vocabulary, but for what it has not. */
export const servedContract = ({ reasoning, reasoningControls, toolCalling, toolCalls, without = [] }: Serving): ServedContract => {
  const served = <Field extends string>(fields: ReadonlyArray<Field>) => fields.filter((field) => !without.includes(field))
  return {
    ...nothingServed,
    toolCalling: toolCalling ?? noToolCalling,
    reasoningControls: reasoningControls ?? noReasoningControls,
    paths: {
      [chat]: { parameters: served(requestVocabulary[chat]), responseFormats: responseFormatVocabulary[chat] },
      [text]: { parameters: served(requestVocabulary[text]), responseFormats: responseFormatVocabulary[text] }
    },
    toolCallFormats: new Set(toolCalls),
    reasoningFormats: new Set(reasoning)
  }
}
