import type { InferencePath } from "@seatrial/domain"
import { contextLengthExceeded, type Refusal } from "./refusals.ts"

/** Token counts of a prompt that leaves no room for an answer. */
interface TooLong {
  readonly context: number
  readonly tokens: number
  readonly most: number
}

/** Clients and agents search error messages for these exact words. */
const openAi = ({ context }: TooLong) => `This model's maximum context length is ${context} tokens. Shorten the input or lower the token limit of the answer.`
const anthropic = ({ tokens, most }: TooLong) => `prompt is too long: ${tokens} tokens > ${most} maximum`
const wordings = {
  "/v1/chat/completions": openAi,
  "/v1/completions": openAi,
  "/v1/responses": openAi,
  "/v1/messages": anthropic,
  "/v1/messages/count_tokens": anthropic
} as const satisfies Readonly<Record<InferencePath, (long: TooLong) => string>>
const params: Readonly<Record<InferencePath, string>> = {
  "/v1/chat/completions": "messages",
  "/v1/completions": "prompt",
  "/v1/responses": "input",
  "/v1/messages": "messages",
  "/v1/messages/count_tokens": "messages"
}

/** The refusal of a prompt that is too long for the context of the model. */
export const promptTooLong = (endpoint: InferencePath, long: TooLong): Refusal => contextLengthExceeded(wordings[endpoint](long), params[endpoint])
