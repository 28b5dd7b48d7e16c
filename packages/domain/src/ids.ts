import { Brand, Clock, Context, Effect, Layer, Schema } from "effect"

const alphabet = "0123456789abcdefghjkmnpqrstvwxyz"

const id = (prefix: string) =>
  Schema.String.check(
    Schema.isPattern(new RegExp(`^${prefix}_[0-7][0-9a-hjkmnp-tv-z]{25}$`, "u"), { message: `Expected an id: ${prefix}_ and 26 digits and lower-case letters` })
  )

export const OrgId = id("org").pipe(Schema.brand("OrgId"))
export type OrgId = typeof OrgId.Type
export const UserId = id("usr").pipe(Schema.brand("UserId"))
export type UserId = typeof UserId.Type
export const KeyId = id("key").pipe(Schema.brand("KeyId"))
export type KeyId = typeof KeyId.Type
export const ModelId = id("mdl").pipe(Schema.brand("ModelId"))
export type ModelId = typeof ModelId.Type
export const RevisionId = id("rev").pipe(Schema.brand("RevisionId"))
export type RevisionId = typeof RevisionId.Type
export const DeploymentId = id("dep").pipe(Schema.brand("DeploymentId"))
export type DeploymentId = typeof DeploymentId.Type
export const RequestId = id("req").pipe(Schema.brand("RequestId"))
export type RequestId = typeof RequestId.Type
export const AuditEventId = id("aud").pipe(Schema.brand("AuditEventId"))
export type AuditEventId = typeof AuditEventId.Type
export const InvitationId = id("inv").pipe(Schema.brand("InvitationId"))
export type InvitationId = typeof InvitationId.Type
export const SuspicionId = id("sus").pipe(Schema.brand("SuspicionId"))
export type SuspicionId = typeof SuspicionId.Type

const prefixes = new Map<unknown, string>([
  [OrgId, "org"],
  [UserId, "usr"],
  [KeyId, "key"],
  [ModelId, "mdl"],
  [RevisionId, "rev"],
  [DeploymentId, "dep"],
  [RequestId, "req"],
  [AuditEventId, "aud"],
  [InvitationId, "inv"],
  [SuspicionId, "sus"]
])

const fiveBytes = (a: number, b: number, c: number, d: number, e: number): string =>
  alphabet.charAt(a >> 3) +
  alphabet.charAt(((a & 7) << 2) | (b >> 6)) +
  alphabet.charAt((b >> 1) & 31) +
  alphabet.charAt(((b & 1) << 4) | (c >> 4)) +
  alphabet.charAt(((c & 15) << 1) | (d >> 7)) +
  alphabet.charAt((d >> 2) & 31) +
  alphabet.charAt(((d & 3) << 3) | (e >> 5)) +
  alphabet.charAt(e & 31)

/**
 * The 26 characters of an id: lower-case Crockford base32 of a UUIDv7 (RFC 9562) with `millis` (Unix milliseconds) and
 * 74 random bits. `random` must have ten bytes. Text order is time order.
 */
export const encodeIdBody = (millis: number, random: Uint8Array): string => {
  // 26 characters hold 130 bits, of which the first two are zero. The time takes ten characters; each five of the other
  // ten bytes take eight.
  let rest = millis % 0x1_0000_0000_0000
  let text = ""
  for (let index = 0; index < 10; index++) {
    text = alphabet.charAt(rest % 32) + text
    rest = Math.floor(rest / 32)
  }
  const byte = (index: number) => random[index] ?? 0
  return text + fiveBytes(0x70 | (byte(0) & 0x0f), byte(1), 0x80 | (byte(2) & 0x3f), byte(3), byte(4)) + fiveBytes(byte(5), byte(6), byte(7), byte(8), byte(9))
}

/** Unix milliseconds of the id's creation: the first 48 bits of its UUIDv7. */
export const idMillis = (id: string): number => {
  const body = id.slice(id.indexOf("_") + 1)
  let millis = 0
  for (let index = 0; index < 10; index++) millis = millis * 32 + alphabet.indexOf(body.charAt(index))
  return millis
}

const pool = new Uint8Array(4_096)
let used = pool.length

/** Ten cryptographically secure random bytes. The pool avoids a system call per id, which would dominate the cost. */
const tenRandomBytes = (): Uint8Array => {
  if (used + 10 > pool.length) {
    crypto.getRandomValues(pool)
    used = 0
  }
  used += 10
  return pool.subarray(used - 10, used)
}

const makeId = <A>(kind: Schema.Codec<A, string>, millis: number): A =>
  Schema.decodeSync(kind)(`${prefixes.get(kind)}_${encodeIdBody(millis, tenRandomBytes())}`)

/**
 * Brands a request id without validation: the gateway creates one per request, and validation would double the cost.
 */
const asRequestId = Brand.nominal<RequestId>()

/** Makes ids from the clock and secure randomness. */
export class Ids extends Context.Service<
  Ids,
  {
    /**
     * Makes an id of the given kind (one of the id schemas) for a record with `created_at` = `millis` (Unix
     * milliseconds; default: now).
     */
    readonly make: <A>(kind: Schema.Codec<A, string>, millis?: number) => Effect.Effect<A>
    /** Makes a request id synchronously. */
    readonly requestId: (millis: number) => RequestId
  }
>()("seatrial/Ids") {
  static readonly layer = Layer.succeed(
    Ids,
    Ids.of({
      make: (kind, millis) =>
        millis === undefined ? Effect.map(Clock.currentTimeMillis, (now) => makeId(kind, now)) : Effect.sync(() => makeId(kind, millis)),
      requestId: (millis) => asRequestId(`req_${encodeIdBody(millis, tenRandomBytes())}`)
    })
  )
}
