import type { InferencePath } from "@seatrial/domain"
import type { Route } from "@seatrial/store"
import type { WholeAnswer } from "./dialects/Dialect.ts"
import { dialects } from "./dialects/dialects.ts"
import { restoreModelName } from "./vocabulary/restoreModelName.ts"

/** What determines how an answer that is not streamed is read, and what the caller gets of it. */
export interface AnswerFormat extends Pick<Route, "adapted" | "runtime"> {
  readonly endpoint: InferencePath
  /** The callable name that the caller sent. */
  readonly model: string
}

/** An answer with the body for the caller, or the engine's error instead of one. */
export type ParsedAnswer =
  | { readonly _tag: "Answer"; readonly answer: Omit<WholeAnswer, "body">; readonly body: string | Buffer }
  /** `error`: the text of the error. */
  | { readonly _tag: "Error"; readonly error: string }

/** Parses an answer that is not streamed. An incomplete one has no body, because the caller does not get it. */
export const parseAnswer = (format: AnswerFormat, text: string): ParsedAnswer => {
  const parsed = dialects[format.endpoint].readWhole(text)
  if (parsed === null) return { _tag: "Error", error: text }
  const { body, ...answer } = parsed
  return { _tag: "Answer", answer, body: answer.finished ? restoreModelName(format, format)(body) : "" }
}
