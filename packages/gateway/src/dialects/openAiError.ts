import type { Refusal } from "../refusals.ts"

/** The Error object of the contract and of the OpenAI API. */
export const openAiError = (error: Refusal, requestId: string): string =>
  JSON.stringify({ error: { message: error.message, type: error.type, code: error.code, param: error.param, request_id: requestId } })
