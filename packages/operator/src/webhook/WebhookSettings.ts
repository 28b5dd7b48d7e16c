import { Config, Redacted, Schema } from "effect"

/** Where alarms are sent. */
export interface WebhookSettings {
  /** It is secret: receivers put tokens into the address. */
  readonly url: Redacted.Redacted<string>
  /** The key of the signatures; null: messages are not signed. */
  readonly key: Redacted.Redacted<Uint8Array> | null
}

/** `fetch` sends nothing to an address with a user or a password. */
const isAddress = (text: string): boolean => {
  if (!URL.canParse(text)) return false
  const { password, protocol, username } = new URL(text)
  return /^https?:$/.test(protocol) && username === "" && password === ""
}
const Address = Schema.String.check(Schema.makeFilter(isAddress))

/** `whsec_` and 24 to 64 bytes in base64, as Standard Webhooks writes keys. */
const SigningKey = Schema.TemplateLiteral(["whsec_", Schema.String]).pipe(
  Schema.check(
    Schema.makeFilter((text) => {
      const bytes = Buffer.from(text.slice(6), "base64")
      return bytes.length >= 24 && bytes.length <= 64 && bytes.toString("base64").replace(/=+$/, "") === text.slice(6).replace(/=+$/, "")
    })
  )
)

/** The value of a variable; an empty one counts as unset. */
const unlessEmpty = <A>(name: string, config: Config.Config<A>): Config.Config<A | null> =>
  Config.String(name).pipe(
    Config.withDefault(""),
    Config.flatMap((text) => (text === "" ? Config.succeed(null) : config))
  )

/** Null if no webhook is set. */
export const WebhookSettings: Config.Config<WebhookSettings | null> = Config.all({
  url: unlessEmpty("OPERATOR_WEBHOOK_URL", Config.schema(Address, "OPERATOR_WEBHOOK_URL")),
  key: unlessEmpty("OPERATOR_WEBHOOK_SECRET", Config.schema(SigningKey, "OPERATOR_WEBHOOK_SECRET"))
}).pipe(
  Config.map(({ key, url }) =>
    url === null ? null : { url: Redacted.make(url), key: key === null ? null : Redacted.make(Buffer.from(key.slice(6), "base64")) }
  )
)
