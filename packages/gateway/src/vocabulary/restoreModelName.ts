import { engineWire } from "@seatrial/engines"
import type { Route } from "@seatrial/store"
import type { CheckedRequest } from "./checkRequest.ts"

/**
 * The model's name in an answer. Quotation marks inside JSON strings are escaped, so a match is never generated text.
 */
const modelMember = /"model":\s?"[^"]*"/

const asIs = (text: string) => text

/**
 * Replaces the model's name in an answer by the name that the caller sent. An adapter has a fixed name inside its
 * engine, and some engines answer with the name that they were started with, which differs if the model was published
 * or withdrawn later.
 */
export const restoreModelName = (
  { adapted, runtime }: Pick<Route, "adapted" | "runtime">,
  { model }: Pick<CheckedRequest, "model">
): ((text: string) => string) => {
  if (!adapted && !engineWire(runtime).answersWithServedName) return asIs
  const replacement = `"model":${JSON.stringify(model)}`
  return (text) => {
    const match = modelMember.exec(text)
    return match === null || match[0] === replacement ? text : `${text.slice(0, match.index)}${replacement}${text.slice(match.index + match[0].length)}`
  }
}
