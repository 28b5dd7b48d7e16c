import { type Network, networkSetting, originSetting } from "@seatrial/domain"
import { SpoolSettings } from "@seatrial/store"
import { Config, Context, Effect, Layer, Redacted, Schema } from "effect"
import type { RequestRateSettings } from "./RequestRates.ts"
import type { RoutingSettings } from "./routing/RoutingSettings.ts"

export interface GatewaySettings {
  /** Bytes. */
  readonly maxBodyBytes: number
  readonly bodiesBytes: number
  readonly perKey: number
  readonly perOrg: number
  readonly rates: RequestRateSettings
  /** Milliseconds. */
  readonly bodyTimeoutMillis: number
  /** Bytes a second. */
  readonly bodyBytesPerSecond: number
  readonly firstFrameMillis: number
  readonly answerMillis: number
  readonly streamMillis: number
  readonly silenceMillis: number
  readonly heartbeatMillis: number
  readonly writeStallMillis: number
  /** Origins whose pages may read answers. */
  readonly corsOrigins: ReadonlySet<string>
  /** Proxies whose `X-Forwarded-For` is trusted. */
  readonly trustedProxies: ReadonlyArray<Network>
  readonly abandonedMillis: number
  readonly revokedMillis: number
  readonly platformName: string
  readonly connectMillis: number
  readonly routing: RoutingSettings
  readonly cacheSecret: Redacted.Redacted<string>
  readonly images: ImageSettings
}

/** Settings of image downloads. */
export interface ImageSettings {
  /** Milliseconds until a connection must be open, and for one image in total. */
  readonly connectMillis: number
  readonly totalMillis: number
  /** Concurrent downloads per organization. */
  readonly maxConcurrent: number
  /** Networks that are blocked in addition to all non-public addresses. */
  readonly blockedNetworks: ReadonlyArray<Network>
}

