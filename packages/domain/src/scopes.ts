import { Schema } from "effect"

/** What an API key may do. */
export const scopes = ["requests:read", "inference:write", "models:read", "models:write", "deployments:read", "deployments:write", "audit:read"] as const
export const Scope = Schema.Literals(scopes)
export type Scope = typeof Scope.Type
