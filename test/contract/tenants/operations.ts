import { Api } from "@seatrial/api"
import type { Scope } from "@seatrial/domain"
import { HttpApi } from "effect/http-api"

/** What a path's id names. */
export type Kind = "request" | "receipt" | "model" | "deployment" | "audit"

export interface Operation {
  readonly method: "GET" | "POST" | "DELETE"
  readonly path: string
  /** Any one of these sets opens it; none where it is public. */
  readonly scopes: ReadonlyArray<ReadonlyArray<Scope>>
  readonly id?: Kind
  readonly body?: "preview" | "create" | "cancel"
  /** Filters that take an id, for lists. */
  readonly filters?: ReadonlyArray<"model_id" | "api_key_id" | "actor_user_id">
  /** What the right call of it gives. */
  readonly right: number
}

const requests = [["requests:read"]] as const
const receipts = [["requests:read"], ["inference:write"]] as const
const models = [["models:read"]] as const
const reads = [["deployments:read"]] as const
const writes = [["deployments:write"]] as const
const changes = [["models:write"]] as const
const audit = [["audit:read"]] as const
const page = { method: "GET", right: 200 } as const
const record = { method: "GET", right: 200 } as const

/** The contract's operations, as its text has them: written by hand, so that an endpoint whose scope changes is seen. */
export const operations: ReadonlyArray<Operation> = [
  { ...page, path: "/v1/org/requests", scopes: requests, filters: ["model_id", "api_key_id"] },
  { ...record, path: "/v1/org/requests/:request_id", scopes: requests, id: "request" },
  { ...record, path: "/v1/org/receipts/:request_id", scopes: receipts, id: "receipt" },
  { ...page, path: "/v1/org/models", scopes: models, filters: [] },
  { ...record, path: "/v1/org/models/:id", scopes: models, id: "model" },
  { ...page, path: "/v1/org/deployments", scopes: reads, filters: ["model_id"] },
  { ...record, path: "/v1/org/deployments/:id", scopes: reads, id: "deployment" },
  { ...page, path: "/v1/org/audit-events", scopes: audit, filters: ["actor_user_id"] },
  { ...record, path: "/v1/org/audit-events/:id", scopes: audit, id: "audit" },
  { ...page, path: "/v1/requests", scopes: requests, filters: ["model_id", "api_key_id"] },
  { ...record, path: "/v1/requests/:request_id", scopes: requests, id: "request" },
  { ...record, path: "/v1/receipts/:request_id", scopes: receipts, id: "receipt" },
  { ...page, path: "/v1/deployments", scopes: reads, filters: ["model_id"] },
  { ...record, path: "/v1/deployments/:id", scopes: reads, id: "deployment" },
  { ...record, path: "/v1/deployments/:id/events", scopes: reads, id: "deployment" },
  { ...record, path: "/v1/deployments/:id/progress", scopes: reads, id: "deployment" },
  // Nobody answers where the model hub should be.
  { method: "POST", path: "/v1/deployment-previews", scopes: writes, body: "preview", right: 503 },
  { method: "POST", path: "/v1/deployments", scopes: writes, body: "create", right: 201 },
  // The organisation's own run is over.
  { method: "POST", path: "/v1/deployments/:id/cancel", scopes: writes, id: "deployment", body: "cancel", right: 409 },
  { ...page, path: "/v1/models", scopes: [["models:read"], ["inference:write"]] },
  { method: "POST", path: "/v1/models/:id/disable", scopes: changes, id: "model", body: "cancel", right: 204 },
  { method: "POST", path: "/v1/models/:id/enable", scopes: changes, id: "model", body: "cancel", right: 204 },
  // The organization's own model is managed by an object in the cluster.
  { method: "DELETE", path: "/v1/models/:id", scopes: changes, id: "model", right: 409 },
  { ...page, path: "/v1/catalog/models", scopes: [] },
  { ...page, path: "/healthz", scopes: [] },
  { ...page, path: "/readyz", scopes: [] },
  { ...page, path: "/.well-known/jwks.json", scopes: [] }
]

export const nameOf = ({ method, path }: { readonly method: string; readonly path: string }): string => `${method} ${path}`

/** What the program offers by its own account. */
export const offered: ReadonlyArray<string> = (() => {
  const names: Array<string> = []
  HttpApi.reflect(Api, { onGroup: () => {}, onEndpoint: ({ endpoint }) => void names.push(nameOf(endpoint)) })
  return names
})()

/** The path with an id in it. */
export const withId = ({ path }: Operation, id: string): string => path.replace(/:[a-z_]+/, id)
