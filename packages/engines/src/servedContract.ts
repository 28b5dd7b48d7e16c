import { noToolCalling, nothingServed, type ReasoningFormat, requestVocabulary, type ServedContract, type ToolCallFormat } from "@seatrial/domain"

const chat = "/v1/chat/completions"
const fields: ReadonlySet<string> = new Set(requestVocabulary[chat])

/**
 * What an engine serves behind the gateway. A form of request that the gateway does not take yet is none that is served, whatever the engine reads.
 */
export const servedContract = (
  toolCalls: ReadonlyArray<ToolCallFormat>,
  reasoning: ReadonlyArray<ReasoningFormat>,
  toolCalling: ServedContract["toolCalling"] = noToolCalling
): ServedContract => ({
  ...nothingServed,
  toolCalling: fields.has("tools") ? toolCalling : noToolCalling,
  paths: {
    [chat]: { parameters: requestVocabulary[chat], responseFormats: ["text"] },
    "/v1/completions": { parameters: requestVocabulary["/v1/completions"], responseFormats: [] }
  },
  toolCallFormats: new Set(fields.has("tools") ? toolCalls : []),
  reasoningFormats: new Set(fields.has("reasoning_effort") ? reasoning : [])
})
