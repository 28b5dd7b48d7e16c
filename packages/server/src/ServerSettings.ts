import { type Network, networkSetting, originSetting, type Rate } from "@seatrial/domain"
import type { RetentionSettings } from "@seatrial/store"
import { Config, Context, Duration, Layer, Option, Redacted, Schema } from "effect"
import { type ClientTimeouts, defaultClientTimeouts } from "./nodeServer.ts"

/** One setting as `--help` shows it. A setting without `default` is required. */
export interface Setting {
  readonly name: string
  readonly description: string
  readonly default?: string
}

/** The server's own settings, read from the environment. The settings of the store are separate. */
export const serverSettings: ReadonlyArray<Setting> = [
  { name: "SERVER_HOST", description: "Address to listen on.", default: "127.0.0.1" },
  { name: "SERVER_PORT", description: "Port to listen on; 0 takes a free one.", default: "8080" },
  { name: "SERVER_METRICS_PORT", description: "Port of /metrics, never the public port; 0 for none.", default: "0" },
  { name: "SERVER_METRICS_HOST", description: "Address that /metrics listens on.", default: "0.0.0.0" },
  { name: "SEATRIAL_CURSOR_KEY", description: "Secret of at least 16 characters that list cursors are signed with; the same for all servers." },
  {
    name: "SEATRIAL_ENCRYPTION_KEY",
    description: "Key that hub tokens are encrypted with at rest: 32 bytes in base64; earlier keys may follow it, separated by commas."
  },
  {
    name: "SEATRIAL_SIGNING_KEYS",
    description:
      "Keys that sign receipts, separated by commas. The first one signs: 32 bytes in base64. Earlier keys follow, in the same form or as public:X. X is the value of x of that key in /.well-known/jwks.json. If empty, receipts are not signed.",
    default: ""
  },
  { name: "SERVER_REQUEST_TIMEOUT", description: "How long a request may take before it is answered with 503.", default: "60 seconds" },
  { name: "SERVER_MAX_BODY_BYTES", description: "Largest request body, in bytes.", default: "1048576" },
  { name: "SERVER_REQUIRE_FIRST_PURCHASE", description: "Whether an organization must make a purchase before it can deploy.", default: "true" },
  {
    name: "SERVER_ISSUER",
    description: "Issuer of receipts (`iss` in their signatures), for example the address of the API; SERVER_PLATFORM_NAME if empty",
    default: ""
  },
  { name: "SERVER_PLATFORM_NAME", description: "Owner of the published models: `owned_by` in the public catalog.", default: "seatrial" },
  { name: "SERVER_READS_PER_KEY", description: "Reads of one API key per second.", default: "25" },
  { name: "SERVER_READS_PER_KEY_BURST", description: "Largest burst of reads with one API key.", default: "50" },
  { name: "SERVER_READS_PER_ORG", description: "Reads of one organization per second.", default: "100" },
  { name: "SERVER_READS_PER_ORG_BURST", description: "Largest burst of reads of one organization.", default: "200" },
  { name: "SERVER_PREVIEWS_PER_ORG", description: "Previews of one organization per minute. Also the largest burst.", default: "30" },
  { name: "SERVER_WRITES_PER_ORG", description: "Creates, cancels and model changes of one organization per minute. Also the largest burst.", default: "20" },
  {
    name: "SERVER_CORS_ORIGINS",
    description: "Origins whose pages may call the API from a browser (CORS), exact and separated by commas.",
    default: "empty"
  },
  {
    name: "SERVER_TRUSTED_PROXIES",
    description:
      "Networks of the proxies in front of the server, separated by commas, for example 10.0.0.0/8. The client's address is then the last one in X-Forwarded-For outside these networks. Failed API keys are limited per address.",
    default: "none"
  },
  { name: "SERVER_HEADERS_TIMEOUT", description: "How long a client may take to send the headers of a request.", default: "10 seconds" },
  { name: "SERVER_RECEIVE_TIMEOUT", description: "How long a client may take to send a complete request.", default: "60 seconds" },
  {
    name: "SERVER_KEEP_ALIVE_TIMEOUT",
    description: "How long an idle connection is kept open; must be longer than the idle timeout of the load balancer.",
    default: "65 seconds"
  },
  {
    name: "SERVER_STALLED_TIMEOUT",
    description: "How long a connection may be without traffic; must be longer than SERVER_REQUEST_TIMEOUT.",
    default: "90 seconds"
  },
  { name: "SERVER_SHUTDOWN_TIMEOUT", description: "How long requests in flight may take after the server receives a stop signal.", default: "20 seconds" },
  {
    name: "SERVER_KEEP_REQUESTS_MONTHS",
    description:
      "Whole months of requests to keep in addition to the current one, at least 1. 0 keeps all. Older months are detached and dropped a day later; their sums are kept.",
    default: "0"
  },
  {
    name: "SERVER_KEEP_RECEIPTS_MONTHS",
    description: "Whole months of receipts to keep in addition to the current one. Receipts are never dropped before their requests. 0 keeps all.",
    default: "0"
  },
  { name: "HF_ENDPOINT", description: "Address of the model hub.", default: "https://huggingface.co" }
]

