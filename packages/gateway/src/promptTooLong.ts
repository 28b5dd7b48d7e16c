import { type InferencePath, pathTraits } from "@seatrial/domain"
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

/** The refusal of a prompt that is too long for the context of the model. */
export const promptTooLong = (endpoint: InferencePath, long: TooLong): Refusal => {
  const { isAnthropic, prompt } = pathTraits[endpoint]
  return contextLengthExceeded((isAnthropic ? anthropic : openAi)(long), prompt)
}
