import { HUB_URL } from "@huggingface/hub"
import { Config, Duration } from "effect"

const list = (text: string): ReadonlyArray<string> =>
  text
    .split(",")
    .map((item) => item.trim().toLowerCase())
    .filter((item) => item !== "")

const names = (setting: string) => Config.String(setting).pipe(Config.map(list), Config.withDefault(list("")))

/** All settings of the hub client, for `--help`. The programs document `HF_ENDPOINT` themselves. */
export const hubSettings = [
  { name: "HUB_TIMEOUT", description: "Longest wait for an answer of the hub, or for the next bytes of one", default: "20 seconds" },
  { name: "HUB_PREVIEW_TIMEOUT", description: "Longest that a preview reads a repository", default: "5 seconds" },
  { name: "HUB_RETRIES", description: "How often a request to the hub that failed in passing is sent again", default: 3 },
  { name: "HUB_RETRY_DELAY", description: "First pause before that; it doubles", default: "500 millis" },
  { name: "HUB_CONCURRENCY", description: "Connections of one download", default: 8 },
  {
    name: "HUB_CHUNK_BYTES",
    description: "Bytes of a file that one of them asks for; a download that was killed brings no more than that again for each",
    default: 16_777_216
  },
  { name: "HUB_DOWNLOAD_RETRIES", description: "How often a download asks again where nothing comes, up to 30 seconds apart", default: 10 },
  {
    name: "HUB_REDIRECT_HOSTS",
    description: "Hosts at private addresses, besides its own, that the hub may redirect to, separated by commas; .name for all below a name",
    default: "none"
  },
  { name: "HUB_REMEMBER", description: "How long what was read of a commit is remembered", default: "10 minutes" },
  { name: "HUB_ALLOWED_LICENSES", description: "Licenses that are served, separated by commas; none stands for no license", default: "all" },
  { name: "HUB_DENIED_LICENSES", description: "Licenses that are refused, separated by commas", default: "none" },
  { name: "HUB_ASK_LICENSES", description: "Licenses that an administrator has to accept first", default: "none" },
  { name: "HUB_ACCEPTED_LICENSES", description: "What was accepted: repositories as owner/name, or licenses", default: "none" }
] as const

export const HubSettings = Config.all({
  endpoint: Config.URL("HF_ENDPOINT").pipe(
    Config.map((url) => url.href.replace(/\/+$/, "")),
    Config.withDefault(HUB_URL)
  ),
  timeout: Config.Duration("HUB_TIMEOUT").pipe(Config.withDefault(Duration.seconds(20))),
  previewTimeout: Config.Duration("HUB_PREVIEW_TIMEOUT").pipe(Config.withDefault(Duration.seconds(5))),
  retries: Config.Int("HUB_RETRIES").pipe(Config.withDefault(3)),
  retryDelay: Config.Duration("HUB_RETRY_DELAY").pipe(Config.withDefault(Duration.millis(500))),
  concurrency: Config.Int("HUB_CONCURRENCY").pipe(
    Config.withDefault(8),
    Config.map((connections) => Math.max(1, Math.min(64, connections)))
  ),
  chunkBytes: Config.Int("HUB_CHUNK_BYTES").pipe(
    Config.withDefault(16 * 1024 * 1024),
    Config.map((bytes) => Math.max(64 * 1024, bytes))
  ),
  downloadRetries: Config.Int("HUB_DOWNLOAD_RETRIES").pipe(Config.withDefault(10)),
  redirectHosts: names("HUB_REDIRECT_HOSTS"),
  remember: Config.Duration("HUB_REMEMBER").pipe(Config.withDefault(Duration.minutes(10))),
  allowedLicenses: names("HUB_ALLOWED_LICENSES"),
  deniedLicenses: names("HUB_DENIED_LICENSES"),
  askedLicenses: names("HUB_ASK_LICENSES"),
  acceptedLicenses: names("HUB_ACCEPTED_LICENSES")
})
export type HubSettings = Config.Success<typeof HubSettings>
