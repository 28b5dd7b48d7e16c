import { type Network, networkSetting, originSetting } from "@seatrial/domain"
import { SpoolSettings } from "@seatrial/store"
import { Config, Context, Effect, Layer, Redacted, Schema } from "effect"
import type { RequestRateSettings } from "./RequestRates.ts"
import type { RoutingSettings } from "./routing/RoutingSettings.ts"

export interface GatewaySettings {
  /** Bytes. */
  readonly maxBody: number
  readonly bodies: number
  readonly perKey: number
  readonly perOrg: number
  readonly rates: RequestRateSettings
  /** Milliseconds. */
  readonly bodyTimeout: number
  /** Bytes a second. */
  readonly bodyRate: number
  readonly firstFrame: number
  readonly whole: number
  readonly stream: number
  readonly silence: number
  readonly heartbeat: number
  readonly writeStall: number
  /** Origins whose pages may read answers. */
  readonly corsOrigins: ReadonlySet<string>
  /** Proxies whose `X-Forwarded-For` is trusted. */
  readonly trustedProxies: ReadonlyArray<Network>
  readonly abandoned: number
  readonly revoked: number
  readonly platformName: string
  readonly connect: number
  readonly routing: RoutingSettings
  readonly cacheSecret: Redacted.Redacted<string>
  readonly images: ImageSettings
}

/** Settings of image downloads. */
export interface ImageSettings {
  /** Milliseconds until a connection must be open, and for one image in total. */
  readonly connect: number
  readonly whole: number
  /** Concurrent downloads per organization. */
  readonly atOnce: number
  /** Networks that are blocked in addition to all non-public addresses. */
  readonly inside: ReadonlyArray<Network>
}

