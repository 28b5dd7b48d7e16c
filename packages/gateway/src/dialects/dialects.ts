import type { InferencePath } from "@seatrial/domain"
import type { Dialect } from "./Dialect.ts"
import { countTokens, messages } from "./messages.ts"
import { chat, completions } from "./openAi.ts"
import { responses } from "./responses.ts"

/** The dialect of each inference path. */
export const dialects: Readonly<Record<InferencePath, Dialect>> = {
  "/v1/chat/completions": chat,
  "/v1/completions": completions,
  "/v1/responses": responses,
  "/v1/messages": messages,
  "/v1/messages/count_tokens": countTokens
}

const byPath = new Map(Object.entries(dialects))

/** The dialect for errors on any path. */
export const dialectOf = (path: string): Dialect => byPath.get(path) ?? chat