const positive = (name: string, value: number) =>
  Config.schema(Schema.NumberFromString.check(Schema.isFinite(), Schema.isGreaterThan(0)), name).pipe(Config.withDefault(value))

/** A bucket must hold at least one token, because otherwise it would refuse every call. */
const burst = (name: string, value: number) =>
  Config.schema(Schema.NumberFromString.check(Schema.isFinite(), Schema.isGreaterThanOrEqualTo(1)), name).pipe(Config.withDefault(value))

const perSecond = (name: string, rate: number, atOnce: number) => Config.all({ perSecond: positive(name, rate), burst: burst(`${name}_BURST`, atOnce) })

const perMinute = (name: string, rate: number) => burst(name, rate).pipe(Config.map((value): Rate => ({ perSecond: value / 60, burst: value })))

/** Whether the text is the exact encoding of 32 bytes. Padding is optional. */
const isKey = (text: string, encoding: "base64" | "base64url"): boolean => {
  const bytes = Buffer.from(text, encoding)
  return bytes.length === 32 && bytes.toString(encoding).replace(/=+$/, "") === text.replace(/=$/, "")
}

const signingKeysOf = (text: string): ReadonlyArray<string> =>
  text
    .split(",")
    .map((entry) => entry.trim())
    .filter((entry) => entry !== "")

const publicKey = /^public:(?<x>[^=]*)$/u

/** The first entry signs and therefore must be a secret key. Duplicates are invalid. */
const SigningKeys = Schema.String.check(
  Schema.makeFilter((text) => {
    const entries = signingKeysOf(text)
    const isValid = (entry: string, index: number) => {
      const x = publicKey.exec(entry)?.groups?.x
      return entries.indexOf(entry) === index && (x === undefined ? isKey(entry, "base64") : index > 0 && isKey(x, "base64url"))
    }
    return entries.every(isValid) ? undefined : "is a list of signing keys"
  })
)

const signingKeys = Config.schema(Schema.Redacted(SigningKeys), "SEATRIAL_SIGNING_KEYS").pipe(
  Config.option,
  Config.map(Option.map((text) => Redacted.make(signingKeysOf(Redacted.value(text))))),
  Config.map(Option.filter((keys) => Redacted.value(keys).length > 0))
)

const platformName = Config.NonEmptyString("SERVER_PLATFORM_NAME").pipe(Config.withDefault("seatrial"))

