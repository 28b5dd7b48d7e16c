import { createHash, createPrivateKey, createPublicKey, type KeyObject, sign } from "node:crypto"
import { canonicalJson, type OrgId, type SignatureHeader, type SignedReceipt, type SigningKey, type SigningKeySet } from "@seatrial/domain"
import type { StoredReceipt } from "@seatrial/store"
import { Context, Effect, Layer, Option, Redacted, Schema } from "effect"
import { ServerSettings } from "./ServerSettings.ts"

/** A signed receipt: `body` is its canonical JSON, `protected` and `signature` are the other parts of the JWS. */
interface Signed {
  readonly body: string
  readonly protected: string
  readonly signature: string
}

const base64Url = (text: string): string => Buffer.from(text, "utf8").toString("base64url")

/** The PKCS #8 prefix of the 32 bytes of an Ed25519 key (RFC 8410). */
const pkcs8 = Buffer.from("302e020100300506032b657004220420", "hex")

const Exported = Schema.Struct({ x: Schema.String })

/** The public key as a JWK, with its thumbprint as key ID. */
const publicKeyOf = (x: string): SigningKey => {
  const kid = createHash("sha256")
    .update(canonicalJson({ crv: "Ed25519", kty: "OKP", x }))
    .digest("base64url")
  return { kty: "OKP", crv: "Ed25519", x, kid, alg: "EdDSA", use: "sig" }
}

interface Entry {
  readonly secret: KeyObject | null
  readonly key: SigningKey
}

/**
 * Reads one valid entry of the setting: 32 secret bytes in base64, or `public:` and the 32 public bytes in base64url.
 */
const entryOf = (text: string): Entry => {
  if (text.startsWith("public:")) return { secret: null, key: publicKeyOf(text.slice("public:".length)) }
  const secret = createPrivateKey({ key: Buffer.concat([pkcs8, Buffer.from(text, "base64")]), format: "der", type: "pkcs8" })
  const { x } = Schema.decodeUnknownSync(Exported)(createPublicKey(secret).export({ format: "jwk" }))
  return { secret, key: publicKeyOf(x) }
}

/**
 * Signs receipts with the first key of the settings. Signatures are deterministic: all servers sign a receipt
 * identically.
 */
export class ReceiptSigner extends Context.Service<
  ReceiptSigner,
  {
    /** Signs a receipt of the organization. Null if the settings have no signing key. */
    readonly sign: ((receipt: StoredReceipt, orgId: OrgId) => Signed) | null
    /** The public keys that verify the signatures. */
    readonly keySet: SigningKeySet
  }
>()("seatrial/ReceiptSigner") {
  static readonly layer = Layer.effect(
    ReceiptSigner,
    Effect.gen(function* () {
      const { issuer, signingKeys } = yield* ServerSettings
      const entries = Option.match(signingKeys, { onNone: () => [], onSome: (keys) => Redacted.value(keys).map(entryOf) })
      const [current] = entries
      const keySet = { keys: entries.map(({ key }) => key) }
      if (current === undefined || current.secret === null) {
        yield* Effect.logWarning("Receipts are not signed: SEATRIAL_SIGNING_KEYS is not set.")
        return ReceiptSigner.of({ sign: null, keySet })
      }
      const { key, secret } = current
      return ReceiptSigner.of({
        sign: ({ digests, json }, orgId) => {
          const header: SignatureHeader = {
            ...{ alg: "EdDSA", iss: issuer, kid: key.kid, org: orgId, typ: "seatrial-receipt+jws" },
            ...(digests === null ? {} : { digests })
          }
          const head = base64Url(canonicalJson(header))
          const body = canonicalJson(JSON.parse(json))
          return { body, protected: head, signature: sign(null, Buffer.from(`${head}.${base64Url(body)}`, "latin1"), secret).toString("base64url") }
        },
        keySet
      })
    })
  )
}

/** The JWS with its payload. */
export const withPayload = ({ body, ...jws }: Signed): SignedReceipt => ({ payload: base64Url(body), ...jws })

/** The JWS with detached payload, for a header of the response whose body is the payload. */
export const detached = ({ protected: head, signature }: Signed): string => `${head}..${signature}`
