import { Ids, type OrgId, scopes } from "@seatrial/domain"
import { Effect, Layer, Option } from "effect"
import { inject } from "vitest"
import { ApiKeys, type Caller, type CreateInput, Deployments, HubConnections, Organizations, Runs } from "../src/index.ts"
import { layerTestDatabase } from "../src/testing.ts"

/** A database of the suite's own, and ids. */
export const layerDatabase = Layer.mergeAll(Layer.unwrap(Effect.sync(() => layerTestDatabase(inject("postgres")))), Ids.layer)

/** An organisation with a member and a key of all scopes, as a caller. */
export const makeCaller = Effect.fnUntraced(function* (slug: string) {
  const organizations = yield* Organizations
  const keys = yield* ApiKeys
  const organization = yield* organizations.create({ slug, name: slug })
  const user = yield* organizations.addUser({ orgId: organization.id, email: `owner@${slug}.example`, name: "Owner", role: "owner" })
  yield* organizations.recordPurchase({ orgId: organization.id, micros: 5_000_000n })
  const { secret } = yield* keys.create({ orgId: organization.id, userId: user.id, name: "all", scopes })
  const caller: Caller = Option.getOrThrow(yield* keys.authenticate(secret))
  return { caller, secret, user, organization }
})

export const newModel = (caller: Caller, idempotencyKey: string, slug = "tiny", over: Partial<CreateInput> = {}): CreateInput => ({
  caller,
  idempotencyKey,
  inputHash: "a".repeat(64),
  target: { _tag: "NewModel", source: { kind: "model_hub", repo: "seatrial/tiny-chat", ref: "main" }, slug },
  serving: {},
  serve: true,
  ...over
})

export const layerApi = Layer.mergeAll(Organizations.layerSql, ApiKeys.layerSql, Deployments.layerSql).pipe(Layer.provideMerge(layerDatabase))

export type { OrgId }
export { HubConnections, Runs }
