import type { OrgId, UserId } from "@seatrial/domain"
import { Context, Data, type Effect, type Option } from "effect"

export interface Organization {
  readonly id: OrgId
  readonly slug: string
  readonly name: string
  readonly status: "active" | "suspended"
  /** Whether the first purchase was made, without which nothing is deployed. */
  readonly firstPurchase: boolean
}

export interface User {
  readonly id: UserId
  readonly email: string
  readonly name: string
}

/** The slug or the e-mail address is taken. */
export class NameTaken extends Data.TaggedError("NameTaken")<{ readonly name: string }> {}

/** Organisations, their users and their purchases. Each change writes its audit event in the same transaction, as actor `admin`. */
export class Organizations extends Context.Service<
  Organizations,
  {
    readonly create: (input: { readonly slug: string; readonly name: string }) => Effect.Effect<Organization, NameTaken>
    readonly findBySlug: (slug: string) => Effect.Effect<Option.Option<Organization>>
    readonly list: Effect.Effect<ReadonlyArray<Organization>>
    /** Makes the user where the address is new, and the membership where there is none. */
    readonly addUser: (input: {
      readonly orgId: OrgId
      readonly email: string
      readonly name: string
      readonly role: "owner" | "member"
    }) => Effect.Effect<User>
    readonly findUser: (orgId: OrgId, email: string) => Effect.Effect<Option.Option<User>>
    /** Records a purchase in micro-dollars; the first one allows deployments. */
    readonly recordPurchase: (input: { readonly orgId: OrgId; readonly micros: bigint }) => Effect.Effect<void>
    readonly setStatus: (orgId: OrgId, status: Organization["status"]) => Effect.Effect<void>
  }
>()("seatrial/Organizations") {}
