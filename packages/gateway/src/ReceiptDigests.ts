import { createHmac, type Hmac, randomBytes } from "node:crypto"
import type { IncomingHttpHeaders, ServerResponse } from "node:http"
import { digestAlgorithm, digestHeader, digestSaltHeader, type ReceiptDigests as SignedDigests } from "@seatrial/domain"
import { Effect } from "effect"
import { invalidParameter, type Refusal } from "./refusals.ts"

/** Bytes of a salt: RFC 9901 recommends 128 bits. The fixed length keeps one digest from having two openings. */
const saltLength = 16

/** Bytes that are hashed before other requests get their turn. */
const sliceLength = 256 * 1024

const readSalt = (header: string | ReadonlyArray<string> | undefined): Buffer | Refusal => {
  if (header === undefined) return randomBytes(saltLength)
  const salt = typeof header === "string" ? Buffer.from(header, "base64url") : Buffer.alloc(0)
  if (salt.length === saltLength && salt.toString("base64url") === header) return salt
  return invalidParameter(`Send ${digestSaltHeader} as ${saltLength} random bytes in base64url, 22 characters, or leave it out.`, digestSaltHeader)
}

/** Hashes a body in slices. Other requests get their turn between them. */
const hashSlices = Effect.fnUntraced(function* (hmac: Hmac, body: Buffer) {
  for (let at = 0; at < body.length; at += sliceLength) {
    if (at > 0) yield* Effect.promise(() => new Promise<void>((resolve) => setImmediate(resolve)))
    hmac.update(body.subarray(at, at + sliceLength))
  }
})

/**
 * Salted digests of the bytes of a request and its answer, for a receipt. Only the caller gets the salt; without it,
 * no one can compare the digests with guesses. The commitment is an HMAC with the salt as its key.
 */
export class ReceiptDigests {
  readonly #salt: Buffer
  readonly #answer: Hmac
  #request = ""

  private constructor(salt: Buffer) {
    this.#salt = salt
    this.#answer = createHmac("sha256", salt)
  }

  /** Reads the caller's headers and adds the salt to the response. */
  static open(headers: IncomingHttpHeaders, response: ServerResponse): ReceiptDigests | Refusal {
    if (headers[digestHeader] !== digestAlgorithm) {
      return invalidParameter(`${digestHeader} must be ${digestAlgorithm}. Leave it out for a receipt without digests.`, digestHeader)
    }
    const salt = readSalt(headers[digestSaltHeader])
    if (!Buffer.isBuffer(salt)) return salt
    response.setHeader(digestSaltHeader, salt.toString("base64url"))
    return new ReceiptDigests(salt)
  }

  /** Hashes the body of the request. */
  hashRequest(body: Buffer): Effect.Effect<void> {
    const hmac = createHmac("sha256", this.#salt)
    return Effect.map(hashSlices(hmac, body), () => {
      this.#request = hmac.digest("base64url")
    })
  }

  /** Hashes the complete answer, which is large. */
  hashLargeAnswer(body: Buffer): Effect.Effect<void> {
    return hashSlices(this.#answer, body)
  }

  /** Hashes bytes that are sent to the caller next. */
  hashAnswer(text: string, encoding: "latin1" | "utf8") {
    this.#answer.update(text, encoding)
  }

  /**
   * Returns the digests; call it once. `isComplete`: whether the caller gets the complete answer. If not, there is no
   * digest of the answer.
   */
  digests(isComplete: boolean): SignedDigests {
    const request = { alg: digestAlgorithm, request: this.#request } as const
    return isComplete ? { ...request, answer: this.#answer.digest("base64url") } : request
  }
}
