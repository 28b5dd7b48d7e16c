import type { Scope } from "@seatrial/domain"
import { scopes } from "@seatrial/domain"
import type { Ask } from "../Wire.ts"
import { type Operation, withId } from "./operations.ts"

/** The possible faults of a call, in the order in which the server checks them. */
export const stages = ["route", "method", "key", "rate", "scope", "parameter", "header", "body", "existence"] as const
export type Stage = (typeof stages)[number]

/** The status and error code of each fault. */
export const responses: Readonly<Record<Stage, readonly [status: number, code: RegExp]>> = {
  route: [404, /^not_found$/],
  method: [405, /^method_not_allowed$/],
  key: [401, /^invalid_api_key$/],
  rate: [429, /^(key|org)_rate_limited$/],
  scope: [403, /^missing_scope$/],
  parameter: [400, /^unknown_parameter$/],
  header: [400, /^idempotency_key_required$/],
  body: [400, /^invalid_body$/],
  existence: [404, /^not_found$/]
}

/** The faults that are possible for an operation. */
export const possible = ({ body, id, path, scopes: needed }: Operation): ReadonlyArray<Stage> => {
  const guarded = needed.length > 0
  const can: Readonly<Record<Stage, boolean>> = {
    route: true,
    method: true,
    key: guarded,
    rate: guarded,
    scope: guarded,
    parameter: path.startsWith("/v1/"),
    header: body === "create",
    body: body !== undefined,
    existence: id !== undefined || body === "create"
  }
  return stages.filter((stage) => can[stage])
}

/** All scopes except those that the operation accepts. */
export const without = (needed: ReadonlyArray<ReadonlyArray<Scope>>): ReadonlyArray<Scope> => scopes.filter((scope) => !needed.flat().includes(scope))

const source = { kind: "model_hub", repo: "seatrial/tiny-chat" }
const bodies = { preview: { source }, cancel: {}, scale: { replicas: 2 } }
let modelCount = 0

/** A valid call of an operation on a record of the caller. */
export const rightCall = (operation: Operation, id: string): Ask => {
  const { body, method } = operation
  const path = withId(operation, id)
  if (body === undefined) return { method, path }
  // Each create uses a new model. With `serve: false` it needs no other scope.
  const sent = body === "create" ? { source, model_name: `right-${++modelCount}`, serve: false } : bodies[body]
  return { method, path, body: JSON.stringify(sent), headers: body === "create" ? { "idempotency-key": crypto.randomUUID() } : {} }
}

/** The call with these faults. The test applies `rate` and the key faults itself. */
export const wrongCall = (operation: Operation, own: string, never: string, wrong: ReadonlySet<Stage>): Ask => {
  const call = rightCall(operation, operation.id !== undefined && wrong.has("existence") ? never : own)
  const missing =
    operation.body === "create" && wrong.has("existence") ? { body: JSON.stringify({ model_id: "mdl_01890000000000000000000000", serve: false }) } : {}
  return {
    ...call,
    ...missing,
    method: wrong.has("method") ? "PATCH" : call.method,
    path: `${wrong.has("route") ? "/nowhere" : ""}${call.path}${wrong.has("parameter") ? "?nonsense=1" : ""}`,
    headers: wrong.has("header") ? {} : (call.headers ?? {}),
    ...(wrong.has("body") ? { body: "{" } : {})
  }
}
