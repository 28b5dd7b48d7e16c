import { HUB_URL } from "@huggingface/hub"
import { Config, Duration } from "effect"

const list = (text: string): ReadonlyArray<string> =>
  text
    .split(",")
    .map((item) => item.trim().toLowerCase())
    .filter((item) => item !== "")

const names = (setting: string) => Config.String(setting).pipe(Config.map(list), Config.withDefault(list("")))

/** The end of the description of a list of licenses. */
const unstated = "; the word `none` in this list means repositories that state no license"

/** All settings of the hub client, for `--help`. The programs document `HF_ENDPOINT` themselves. */
export const hubSettings = [
  { name: "HUB_TIMEOUT", description: "Timeout until the hub starts to respond, and for each wait for more data of a response", default: "20 seconds" },
  { name: "HUB_PREVIEW_TIMEOUT", description: "Maximum time that a preview reads a repository", default: "5 seconds" },
  { name: "HUB_RETRIES", description: "Number of retries of a request to the hub after a transient failure", default: 3 },
  { name: "HUB_RETRY_DELAY", description: "First pause before a retry; each further pause is twice as long", default: "500 millis" },
  { name: "HUB_CONCURRENCY", description: "Connections of one download", default: 8 },
  {
    name: "HUB_CHUNK_BYTES",
    description: "Bytes of a file per request; after a kill, a download repeats at most this much per connection",
    default: 16_777_216
  },
  {
    name: "HUB_DOWNLOAD_RETRIES",
    description: "Number of retries if a download receives no data; the pause between retries is at most 30 seconds",
    default: 10
  },
  {
    name: "HUB_REDIRECT_HOSTS",
    description:
      "Hosts with private addresses that the hub may redirect to, in addition to the hub's own host, separated by commas; .name means all subdomains of name",
    default: "empty"
  },
  { name: "HUB_REMEMBER", description: "How long the data read from a commit is cached", default: "10 minutes" },
  { name: "HUB_ALLOWED_LICENSES", description: `Licenses that are served, separated by commas${unstated}`, default: "all" },
  { name: "HUB_DENIED_LICENSES", description: `Licenses that are refused, separated by commas${unstated}`, default: "empty" },
  { name: "HUB_ASK_LICENSES", description: `Licenses that an administrator must accept first, separated by commas${unstated}`, default: "empty" },
  {
    name: "HUB_ACCEPTED_LICENSES",
    description: `Repositories (owner/name) or licenses that an administrator has accepted, separated by commas${unstated}`,
    default: "empty"
  }
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
