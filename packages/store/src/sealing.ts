import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto"
import { Schema } from "effect"

/** The 32 bytes that seal tokens, as base64. */
export const EncryptionKey = Schema.Uint8ArrayFromBase64.check(
  Schema.makeFilter((bytes) => bytes.length === 32, { message: "Expected 32 bytes in base64, as `openssl rand -base64 32` makes them" })
)

/** Which key sealed a value: the first byte of it, so that a later key can stand beside this one. */
const keyId = 1
const nonceBytes = 12
const tagBytes = 16

/** AES-256-GCM of a text, bound to its `owner`: key id, random nonce, tag, ciphertext. */
export const seal = (key: Uint8Array, text: string, owner: string): Uint8Array => {
  const nonce = randomBytes(nonceBytes)
  const cipher = createCipheriv("aes-256-gcm", key, nonce)
  cipher.setAAD(Buffer.from(owner))
  const sealed = Buffer.concat([cipher.update(text, "utf8"), cipher.final()])
  return Buffer.concat([Uint8Array.of(keyId), nonce, cipher.getAuthTag(), sealed])
}

/** The text of a sealed value. Throws where it was sealed with another key or for another owner, or was changed. */
export const unseal = (key: Uint8Array, sealed: Uint8Array, owner: string): string => {
  if (sealed[0] !== keyId) throw new Error(`The value was sealed with the key ${sealed[0]}, which is not configured`)
  const start = 1 + nonceBytes
  const decipher = createDecipheriv("aes-256-gcm", key, sealed.subarray(1, start), { authTagLength: tagBytes })
  decipher.setAAD(Buffer.from(owner))
  decipher.setAuthTag(sealed.subarray(start, start + tagBytes))
  return Buffer.concat([decipher.update(sealed.subarray(start + tagBytes)), decipher.final()]).toString("utf8")
}