const config = Config.all({
  corsOrigins: originSetting("SERVER_CORS_ORIGINS"),
  signingKeys,
  trustedProxies: networkSetting("SERVER_TRUSTED_PROXIES"),
  cursorKey: Config.schema(Schema.Redacted(Schema.String.check(Schema.isMinLength(16))), "SEATRIAL_CURSOR_KEY"),
  maxBodyBytes: Config.Int("SERVER_MAX_BODY_BYTES").pipe(Config.withDefault(1_048_576)),
  requestTimeout: Config.Duration("SERVER_REQUEST_TIMEOUT").pipe(Config.withDefault(Duration.seconds(60))),
  requireFirstPurchase: Config.Boolean("SERVER_REQUIRE_FIRST_PURCHASE").pipe(Config.withDefault(true)),
  platformName,
  issuer: Config.all({ issuer: Config.String("SERVER_ISSUER").pipe(Config.withDefault("")), platformName }).pipe(
    Config.map(({ issuer, platformName }) => (issuer === "" ? platformName : issuer))
  ),
  rates: Config.all({
    readsPerKey: perSecond("SERVER_READS_PER_KEY", 25, 50),
    readsPerOrg: perSecond("SERVER_READS_PER_ORG", 100, 200),
    previewsPerOrg: perMinute("SERVER_PREVIEWS_PER_ORG", 30),
    writesPerOrg: perMinute("SERVER_WRITES_PER_ORG", 20)
  })
})

/** The configuration of the routes. */
export class ServerSettings extends Context.Service<
  ServerSettings,
  {
    /** Origins whose pages may read responses (CORS). */
    readonly corsOrigins: ReadonlySet<string>
    /** Networks of proxies whose `X-Forwarded-For` is trusted. */
    readonly trustedProxies: ReadonlyArray<Network>
    readonly cursorKey: Redacted.Redacted<string>
    readonly maxBodyBytes: number
    readonly requestTimeout: Duration.Duration
    readonly requireFirstPurchase: boolean
    /** Entries of signing keys, the current one first. */
    readonly signingKeys: Option.Option<Redacted.Redacted<ReadonlyArray<string>>>
    /** `owned_by` of published models. */
    readonly platformName: string
    /** `iss` in the signatures of receipts. */
    readonly issuer: string
    readonly rates: Readonly<Record<"readsPerKey" | "readsPerOrg" | "previewsPerOrg" | "writesPerOrg", Rate>>
  }
>()("seatrial/ServerSettings") {
  static readonly layerConfig = Layer.effect(ServerSettings, config)
}

const months = (name: string) =>
  Config.schema(Schema.NumberFromString.check(Schema.isInt(), Schema.isBetween({ minimum: 0, maximum: 1_200 })), name).pipe(
    Config.withDefault(0),
    Config.map((value) => (value === 0 ? null : value))
  )

/** How long requests and receipts are kept. */
export const retention: Config.Config<RetentionSettings> = Config.all({
  requests: months("SERVER_KEEP_REQUESTS_MONTHS"),
  receipts: months("SERVER_KEEP_RECEIPTS_MONTHS")
})

/** Address and timeouts of the server program. */
export const listening: Config.Config<{
  readonly host: string
  readonly port: number
  readonly gracefulShutdownTimeout: Duration.Duration
  readonly clients: ClientTimeouts
}> = Config.all({
  clients: Config.all({
    headers: Config.Duration("SERVER_HEADERS_TIMEOUT").pipe(Config.withDefault(defaultClientTimeouts.headers)),
    request: Config.Duration("SERVER_RECEIVE_TIMEOUT").pipe(Config.withDefault(defaultClientTimeouts.request)),
    keepAlive: Config.Duration("SERVER_KEEP_ALIVE_TIMEOUT").pipe(Config.withDefault(defaultClientTimeouts.keepAlive)),
    stalled: Config.Duration("SERVER_STALLED_TIMEOUT").pipe(Config.withDefault(defaultClientTimeouts.stalled))
  }),
  host: Config.String("SERVER_HOST").pipe(Config.withDefault("127.0.0.1")),
  port: Config.schema(Schema.NumberFromString.check(Schema.isInt(), Schema.isBetween({ minimum: 0, maximum: 65_535 })), "SERVER_PORT").pipe(
    Config.withDefault(8080)
  ),
  gracefulShutdownTimeout: Config.Duration("SERVER_SHUTDOWN_TIMEOUT").pipe(Config.withDefault(Duration.seconds(20)))
})
