import { Api } from "@seatrial/api"
import type { Scope } from "@seatrial/domain"
import { HttpApi } from "effect/http-api"

/** The kind of record of a path's ID. */
export type Kind = "request" | "receipt" | "model" | "deployment" | "audit" | "suspicion"

export interface Operation {
  readonly method: "GET" | "POST" | "PUT" | "DELETE"
  readonly path: string
  /** A key needs all scopes of one of these sets. Empty for a public operation. */
  readonly scopes: ReadonlyArray<ReadonlyArray<Scope>>
  readonly id?: Kind
  readonly body?: "preview" | "create" | "cancel" | "scale"
  /** Filters of a list that take an ID. */
  readonly filters?: ReadonlyArray<"model_id" | "api_key_id" | "actor_user_id">
  /** Status of a valid call. */
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

/** The operations of the contract. The list is written by hand, so that a changed scope of an endpoint fails the test. */
export const operations: ReadonlyArray<Operation> = [
  { ...page, path: "/v1/org/requests", scopes: requests, filters: ["model_id", "api_key_id"] },
  { ...record, path: "/v1/org/requests/:request_id", scopes: requests, id: "request" },
  { ...record, path: "/v1/org/receipts/:request_id", scopes: receipts, id: "receipt" },
  { ...page, path: "/v1/org/models", scopes: models, filters: [] },
  { ...record, path: "/v1/org/models/:id", scopes: models, id: "model" },
  { ...page, path: "/v1/org/deployments", scopes: reads, filters: ["model_id"] },
  { ...record, path: "/v1/org/deployments/:id", scopes: reads, id: "deployment" },
  { ...page, path: "/v1/org/suspicions", scopes: reads, filters: [] },
  { ...page, path: "/v1/org/suspicions/:id/requests", scopes: requests, id: "suspicion" },
  { ...page, path: "/v1/org/audit-events", scopes: audit, filters: ["actor_user_id"] },
  { ...record, path: "/v1/org/audit-events/:id", scopes: audit, id: "audit" },
  { ...page, path: "/v1/requests", scopes: requests, filters: ["model_id", "api_key_id"] },
  { ...record, path: "/v1/requests/:request_id", scopes: requests, id: "request" },
  { ...record, path: "/v1/receipts/:request_id", scopes: receipts, id: "receipt" },
  { ...page, path: "/v1/deployments", scopes: reads, filters: ["model_id"] },
  { ...record, path: "/v1/deployments/:id", scopes: reads, id: "deployment" },
  { ...record, path: "/v1/deployments/:id/events", scopes: reads, id: "deployment" },
  { ...record, path: "/v1/deployments/:id/progress", scopes: reads, id: "deployment" },
  // Nothing listens at the address of the hub.
  { method: "POST", path: "/v1/deployment-previews", scopes: writes, body: "preview", right: 503 },
  { method: "POST", path: "/v1/deployments", scopes: writes, body: "create", right: 201 },
  // The organization's own run has ended.
  { method: "POST", path: "/v1/deployments/:id/cancel", scopes: writes, id: "deployment", body: "cancel", right: 409 },
  { ...page, path: "/v1/models", scopes: [["models:read"], ["inference:write"]] },
  { method: "POST", path: "/v1/models/:id/disable", scopes: changes, id: "model", body: "cancel", right: 204 },
  { method: "POST", path: "/v1/models/:id/enable", scopes: changes, id: "model", body: "cancel", right: 204 },
  { ...record, path: "/v1/models/:id/scaling", scopes: models, id: "model" },
  { ...record, path: "/v1/models/:id/load", scopes: models, id: "model" },
  { method: "PUT", path: "/v1/models/:id/scaling", scopes: changes, id: "model", body: "scale", right: 200 },
  // A ModelDeployment in the cluster manages the organization's own model.
  { method: "DELETE", path: "/v1/models/:id", scopes: changes, id: "model", right: 409 },
  { ...page, path: "/v1/spending", scopes: requests },
  { ...page, path: "/v1/catalog/models", scopes: [] },
  { ...page, path: "/healthz", scopes: [] },
  { ...page, path: "/readyz", scopes: [] },
  { ...page, path: "/.well-known/jwks.json", scopes: [] }
]

export const nameOf = ({ method, path }: { readonly method: string; readonly path: string }): string => `${method} ${path}`

/** The operations of the API declaration. */
export const offered: ReadonlyArray<string> = (() => {
  const names: Array<string> = []
  HttpApi.reflect(Api, { onGroup: () => {}, onEndpoint: ({ endpoint }) => void names.push(nameOf(endpoint)) })
  return names
})()

/** The path with an ID. */
export const withId = ({ path }: Operation, id: string): string => path.replace(/:[a-z_]+/, id)
