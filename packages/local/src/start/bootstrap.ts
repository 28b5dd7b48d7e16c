import { scopes } from "@seatrial/domain"
import { ApiKeys, Organizations } from "@seatrial/store"
import { Effect, Option, Redacted } from "effect"
import { StateFolder } from "./StateFolder.ts"

/** Creates the organization, user and key of a local system. The key is reused after a restart while it is valid. */
export const bootstrap = Effect.fn("bootstrap")(function* () {
  const folder = yield* StateFolder
  const keys = yield* ApiKeys
  const organizations = yield* Organizations
  const known = folder.secrets.api_key
  if (known !== null && Option.isSome(yield* keys.authenticate(Redacted.make(known)))) return known

  const existing = yield* organizations.findBySlug("local")
  const org = Option.isSome(existing) ? existing.value : yield* Effect.orDie(organizations.create({ slug: "local", name: "Local" }))
  const user = yield* organizations.addUser({ orgId: org.id, email: "you@localhost", name: "You", role: "owner" })
  if (!org.firstPurchase) yield* organizations.recordPurchase({ orgId: org.id, micros: 1_000_000n })
  const { secret } = yield* keys.create({ orgId: org.id, userId: user.id, name: "local", scopes })
  yield* folder.keepApiKey(Redacted.value(secret))
  return Redacted.value(secret)
})