/** Every setting of the gateway: its name, what it does and its default. Times are in seconds. */
export const gatewaySettings = [
  { name: "GATEWAY_HOST", description: "Address to listen on", default: "0.0.0.0" },
  { name: "GATEWAY_PORT", description: "Port to listen on; 0 for a free one", default: 8081 },
  { name: "GATEWAY_METRICS_PORT", description: "Port of /metrics, never the public port; 0 for none", default: 0 },
  { name: "GATEWAY_METRICS_HOST", description: "Address that /metrics listens on", default: "0.0.0.0" },
  { name: "GATEWAY_GRACE_SECONDS", description: "Time that requests under way have to end when the gateway is stopped", default: 30 },
  {
    name: "GATEWAY_DRAIN_SECONDS",
    description: "Time for which it still serves who comes when it is stopped, before that; /readyz says 503 then",
    default: 10
  },
  { name: "GATEWAY_MAX_BODY_BYTES", description: "Largest request body, in bytes", default: 16 * 1024 * 1024 },
  {
    name: "GATEWAY_BODIES_BYTES",
    description:
      "Bytes of request bodies and downloaded images kept at once, of all callers together, until they are answered or their streams have begun, bodies with characters beyond ASCII, or escaped ones, counted twice. One organization gets as much as it leaves free, so at most half; further bodies of it get 429. An eighth is for the first 64 KiB of each body",
    default: 256 * 1024 * 1024
  },
  { name: "GATEWAY_KEY_CONCURRENCY", description: "Requests under way at once for one API key", default: 64 },
  { name: "GATEWAY_ORG_CONCURRENCY", description: "Requests under way at once for one organization", default: 256 },
  { name: "GATEWAY_REQUESTS_PER_KEY", description: "Requests of one API key per second, refused ones too", default: 200 },
  { name: "GATEWAY_REQUESTS_PER_KEY_BURST", description: "Requests of one API key at once", default: 1_000 },
  { name: "GATEWAY_REQUESTS_PER_ORG", description: "Requests of one organization per second, refused ones too", default: 500 },
  { name: "GATEWAY_REQUESTS_PER_ORG_BURST", description: "Requests of one organization at once", default: 2_000 },
  { name: "GATEWAY_BODY_SECONDS", description: "Time in which a request body must have arrived", default: 30 },
  { name: "GATEWAY_BODY_BYTES_PER_SECOND", description: "Least bytes a second at which a body must arrive, as the mean of each 5 seconds", default: 16 * 1024 },
  { name: "GATEWAY_FIRST_FRAME_SECONDS", description: "Time until an engine's first frame of a stream", default: 300 },
  { name: "GATEWAY_WHOLE_SECONDS", description: "Time for an answer that is not streamed", default: 600 },
  { name: "GATEWAY_STREAM_SECONDS", description: "Time for a whole stream", default: 3_600 },
  { name: "GATEWAY_SILENCE_SECONDS", description: "Silence of an engine within a stream after which it counts as dead", default: 60 },
  { name: "GATEWAY_HEARTBEAT_SECONDS", description: "Silence after which a comment keeps a stream's connection alive", default: 15 },
  { name: "GATEWAY_WRITE_STALL_SECONDS", description: "Time a caller may take to read what waits for it", default: 60 },
  {
    name: "GATEWAY_ABANDONED_SECONDS",
    description: "Time for which an engine goes on with a stream after its caller left, until it reports the usage; then the prompt is counted without it",
    default: 30
  },
  {
    name: "GATEWAY_REVOKED_SECONDS",
    description: "Time for which an engine goes on after the caller's key was revoked or has expired, or the organization was suspended",
    default: 20
  },
  { name: "GATEWAY_CONNECT_SECONDS", description: "Time until a connection to an engine must be open", default: 1 },
  { name: "GATEWAY_ENGINE_CONCURRENCY", description: "Requests at once for an engine of which nothing was measured", default: 256 },
  { name: "GATEWAY_QUEUE_SECONDS", description: "Longest wait of a request for an engine with room", default: 30 },
  { name: "GATEWAY_COLD_SECONDS", description: "Longest wait of a request for a model that has no engine yet", default: 55 },
  { name: "GATEWAY_COLD_WAITING", description: "Requests that may wait for a model that has no engine yet", default: 256 },
  { name: "GATEWAY_SCRAPE_SECONDS", description: "Pause between two looks at the metrics of an engine that has traffic", default: 1 },
  { name: "GATEWAY_HEALTH_SECONDS", description: "Pause between two looks at its health, where another engine could serve", default: 2 },
  { name: "GATEWAY_HANG_SECONDS", description: "Silence of an engine with work after which other engines are asked", default: 30 },
  { name: "GATEWAY_IMAGE_SECONDS", description: "Time for the download of an image", default: 5 },
  { name: "GATEWAY_IMAGE_CONNECT_SECONDS", description: "Time until the connection to an image's host is open", default: 2 },
  { name: "GATEWAY_IMAGE_CONCURRENCY", description: "Downloads of images at once for one organization", default: 4 },
  {
    name: "GATEWAY_CLUSTER_NETWORKS",
    description: "Public networks of the cluster's own, separated by commas, as 203.0.113.0/24: no image is downloaded from them, nor from any private network",
    default: "none"
  },
  {
    name: "GATEWAY_TRUSTED_PROXIES",
    description:
      "Networks of the proxies in front of the gateway, separated by commas, as 10.0.0.0/8: the client's address is then the last one in X-Forwarded-For outside of them. Failed API keys are limited per address",
    default: "none"
  },
  { name: "GATEWAY_PLATFORM_NAME", description: "Whose the published models are, as the server's SERVER_PLATFORM_NAME", default: "seatrial" },
  {
    name: "GATEWAY_CORS_ORIGINS",
    description: "Origins whose pages browsers let in, exact and separated by commas, as https://app.example.com; none by default",
    default: ""
  },
  { name: "GATEWAY_ACCESS_LOG", description: "Whether a line of JSON is logged for each request", default: "false" },
  {
    name: "GATEWAY_CACHE_SECRET",
    description:
      "Secret of the salts that separate organizations' prefix caches inside engines, the same for all gateways; without one the salts can be worked out",
    default: ""
  },
  {
    name: "GATEWAY_SPOOL",
    description: "Folder of its own, on a local disk, for records that the database does not take within two seconds; without it such requests fail",
    default: ""
  },
  { name: "GATEWAY_SPOOL_BYTES", description: "Largest size of that folder, in bytes", default: 256 * 1024 * 1024 }
] as const

const byName = new Map<string, string | number>(gatewaySettings.map((entry) => [entry.name, entry.default]))
type Name = (typeof gatewaySettings)[number]["name"]

// `Config.Port` does not accept 0, which selects a free port.
const Port = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 65_535 }))
const Positive = Schema.Finite.check(Schema.isGreaterThan(0))
const setting = (name: Name) => Config.schema(Schema.FiniteFromString.pipe(Schema.decodeTo(Positive)), name).pipe(Config.withDefault(Number(byName.get(name))))
/** A bucket must hold at least one token, or no request could ever pass. */
const atLeastOne = (name: Name) =>
  Config.schema(Schema.FiniteFromString.check(Schema.isGreaterThanOrEqualTo(1)), name).pipe(Config.withDefault(Number(byName.get(name))))
const rate = (perSecond: Name, burst: Name) => Config.all({ perSecond: setting(perSecond), burst: atLeastOne(burst) })
/** Milliseconds. Node fires longer timers at once. */
const longestTimer = 2 ** 31 - 1
const seconds = (name: Name) => setting(name).pipe(Config.map((value) => value * 1_000))

