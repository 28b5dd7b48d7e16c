import type { InferencePath } from "@seatrial/domain"
import type { Checking } from "./Checking.ts"
import { chat } from "./chat.ts"
import { completions } from "./completions.ts"
import { checkFields } from "./requestFields.ts"

/** A path that engines generate on. */
export interface Endpoint {
  /** Gives what goes to the engine; refuses by throwing a `Refusal`. */
  readonly check: (members: Readonly<Record<string, unknown>>, at: Checking) => Record<string, unknown>
}

/** The paths of inference. */
export const endpoints: Readonly<Record<InferencePath, Endpoint>> = {
  "/v1/chat/completions": { check: checkFields(chat) },
  "/v1/completions": { check: checkFields(completions) }
}

/** Whether engines generate on the path. */
export const isEndpoint = (path: string): path is InferencePath => Object.hasOwn(endpoints, path)
