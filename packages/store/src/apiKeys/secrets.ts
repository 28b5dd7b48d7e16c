import { hash, randomBytes } from "node:crypto"
import { makeApiKey } from "@seatrial/domain"

export const sha256Of = (text: string): string => hash("sha256", text, "hex")

/** A new secret, and the parts of it that are stored. */
export const makeSecret = () => {
  const secret = makeApiKey(randomBytes(128))
  return { secret, sha256: Buffer.from(sha256Of(secret), "hex"), prefix: secret.slice(0, 13), lastFour: secret.slice(-4) }
}
