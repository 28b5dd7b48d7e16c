import { HUB_URL } from "@huggingface/hub"
import { Config, Duration } from "effect"

const list = (text: string): ReadonlyArray<string> =>
  text
    .split(",")
    .map((item) => item.trim().toLowerCase())
    .filter((item) => item !== "")

/** How the hub is spoken to: every setting, for `--help`. `HF_ENDPOINT` is told by the programs themselves. */
export const hubSettings = [
  { name: "HUB_TIMEOUT", description: "Longest wait for an answer of the hub, or for the next bytes of one", default: "20 seconds" },
  { name: "HUB_RETRIES", description: "How often a request to the hub that failed in passing is sent again", default: 3 },
  { name: "HUB_RETRY_DELAY", description: "First pause before that; it doubles", default: "500 millis" },
  { name: "HUB_CONCURRENCY", description: "Files downloaded at once", default: 4 },
  { name: "HUB_DENIED_LICENSES", description: "Licenses that are refused, separated by commas", default: "none" }
] as const

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
