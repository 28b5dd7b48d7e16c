import { engineWire } from "@seatrial/engines"
import type { Route } from "@seatrial/store"
import type { CheckedRequest } from "./checkRequest.ts"

/**
 * The model's name in an answer. Quotation marks inside JSON strings are escaped, so a match is never generated text.
 */
const said = /"model":\s?"[^"]*"/

const asIs = (text: string) => text

/**
 * Replaces the model's name in an answer by the name that the caller sent. An adapter has a fixed name inside its engine, and some engines answer with the name that they
 * were started with, which differs if the model was published or withdrawn later.
 */
export const restoreModelName = (
  { adapted, runtime }: Pick<Route, "adapted" | "runtime">,
  { model }: Pick<CheckedRequest, "model">
): ((text: string) => string) => {
  if (!adapted && !engineWire(runtime).answersWithServedName) return asIs
  const asked = `"model":${JSON.stringify(model)}`
  return (text) => {
    const found = said.exec(text)
    return found === null || found[0] === asked ? text : `${text.slice(0, found.index)}${asked}${text.slice(found.index + found[0].length)}`
  }
}
