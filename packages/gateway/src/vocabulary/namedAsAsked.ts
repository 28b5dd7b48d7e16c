import type { Route } from "@seatrial/store"
import type { CheckedRequest } from "./checkRequest.ts"

/** The name that an answer says. A quotation mark inside a string is escaped, so that no generated text is meant. */
const said = /"model":\s?"[^"]*"/

const asIs = (text: string) => text

/**
 * Gives an answer the name that the caller asked for: an adapter has one of its own inside its engine, and vLLM says the one that it was started with, which a model that
 * was published or withdrawn since is not called by.
 */
export const namedAsAsked = (
  { adapted, runtime }: Pick<Route, "adapted" | "runtime">,
  { model }: Pick<CheckedRequest, "model">
): ((text: string) => string) => {
  if (!adapted && runtime !== "vllm") return asIs
  const asked = `"model":${JSON.stringify(model)}`
  return (text) => {
    const found = said.exec(text)
    return found === null || found[0] === asked ? text : `${text.slice(0, found.index)}${asked}${text.slice(found.index + found[0].length)}`
  }
}
