import type { OrgId, UserId } from "@seatrial/domain"
import { Context, type Effect, type Option, type Redacted } from "effect"

/** Hub tokens of users, encrypted at rest (AES-256-GCM) with the key of `SEATRIAL_ENCRYPTION_KEY`. */
export class HubConnections extends Context.Service<
  HubConnections,
  {
    readonly set: (orgId: OrgId, userId: UserId, token: Redacted.Redacted<string>) => Effect.Effect<void>
    readonly find: (orgId: OrgId, userId: UserId) => Effect.Effect<Option.Option<Redacted.Redacted<string>>>
    readonly remove: (orgId: OrgId, userId: UserId) => Effect.Effect<void>
  }
>()("seatrial/HubConnections") {}
