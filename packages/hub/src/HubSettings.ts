import { HUB_URL } from "@huggingface/hub"
import { Config, Duration } from "effect"

const list = (text: string): ReadonlyArray<string> =>
  text
    .split(",")
    .map((item) => item.trim().toLowerCase())
    .filter((item) => item !== "")

/**
 * How the hub is spoken to.
 * `HF_ENDPOINT`: its address (default: the public hub). `HUB_TIMEOUT`: longest wait for an answer, or for the next bytes of one (default 20 seconds).
 * `HUB_RETRIES` and `HUB_RETRY_DELAY`: how often a request that failed in passing is sent again, and the first pause, which doubles (default 3, 500 milliseconds).
 * `HUB_CONCURRENCY`: files downloaded at once (default 4). `HUB_DENIED_LICENSES`: licences that are refused, separated by commas (default none).
 */
export const HubSettings = Config.all({
  endpoint: Config.URL("HF_ENDPOINT").pipe(
    Config.map((url) => url.href.replace(/\/+$/, "")),
    Config.withDefault(HUB_URL)
  ),
  timeout: Config.Duration("HUB_TIMEOUT").pipe(Config.withDefault(Duration.seconds(20))),
  retries: Config.Int("HUB_RETRIES").pipe(Config.withDefault(3)),
  retryDelay: Config.Duration("HUB_RETRY_DELAY").pipe(Config.withDefault(Duration.millis(500))),
  concurrency: Config.Int("HUB_CONCURRENCY").pipe(Config.withDefault(4)),
  deniedLicenses: Config.String("HUB_DENIED_LICENSES").pipe(Config.map(list), Config.withDefault(list("")))
})
export type HubSettings = Config.Success<typeof HubSettings>
