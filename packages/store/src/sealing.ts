import { createCipheriv, createDecipheriv, createHash, randomBytes } from "node:crypto"
import { Schema, SchemaGetter } from "effect"

/** The 32 bytes of an encryption key, as base64. */
const EncryptionKey = Schema.Uint8ArrayFromBase64.check(
  Schema.makeFilter((bytes) => bytes.length === 32, { message: "Expected 32 bytes in base64, as printed by `openssl rand -base64 32`" })
)

/** The current key, then earlier keys for decryption only; separated by commas. */
export const EncryptionKeys = Schema.String.pipe(
  Schema.decodeTo(Schema.Array(Schema.String), {
    decode: SchemaGetter.transform((text: string) => text.split(",").map((part) => part.trim())),
    encode: SchemaGetter.transform((parts: ReadonlyArray<string>) => parts.join(","))
  }),
  Schema.decodeTo(Schema.NonEmptyArray(EncryptionKey))
)
export type EncryptionKeys = typeof EncryptionKeys.Type

/**
 * The first byte of a sealed value is its format. The first format contains no key ID; its values are tried with each
 * configured key.
 */
const formatWithoutKeyId = 1
const formatWithKeyId = 2
const keyIdBytes = 8
const nonceBytes = 12
const tagBytes = 16

const keyId = (key: Uint8Array): Uint8Array => createHash("sha256").update("seatrial.encryption-key\0").update(key).digest().subarray(0, keyIdBytes)

/**
 * The prefix of values that this key sealed: the format and the key's ID. The ID is derived from the key but does not
 * reveal it.
 */
export const headerOf = (key: Uint8Array): Uint8Array => Buffer.concat([Uint8Array.of(formatWithKeyId), keyId(key)])

/** Encrypts a text with the current key (AES-256-GCM), bound to its `owner`: header, random nonce, tag, ciphertext. */
export const seal = ([key]: EncryptionKeys, text: string, owner: string): Uint8Array => {
  const nonce = randomBytes(nonceBytes)
  const header = headerOf(key)
  const cipher = createCipheriv("aes-256-gcm", key, nonce)
  cipher.setAAD(Buffer.concat([header, Buffer.from(owner)]))
  const sealed = Buffer.concat([cipher.update(text, "utf8"), cipher.final()])
  return Buffer.concat([header, nonce, cipher.getAuthTag(), sealed])
}

const open = (key: Uint8Array, sealed: Uint8Array, start: number, aad: Uint8Array): string => {
  const body = start + nonceBytes
  const decipher = createDecipheriv("aes-256-gcm", key, sealed.subarray(start, body), { authTagLength: tagBytes })
  decipher.setAAD(aad)
  decipher.setAuthTag(sealed.subarray(body, body + tagBytes))
  return Buffer.concat([decipher.update(sealed.subarray(body + tagBytes)), decipher.final()]).toString("utf8")
}

const unsealFailed = "The value cannot be decrypted: its key is not in SEATRIAL_ENCRYPTION_KEY, it belongs to another owner, or it was changed."

/** Decrypts a sealed value. Throws if no key matches, if it was sealed for another owner, or if it was changed. */
export const unseal = (keys: EncryptionKeys, sealed: Uint8Array, owner: string): string => {
  if (sealed[0] === formatWithKeyId) {
    const header = sealed.subarray(0, 1 + keyIdBytes)
    const key = keys.find((known) => Buffer.compare(headerOf(known), header) === 0)
    if (key === undefined) throw new Error(unsealFailed)
    return open(key, sealed, header.length, Buffer.concat([header, Buffer.from(owner)]))
  }
  if (sealed[0] !== formatWithoutKeyId) throw new Error(unsealFailed)
  for (const key of keys) {
    try {
      return open(key, sealed, 1, Buffer.from(owner))
    } catch {}
  }
  throw new Error(unsealFailed)
}
