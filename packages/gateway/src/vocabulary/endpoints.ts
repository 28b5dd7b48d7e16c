import type { InferencePath } from "@seatrial/domain"
import type { Checking } from "./Checking.ts"
import { chat } from "./chat.ts"
import { completions } from "./completions.ts"
import { countTokens, messages } from "./messages.ts"
import { checkFields } from "./requestFields.ts"
import { responses } from "./responses.ts"

/** An inference path. */
export interface Endpoint {
  /** Returns the body for the engine. Throws a `Refusal` if the request is invalid. */
  readonly check: (members: Readonly<Record<string, unknown>>, at: Checking) => Record<string, unknown>
}

/** The inference paths. */
export const endpoints: Readonly<Record<InferencePath, Endpoint>> = {
  "/v1/chat/completions": { check: checkFields(chat) },
  "/v1/completions": { check: checkFields(completions) },
  "/v1/responses": { check: checkFields(responses) },
  "/v1/messages": { check: checkFields(messages) },
  "/v1/messages/count_tokens": { check: checkFields(countTokens) }
}

/** Whether the path is an inference path. */
export const isEndpoint = (path: string): path is InferencePath => Object.hasOwn(endpoints, path)