/** The address that the gateway listens on; `drain` and `grace` are in milliseconds. */
export const listenSettings = Config.all({
  host: Config.String("GATEWAY_HOST").pipe(Config.withDefault(String(byName.get("GATEWAY_HOST")))),
  port: Config.schema(Schema.FiniteFromString.pipe(Schema.decodeTo(Port)), "GATEWAY_PORT").pipe(Config.withDefault(Number(byName.get("GATEWAY_PORT")))),
  drain: Config.schema(Schema.FiniteFromString.check(Schema.isGreaterThanOrEqualTo(0)), "GATEWAY_DRAIN_SECONDS").pipe(
    Config.withDefault(Number(byName.get("GATEWAY_DRAIN_SECONDS"))),
    Config.map((value) => value * 1_000)
  ),
  grace: Config.Number("GATEWAY_GRACE_SECONDS").pipe(
    Config.withDefault(Number(byName.get("GATEWAY_GRACE_SECONDS"))),
    Config.map((value) => value * 1_000)
  )
})

/** The folder that keeps records while the database is unavailable; null if it is not configured. */
export const layerSpool = Layer.effect(
  SpoolSettings,
  Effect.gen(function* () {
    const folder = yield* Config.String("GATEWAY_SPOOL").pipe(Config.withDefault(""))
    const maxBytes = yield* setting("GATEWAY_SPOOL_BYTES")
    return folder === "" ? null : { folder, maxBytes }
  })
)

export class GatewayConfig extends Context.Service<GatewayConfig, GatewaySettings>()("seatrial/GatewayConfig") {
  static readonly layer = Layer.effect(
    GatewayConfig,
    Effect.gen(function* () {
      return yield* Config.all({
        maxBody: setting("GATEWAY_MAX_BODY_BYTES"),
        bodies: setting("GATEWAY_BODIES_BYTES"),
        perKey: setting("GATEWAY_KEY_CONCURRENCY"),
        perOrg: setting("GATEWAY_ORG_CONCURRENCY"),
        rates: Config.all({
          perKey: rate("GATEWAY_REQUESTS_PER_KEY", "GATEWAY_REQUESTS_PER_KEY_BURST"),
          perOrg: rate("GATEWAY_REQUESTS_PER_ORG", "GATEWAY_REQUESTS_PER_ORG_BURST")
        }),
        bodyTimeout: seconds("GATEWAY_BODY_SECONDS"),
        bodyRate: setting("GATEWAY_BODY_BYTES_PER_SECOND"),
        firstFrame: seconds("GATEWAY_FIRST_FRAME_SECONDS"),
        whole: seconds("GATEWAY_WHOLE_SECONDS"),
        stream: seconds("GATEWAY_STREAM_SECONDS"),
        silence: seconds("GATEWAY_SILENCE_SECONDS"),
        heartbeat: seconds("GATEWAY_HEARTBEAT_SECONDS"),
        writeStall: seconds("GATEWAY_WRITE_STALL_SECONDS"),
        corsOrigins: originSetting("GATEWAY_CORS_ORIGINS" satisfies Name),
        trustedProxies: networkSetting("GATEWAY_TRUSTED_PROXIES" satisfies Name),
        abandoned: seconds("GATEWAY_ABANDONED_SECONDS").pipe(Config.map((millis) => Math.min(millis, longestTimer))),
        revoked: seconds("GATEWAY_REVOKED_SECONDS").pipe(Config.map((millis) => Math.min(millis, longestTimer))),
        platformName: Config.NonEmptyString("GATEWAY_PLATFORM_NAME" satisfies Name).pipe(Config.withDefault("seatrial")),
        connect: seconds("GATEWAY_CONNECT_SECONDS"),
        routing: Config.all({
          engineConcurrency: setting("GATEWAY_ENGINE_CONCURRENCY"),
          queueWait: seconds("GATEWAY_QUEUE_SECONDS"),
          coldWait: seconds("GATEWAY_COLD_SECONDS"),
          coldWaiting: setting("GATEWAY_COLD_WAITING"),
          scrape: seconds("GATEWAY_SCRAPE_SECONDS"),
          health: seconds("GATEWAY_HEALTH_SECONDS"),
          hang: seconds("GATEWAY_HANG_SECONDS")
        }),
        cacheSecret: Config.Redacted("GATEWAY_CACHE_SECRET" satisfies Name).pipe(Config.withDefault(Redacted.make(""))),
        images: Config.all({
          connect: seconds("GATEWAY_IMAGE_CONNECT_SECONDS"),
          whole: seconds("GATEWAY_IMAGE_SECONDS"),
          atOnce: setting("GATEWAY_IMAGE_CONCURRENCY"),
          inside: networkSetting("GATEWAY_CLUSTER_NETWORKS" satisfies Name)
        })
      })
    })
  )
}
