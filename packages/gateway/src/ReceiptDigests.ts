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

const hash = Effect.fnUntraced(function* (salt: Buffer, body: Buffer) {
  const hmac = createHmac("sha256", salt)
  for (let at = 0; at < body.length; at += sliceLength) {
    if (at > 0) yield* Effect.promise(() => new Promise<void>((resolve) => setImmediate(resolve)))
    hmac.update(body.subarray(at, at + sliceLength))
  }
  return hmac.digest("base64url")
})

/**
 * Salted digests of a request's and its answer's bytes, for a receipt. The salt goes to the caller and nowhere else: without it the digests cannot be compared with guesses. An HMAC
 * with the salt as its key is the commitment.
 */
export class ReceiptDigests {
  readonly #salt: Buffer
  readonly #answer: Hmac
  #request = ""

  private constructor(salt: Buffer) {
    this.#salt = salt
    this.#answer = createHmac("sha256", salt)
  }

  /** Reads the caller's headers and puts the salt on the answer. */
  static open(headers: IncomingHttpHeaders, response: ServerResponse): ReceiptDigests | Refusal {
    if (headers[digestHeader] !== digestAlgorithm) {
      return invalidParameter(`${digestHeader} must be ${digestAlgorithm}. Leave it out for a receipt without digests.`, digestHeader)
    }
    const salt = readSalt(headers[digestSaltHeader])
    if (!Buffer.isBuffer(salt)) return salt
    response.setHeader(digestSaltHeader, salt.toString("base64url"))
    return new ReceiptDigests(salt)
  }

  /** Hashes the body of the request. Other requests have their turn between the parts of a large one. */
  hashRequest(body: Buffer): Effect.Effect<void> {
    return Effect.map(hash(this.#salt, body), (digest) => {
      this.#request = digest
    })
  }

  /** Hashes what goes out to the caller next. */
  hashAnswer(text: string, encoding: "latin1" | "utf8") {
    this.#answer.update(text, encoding)
  }

  /** The digests, once. `isComplete`: whether the caller gets the whole answer, without which there is no digest of it. */
  digests(isComplete: boolean): SignedDigests {
    const request = { alg: digestAlgorithm, request: this.#request } as const
    return isComplete ? { ...request, answer: this.#answer.digest("base64url") } : request
  }
}
