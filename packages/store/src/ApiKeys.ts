import type { KeyId, OrgId, Scope, UserId } from "@seatrial/domain"
import { Context, type Effect, type Option, type Redacted } from "effect"

/** Who calls: what an API key stands for. */
export interface Caller {
  readonly keyId: KeyId
  readonly orgId: OrgId
  readonly orgSlug: string
  /** The key's creator. */
  readonly userId: UserId
  readonly scopes: ReadonlySet<Scope>
  readonly firstPurchase: boolean
}

export interface ApiKey {
  readonly id: KeyId
  readonly orgId: OrgId
  readonly userId: UserId
  readonly name: string
  /** `seatrial_` and the first characters, and the last four: enough to recognise it, not to use it. */
  readonly prefix: string
  readonly lastFour: string
  readonly scopes: ReadonlyArray<Scope>
  /** ISO 8601, or null. */
  readonly createdAt: string
  readonly expiresAt: string | null
  readonly revokedAt: string | null
  readonly lastUsedAt: string | null
}

/** API keys: only their SHA-256 is stored. Changes write their audit events. */
export class ApiKeys extends Context.Service<
  ApiKeys,
  {
    /** The secret is told once, here. `expiresAt` in Unix milliseconds. */
    readonly create: (input: {
      readonly orgId: OrgId
      readonly userId: UserId
      readonly name: string
      readonly scopes: ReadonlyArray<Scope>
      readonly expiresAt?: number
    }) => Effect.Effect<{ readonly key: ApiKey; readonly secret: Redacted.Redacted<string> }>
    /**
     * Who a bearer token is, if it is a live key of an active organisation. Answers are cached for 30 s at most and dropped at once when a key or an organisation
     * changes (`NOTIFY api_keys`); `last_used_at` is written at most once a minute.
     */
    readonly authenticate: (token: Redacted.Redacted<string>) => Effect.Effect<Option.Option<Caller>>
    readonly list: (orgId: OrgId) => Effect.Effect<ReadonlyArray<ApiKey>>
    /** None where the organisation has no such live key. */
    readonly revoke: (orgId: OrgId, id: KeyId) => Effect.Effect<Option.Option<ApiKey>>
  }
>()("seatrial/ApiKeys") {}