/** Every setting of the gateway: its name, what it does and its default. Times are in seconds. */
export const gatewaySettings = [
  { name: "GATEWAY_HOST", description: "Address to listen on", default: "0.0.0.0" },
  { name: "GATEWAY_PORT", description: "Port to listen on; 0 for a free one", default: 8081 },
  { name: "GATEWAY_METRICS_PORT", description: "Port of /metrics, never the public port; 0 for none", default: 0 },
  { name: "GATEWAY_METRICS_HOST", description: "Address that /metrics listens on", default: "0.0.0.0" },
  {
    name: "GATEWAY_GRACE_SECONDS",
    description: "Seconds for requests in progress to finish when the gateway stops, counted from the end of the drain time",
    default: 30
  },
  {
    name: "GATEWAY_DRAIN_SECONDS",
    description: "Seconds for which a stopping gateway still accepts requests, while /readyz answers 503, so that load balancers notice",
    default: 10
  },
  { name: "GATEWAY_MAX_BODY_BYTES", description: "Largest request body, in bytes", default: 16 * 1024 * 1024 },
  {
    name: "GATEWAY_BODIES_BYTES",
    description:
      "Memory for the request bodies, downloaded images and large answers of all callers, in bytes. A body uses it until its answer or stream begins, and counts twice if it has non-ASCII or escaped characters. An answer or a frame of a stream over 64 KiB uses it until its caller has read it. An organization gets more of this memory only while at least as much is free as it already uses. So a single organization can use at most half. Bodies and answers of the organization beyond that get 429. One eighth is reserved for the first 64 KiB of each request",
    default: 256 * 1024 * 1024
  },
  { name: "GATEWAY_KEY_CONCURRENCY", description: "Concurrent requests of one API key", default: 64 },
  { name: "GATEWAY_ORG_CONCURRENCY", description: "Concurrent requests of one organization", default: 256 },
  { name: "GATEWAY_REQUESTS_PER_KEY", description: "Requests per second of one API key, including refused requests", default: 200 },
  { name: "GATEWAY_REQUESTS_PER_KEY_BURST", description: "Largest burst of requests of one API key", default: 1_000 },
  { name: "GATEWAY_REQUESTS_PER_ORG", description: "Requests per second of one organization, including refused requests", default: 500 },
  { name: "GATEWAY_REQUESTS_PER_ORG_BURST", description: "Largest burst of requests of one organization", default: 2_000 },
  { name: "GATEWAY_BODY_SECONDS", description: "Seconds in which a request body must arrive", default: 30 },
  {
    name: "GATEWAY_BODY_BYTES_PER_SECOND",
    description: "Lowest rate at which a request body may arrive, in bytes per second, averaged over 5 seconds",
    default: 16 * 1024
  },
  { name: "GATEWAY_FIRST_FRAME_SECONDS", description: "Seconds until the first frame of an engine's stream must arrive", default: 300 },
  { name: "GATEWAY_WHOLE_SECONDS", description: "Seconds for an answer that is not streamed", default: 600 },
  { name: "GATEWAY_STREAM_SECONDS", description: "Seconds for a complete stream", default: 3_600 },
  { name: "GATEWAY_SILENCE_SECONDS", description: "Seconds of silence within a stream after which the engine counts as dead", default: 60 },
  {
    name: "GATEWAY_HEARTBEAT_SECONDS",
    description: "Seconds of silence after which the gateway sends a heartbeat to keep a stream's connection open",
    default: 15
  },
  { name: "GATEWAY_WRITE_STALL_SECONDS", description: "Seconds that a caller may take to read buffered data before its connection is closed", default: 60 },
  {
    name: "GATEWAY_ABANDONED_SECONDS",
    description:
      "Maximum seconds that an engine may continue a stream after the caller disconnects. The gateway waits for the engine to report the usage. If the engine does not report it in time, the gateway counts the tokens of the prompt",
    default: 30
  },
  {
    name: "GATEWAY_REVOKED_SECONDS",
    description: "Seconds for which a request continues after the caller's key was revoked or expired, or the organization was suspended",
    default: 20
  },
  { name: "GATEWAY_CONNECT_SECONDS", description: "Seconds until a connection to an engine must be open", default: 1 },
  { name: "GATEWAY_ENGINE_CONCURRENCY", description: "Concurrent requests for an engine whose concurrency was not measured", default: 256 },
  { name: "GATEWAY_QUEUE_SECONDS", description: "Seconds that a request may wait for an engine with a free slot", default: 30 },
  { name: "GATEWAY_COLD_SECONDS", description: "Seconds that a request may wait for the first engine of a model", default: 55 },
  { name: "GATEWAY_COLD_WAITING", description: "Requests that may wait for the first engine of a model", default: 256 },
  { name: "GATEWAY_SCRAPE_SECONDS", description: "Seconds between two readings of the metrics of an engine with traffic", default: 1 },
  { name: "GATEWAY_HEALTH_SECONDS", description: "Seconds between two health checks of an engine, if its model has another engine", default: 2 },
  {
    name: "GATEWAY_HANG_SECONDS",
    description: "If an engine has requests but gives no sign of life for this many seconds, the gateway sends requests to other engines",
    default: 30
  },
  { name: "GATEWAY_IMAGE_SECONDS", description: "Seconds for the download of an image", default: 5 },
  { name: "GATEWAY_IMAGE_CONNECT_SECONDS", description: "Seconds until a connection to the host of an image must be open", default: 2 },
  { name: "GATEWAY_IMAGE_CONCURRENCY", description: "Concurrent image downloads of one organization", default: 4 },
  {
    name: "GATEWAY_CLUSTER_NETWORKS",
    description:
      "Public networks that belong to the cluster, separated by commas, for example 203.0.113.0/24. Images are not downloaded from them, nor from any private network",
    default: "none"
  },
  {
    name: "GATEWAY_TRUSTED_PROXIES",
    description:
      "Networks of the proxies in front of the gateway, separated by commas, for example 10.0.0.0/8. The client's address is the last one in X-Forwarded-For outside these networks. Failed API keys are limited per address",
    default: "none"
  },
  { name: "GATEWAY_PLATFORM_NAME", description: "Owner of the published models; use the same value as the server's SERVER_PLATFORM_NAME", default: "seatrial" },
  {
    name: "GATEWAY_CORS_ORIGINS",
    description: "Exact origins whose pages may call the gateway (CORS), separated by commas, for example https://app.example.com",
    default: "empty"
  },
  { name: "GATEWAY_ACCESS_LOG", description: "Whether to log a line of JSON for each request", default: "false" },
  {
    name: "GATEWAY_CACHE_SECRET",
    description:
      "Secret for the salts that separate organizations' prefix caches inside engines; all gateways need the same. Without it, anyone who can reach an engine can compute the salts",
    default: ""
  },
  {
    name: "GATEWAY_SPOOL",
    description:
      "Folder on a local disk for records that the database does not accept within two seconds. Each gateway needs its own. Without it, such requests fail",
    default: ""
  },
  { name: "GATEWAY_SPOOL_BYTES", description: "Largest size of GATEWAY_SPOOL, in bytes", default: 256 * 1024 * 1024 }
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
        maxBodyBytes: setting("GATEWAY_MAX_BODY_BYTES"),
        bodiesBytes: setting("GATEWAY_BODIES_BYTES"),
        perKey: setting("GATEWAY_KEY_CONCURRENCY"),
        perOrg: setting("GATEWAY_ORG_CONCURRENCY"),
        rates: Config.all({
          perKey: rate("GATEWAY_REQUESTS_PER_KEY", "GATEWAY_REQUESTS_PER_KEY_BURST"),
          perOrg: rate("GATEWAY_REQUESTS_PER_ORG", "GATEWAY_REQUESTS_PER_ORG_BURST")
        }),
        bodyTimeoutMillis: seconds("GATEWAY_BODY_SECONDS"),
        bodyBytesPerSecond: setting("GATEWAY_BODY_BYTES_PER_SECOND"),
        firstFrameMillis: seconds("GATEWAY_FIRST_FRAME_SECONDS"),
        answerMillis: seconds("GATEWAY_WHOLE_SECONDS"),
        streamMillis: seconds("GATEWAY_STREAM_SECONDS"),
        silenceMillis: seconds("GATEWAY_SILENCE_SECONDS"),
        heartbeatMillis: seconds("GATEWAY_HEARTBEAT_SECONDS"),
        writeStallMillis: seconds("GATEWAY_WRITE_STALL_SECONDS"),
        corsOrigins: originSetting("GATEWAY_CORS_ORIGINS" satisfies Name),
        trustedProxies: networkSetting("GATEWAY_TRUSTED_PROXIES" satisfies Name),
        abandonedMillis: seconds("GATEWAY_ABANDONED_SECONDS").pipe(Config.map((millis) => Math.min(millis, longestTimer))),
        revokedMillis: seconds("GATEWAY_REVOKED_SECONDS").pipe(Config.map((millis) => Math.min(millis, longestTimer))),
        platformName: Config.NonEmptyString("GATEWAY_PLATFORM_NAME" satisfies Name).pipe(Config.withDefault("seatrial")),
        connectMillis: seconds("GATEWAY_CONNECT_SECONDS"),
        routing: Config.all({
          engineConcurrency: setting("GATEWAY_ENGINE_CONCURRENCY"),
          queueWaitMillis: seconds("GATEWAY_QUEUE_SECONDS"),
          coldWaitMillis: seconds("GATEWAY_COLD_SECONDS"),
          coldWaiting: setting("GATEWAY_COLD_WAITING"),
          scrapeIntervalMillis: seconds("GATEWAY_SCRAPE_SECONDS"),
          healthIntervalMillis: seconds("GATEWAY_HEALTH_SECONDS"),
          hangMillis: seconds("GATEWAY_HANG_SECONDS")
        }),
        cacheSecret: Config.Redacted("GATEWAY_CACHE_SECRET" satisfies Name).pipe(Config.withDefault(Redacted.make(""))),
        images: Config.all({
          connectMillis: seconds("GATEWAY_IMAGE_CONNECT_SECONDS"),
          totalMillis: seconds("GATEWAY_IMAGE_SECONDS"),
          maxConcurrent: setting("GATEWAY_IMAGE_CONCURRENCY"),
          blockedNetworks: networkSetting("GATEWAY_CLUSTER_NETWORKS" satisfies Name)
        })
      })
    })
  )
}
