import { createHash, createHmac, timingSafeEqual } from "node:crypto"
import type { OrgId } from "@seatrial/domain"
import type { Position } from "@seatrial/store"
import { Context, Effect, Layer, Option, Redacted } from "effect"
import { ServerSettings } from "./ServerSettings.ts"

/** The list that a cursor belongs to. `filters`: the query parameters except `cursor` and `limit`. */
export interface ListIdentity {
  readonly orgId: OrgId
  readonly operation: string
  readonly filters: Readonly<Record<string, string | number>>
}

const version = 1
const timeBytes = 6
const hashBytes = 12
const macBytes = 16
const headBytes = 1 + timeBytes + hashBytes

const identityHash = ({ filters, operation, orgId }: ListIdentity): Uint8Array => {
  const sorted = Object.entries(filters).sort(([a], [b]) => (a < b ? -1 : 1))
  return createHash("sha256")
    .update(JSON.stringify([orgId, operation, sorted]))
    .digest()
    .subarray(0, hashBytes)
}

/**
 * Signed list cursors. A cursor contains the time and ID of the last row and is bound to the organization, the
 * operation and the filters. At most 256 characters for IDs of up to 150 characters.
 */
export class Cursors extends Context.Service<
  Cursors,
  {
    readonly encode: (list: ListIdentity, position: Position) => string
    /** None unless `encode` returned exactly this text for this list. */
    readonly decode: (list: ListIdentity, cursor: string) => Option.Option<Position>
  }
>()("seatrial/Cursors") {
  static readonly layer = Layer.effect(
    Cursors,
    Effect.gen(function* () {
      const { cursorKey } = yield* ServerSettings
      const sign = (bytes: Uint8Array) => createHmac("sha256", Redacted.value(cursorKey)).update(bytes).digest().subarray(0, macBytes)

      return Cursors.of({
        encode: (list, position) => {
          const id = Buffer.from(position.id, "utf8")
          const bytes = Buffer.alloc(headBytes + id.length + macBytes)
          bytes.writeUInt8(version, 0)
          bytes.writeUIntBE(position.createdAt, 1, timeBytes)
          bytes.set(identityHash(list), 1 + timeBytes)
          bytes.set(id, headBytes)
          bytes.set(sign(bytes.subarray(0, headBytes + id.length)), headBytes + id.length)
          return bytes.toString("base64url")
        },
        decode: (list, cursor) => {
          const bytes = Buffer.from(cursor, "base64url")
          // `Buffer.from` skips characters that are not base64url. Compare the re-encoded text, so that each cursor has
          // one spelling.
          if (bytes.length <= headBytes + macBytes || bytes.toString("base64url") !== cursor) return Option.none()
          const signed = bytes.subarray(0, bytes.length - macBytes)
          if (!timingSafeEqual(sign(signed), bytes.subarray(signed.length)) || bytes.readUInt8(0) !== version) return Option.none()
          if (!timingSafeEqual(identityHash(list), signed.subarray(1 + timeBytes, headBytes))) return Option.none()
          return Option.some({ createdAt: bytes.readUIntBE(1, timeBytes), id: signed.toString("utf8", headBytes) })
        }
      })
    })
  )
}
