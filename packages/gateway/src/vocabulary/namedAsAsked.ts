import { adapterModel } from "@seatrial/domain"
import type { Route } from "@seatrial/store"
import type { CheckedRequest } from "./checkRequest.ts"

/** Gives what an engine says of an adapter's request the name that the caller asked for. A quotation mark inside a string is escaped, so that no generated text is changed. */
export const namedAsAsked =
  ({ adapted, runtime }: Pick<Route, "adapted" | "runtime">, { model }: Pick<CheckedRequest, "model">): ((text: string) => string) =>
  (text) =>
    adapted ? text.replace(new RegExp(`"model":\\s?"${adapterModel(runtime)}"`), () => `"model":${JSON.stringify(model)}`) : text
