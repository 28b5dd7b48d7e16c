import { Config, Context, Duration, Layer, type Redacted } from "effect"
import type { Rate } from "./RateLimits.ts"

/** One setting as `--help` shows it; `default` null where it has to be given. */
export interface Setting {
  readonly name: string
  readonly description: string
  readonly default: string | null
}

/** The server's settings, read from the environment. */
export const settings: ReadonlyArray<Setting> = [
  { name: "SERVER_HOST", description: "Address to listen on.", default: "127.0.0.1" },
  { name: "SERVER_PORT", description: "Port to listen on; 0 takes a free one.", default: "8080" },
  { name: "SEATRIAL_CURSOR_KEY", description: "Secret of at least 16 characters that list cursors are signed with; the same for all servers.", default: null },
  { name: "SERVER_MAX_BODY_BYTES", description: "Largest request body, in bytes.", default: "1048576" },
  { name: "SERVER_REQUIRE_FIRST_PURCHASE", description: "Whether an organisation has to make a purchase before it deploys.", default: "true" },
  { name: "SERVER_READS_PER_KEY", description: "Reads of one API key per second.", default: "25" },
  { name: "SERVER_READS_PER_KEY_BURST", description: "Reads of one API key at once.", default: "50" },
  { name: "SERVER_READS_PER_ORG", description: "Reads of one organisation per second.", default: "100" },
  { name: "SERVER_READS_PER_ORG_BURST", description: "Reads of one organisation at once.", default: "200" },
  { name: "SERVER_PREVIEWS_PER_ORG", description: "Previews of one organisation per minute, and at once.", default: "30" },
  { name: "SERVER_WRITES_PER_ORG", description: "Creates and cancels of one organisation per minute, and at once.", default: "20" },
  { name: "SERVER_SHUTDOWN_TIMEOUT", description: "How long requests in flight may take when the server is told to stop.", default: "20 seconds" },
  { name: "DATABASE_URL", description: "Address of the Postgres database.", default: null },
  { name: "DATABASE_POOL_SIZE", description: "Connections to the database.", default: "10" },
  { name: "HF_ENDPOINT", description: "Address of the model hub.", default: "https://huggingface.co" }
]

const perSecond = (name: string, rate: number, burst: number) =>
  Config.all({
    perSecond: Config.Number(name).pipe(Config.withDefault(rate)),
    burst: Config.Number(`${name}_BURST`).pipe(Config.withDefault(burst))
  })

const perMinute = (name: string, rate: number) =>
  Config.Number(name).pipe(
    Config.withDefault(rate),
    Config.map((value): Rate => ({ perSecond: value / 60, burst: value }))
  )

const config = Config.all({
  cursorKey: Config.Redacted("SEATRIAL_CURSOR_KEY"),
  maxBodyBytes: Config.Int("SERVER_MAX_BODY_BYTES").pipe(Config.withDefault(1_048_576)),
  requireFirstPurchase: Config.Boolean("SERVER_REQUIRE_FIRST_PURCHASE").pipe(Config.withDefault(true)),
  rates: Config.all({
    readsPerKey: perSecond("SERVER_READS_PER_KEY", 25, 50),
    readsPerOrg: perSecond("SERVER_READS_PER_ORG", 100, 200),
    previewsPerOrg: perMinute("SERVER_PREVIEWS_PER_ORG", 30),
    writesPerOrg: perMinute("SERVER_WRITES_PER_ORG", 20)
  })
})

/** What the routes depend on of the configuration. */
export class ServerSettings extends Context.Service<
  ServerSettings,
  {
    readonly cursorKey: Redacted.Redacted<string>
    readonly maxBodyBytes: number
    readonly requireFirstPurchase: boolean
    readonly rates: Readonly<Record<"readsPerKey" | "readsPerOrg" | "previewsPerOrg" | "writesPerOrg", Rate>>
  }
>()("seatrial/ServerSettings") {
  static readonly layerConfig = Layer.effect(ServerSettings, config)
}

/** Where and how long the stand-alone server listens. */
export const listening: Config.Config<{ readonly host: string; readonly port: number; readonly gracefulShutdownTimeout: Duration.Duration }> = Config.all({
  host: Config.String("SERVER_HOST").pipe(Config.withDefault("127.0.0.1")),
  port: Config.Port("SERVER_PORT").pipe(Config.withDefault(8080)),
  gracefulShutdownTimeout: Config.Duration("SERVER_SHUTDOWN_TIMEOUT").pipe(Config.withDefault(Duration.seconds(20)))
})
