import { isUtf8 } from "node:buffer"
import type { InferencePath } from "@seatrial/domain"
import { invalidBody, Refusal } from "../refusals.ts"
import { prefixOf } from "../routing/prefixOf.ts"
import type { Target } from "./Checking.ts"
import { type CheckedRequest, checkRequest } from "./checkRequest.ts"
import { type ParsedBody, parseBody } from "./parseBody.ts"

/** What the thread of large bodies is asked: to read one as far as its model, or, with a path and a target, to check it. */
export interface LargeBodyQuestion {
  readonly bytes: SharedArrayBuffer
  readonly check: { readonly endpoint: InferencePath; readonly target: Target } | null
}

export type LargeBodyAnswer =
  | { readonly _tag: "Read"; readonly body: ParsedBody }
  | { readonly _tag: "Checked"; readonly checked: CheckedRequest }
  /** A refusal's fields: its class does not go from thread to thread. */
  | { readonly _tag: "Refused"; readonly status: number; readonly type: string; readonly code: string; readonly message: string; readonly param: string | null }

const refused = ({ code, message, param, status, type }: Refusal): LargeBodyAnswer => ({ _tag: "Refused", status, type, code, message, param })

/** What is asked of a body before it is checked: whether it streams, and what routing looks at. */
const summaryOf = ({ members, model }: ParsedBody): ParsedBody => {
  const { prompt_cache_key, stream } = members
  const beginning = typeof prompt_cache_key === "string" ? { prompt_cache_key } : { prompt: prefixOf(members) }
  return { model, members: { ...(typeof stream === "boolean" ? { stream } : {}), ...beginning } }
}

/** Answers a question: read anew each time, so that nothing is kept for a caller who leaves in between. */
export const answerLarge = ({ bytes, check }: LargeBodyQuestion): LargeBodyAnswer => {
  const buffer = Buffer.from(bytes)
  if (!isUtf8(buffer)) return refused(invalidBody("The body is not valid UTF-8."))
  const parsed = parseBody(buffer.toString("utf8"))
  if (parsed instanceof Refusal) return refused(parsed)
  if (check === null) return { _tag: "Read", body: summaryOf(parsed) }
  const checked = checkRequest(check.endpoint, parsed, check.target)
  return checked instanceof Refusal ? refused(checked) : { _tag: "Checked", checked }
}
