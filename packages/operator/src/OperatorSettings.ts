import { Config } from "effect"
import { WebhookSettings } from "./webhook/WebhookSettings.ts"

/** The environment variables of the operator, for `--help`. */
export const operatorSettings = [
  { name: "OPERATOR_NAMESPACE", description: "Namespace of deployments, their pods and Jobs", default: "seatrial" },
  {
    name: "OPERATOR_ORGANIZATION",
    description: "Slug of the organization that owns the ModelDeployments applied in the namespace; if unset, these ModelDeployments are refused"
  },
  {
    name: "OPERATOR_ORGANIZATIONS",
    description: "Organizations of further namespaces, as namespace=slug, separated by commas. The operator needs a Role in each of these namespaces"
  },
  {
    name: "OPERATOR_REQUIRE_FIRST_PURCHASE",
    description: "Whether an organization must make a purchase before it deploys. Set the same value as in SERVER_REQUIRE_FIRST_PURCHASE",
    default: true
  },
  { name: "OPERATOR_LEASE_SECONDS", description: "Seconds after which another operator takes over from an unresponsive one; at least 3", default: 15 },
  {
    name: "OPERATOR_COUNT_ALL_PODS",
    description: "Whether GPUs of pods in other namespaces count as taken; the operator then lists and watches the pods of the cluster",
    default: false
  },
  { name: "OPERATOR_CONCURRENCY", description: "Runs that are reconciled at once", default: 16 },
  {
    name: "OPERATOR_KEEP_FINISHED_DAYS",
    description:
      "Days to keep the ModelDeployment of a finished API deployment in the cluster. Records, and ModelDeployments that someone applied, are never deleted. 0: keep it forever",
    default: 30
  },
  {
    name: "OPERATOR_KEEP_DECISION_DAYS",
    description: "Days to keep the records of the operator's decisions, which seatrial why shows. 0 records none and deletes earlier ones",
    default: 14
  },
  {
    name: "OPERATOR_UNPAID_GRACE_SECONDS",
    description:
      "Seconds for which engines continue after the balance of their prepaid organization is used up or its billing is suspended; then they release their GPUs",
    default: 3_600
  },
  {
    name: "OPERATOR_FAILED_CAPABILITY",
    description: "What happens if a capability fails its check: withdraw (the model is served without it) or fail (the run fails)",
    default: "withdraw"
  },
  {
    name: "OPERATOR_SENTINEL_SECONDS",
    description: "Seconds between two probes of a serving engine, which compare it with its trial; at least 10. 0: serving engines get no probes",
    default: 60
  },
  { name: "OPERATOR_SENTINEL_SHARE", description: "Largest share of an engine's time that computes probes", default: 0.005 },
  {
    name: "OPERATOR_SENTINEL_ALPHA",
    description: "Largest probability with which a healthy engine may be replaced within a year because of its probes",
    default: 0.000001
  },
  {
    name: "OPERATOR_WEBHOOK_URL",
    description: "Address that gets a POST request for each serving engine whose probes differ from its trial, http or https; none by default"
  },
  {
    name: "OPERATOR_WEBHOOK_SECRET",
    description: "Key that signs these requests as Standard Webhooks does: whsec_ and 24 to 64 bytes in base64. If unset, they are not signed"
  },
  { name: "OPERATOR_REFERENCE_JOBS", description: "Jobs that compute references of commits at once; at least 1", default: 4 },
  {
    name: "OPERATOR_REFERENCE_JOBS_PER_ORGANIZATION",
    description: "Those among them that one organization's runs may use at once; at least 1",
    default: 2
  },
  { name: "OPERATOR_FETCH_IMAGE", description: "Image of the download Job; it must contain the seatrial command", default: "ghcr.io/seatrial/seatrial:0.1.0" },
  {
    name: "OPERATOR_PULL_SECRETS",
    description: "Names of the image pull secrets of download Jobs and engine pods, separated by commas; none by default"
  },
  { name: "OPERATOR_FETCH_SECONDS", description: "Time limit of a download in seconds", default: 21_600 },
  { name: "OPERATOR_WEIGHTS_CLAIM", description: "PersistentVolumeClaim for weights if a HostClass names none", default: "seatrial-weights" },
  {
    name: "OPERATOR_CA_CONFIG_MAP",
    description: "ConfigMap whose ca.crt holds additional certificates that download Jobs trust; none by default"
  },
  { name: "OPERATOR_HOST", description: "Address that /healthz, /readyz and /metrics listen on", default: "0.0.0.0" },
  { name: "OPERATOR_PORT", description: "Port of /healthz, /readyz and /metrics; 0 for none", default: 9090 },
  { name: "KUBECONFIG", description: "Kubeconfig of the cluster; absent: the pod's own service account, then ~/.kube/config" },
  {
    name: "SEATRIAL_ENCRYPTION_KEY",
    description: "Key that hub tokens are encrypted with at rest: 32 bytes in base64; earlier keys may follow it, separated by commas"
  },
  { name: "HF_ENDPOINT", description: "Address of the model hub, also for download Jobs", default: "https://huggingface.co" }
] as const

const text = (name: string, fallback: string) => Config.NonEmptyString(name).pipe(Config.withDefault(fallback))
const count = (name: string, fallback: number) => Config.Int(name).pipe(Config.withDefault(fallback))

/** Slugs by namespace, from `namespace=slug,...`. Entries without `=` are ignored. */
const namespacesOf = (text: string): ReadonlyMap<string, string> =>
  new Map(
    text.split(",").flatMap((entry) => {
      const [namespace = "", slug = ""] = entry.split("=").map((part) => part.trim())
      return namespace === "" || slug === "" ? [] : [[namespace, slug] as const]
    })
  )

const namesOf = (text: string): ReadonlyArray<string> =>
  text
    .split(",")
    .map((name) => name.trim())
    .filter((name) => name !== "")

/** Hub settings that a download Job inherits from the operator if they are set. */
const ofDownloads = [
  "HUB_TIMEOUT",
  "HUB_RETRIES",
  "HUB_RETRY_DELAY",
  "HUB_CONCURRENCY",
  "HUB_CHUNK_BYTES",
  "HUB_DOWNLOAD_RETRIES",
  "HUB_REDIRECT_HOSTS",
  "NODE_USE_ENV_PROXY",
  "HTTP_PROXY",
  "HTTPS_PROXY",
  "NO_PROXY",
  "http_proxy",
  "https_proxy",
  "no_proxy"
] as const

const optionalVariable = (name: string) =>
  Config.String(name).pipe(
    Config.map((value) => [{ name, value }]),
    Config.withDefault([])
  )

/** See `operatorSettings` for the meaning of each. */
export const OperatorSettings = Config.all({
  namespace: text("OPERATOR_NAMESPACE", "seatrial"),
  organization: Config.String("OPERATOR_ORGANIZATION").pipe(
    Config.withDefault(""),
    Config.map((slug) => (slug === "" ? null : slug))
  ),
  organizations: Config.String("OPERATOR_ORGANIZATIONS").pipe(Config.withDefault(""), Config.map(namespacesOf)),
  requireFirstPurchase: Config.Boolean("OPERATOR_REQUIRE_FIRST_PURCHASE").pipe(Config.withDefault(true)),
  leaseSeconds: count("OPERATOR_LEASE_SECONDS", 15).pipe(Config.map((seconds) => Math.max(3, seconds))),
  countAllPods: Config.Boolean("OPERATOR_COUNT_ALL_PODS").pipe(Config.withDefault(false)),
  concurrency: count("OPERATOR_CONCURRENCY", 16).pipe(Config.map((passes) => Math.max(1, passes))),
  keepFinishedDays: Config.Finite("OPERATOR_KEEP_FINISHED_DAYS").pipe(
    Config.withDefault(30),
    Config.map((days) => Math.max(0, days))
  ),
  keepDecisionDays: count("OPERATOR_KEEP_DECISION_DAYS", 14).pipe(Config.map((days) => Math.max(0, days))),
  unpaidGraceSeconds: count("OPERATOR_UNPAID_GRACE_SECONDS", 3_600).pipe(Config.map((seconds) => Math.max(0, seconds))),
  failedCapability: Config.Literals(["withdraw", "fail"], "OPERATOR_FAILED_CAPABILITY").pipe(Config.withDefault("withdraw" as const)),
  sentinelSeconds: Config.Finite("OPERATOR_SENTINEL_SECONDS").pipe(
    Config.withDefault(60),
    Config.map((seconds) => (seconds <= 0 ? 0 : Math.max(10, seconds)))
  ),
  sentinelShare: Config.Finite("OPERATOR_SENTINEL_SHARE").pipe(
    Config.withDefault(0.005),
    Config.map((share) => Math.min(0.5, Math.max(0.0001, share)))
  ),
  sentinelAlpha: Config.Finite("OPERATOR_SENTINEL_ALPHA").pipe(
    Config.withDefault(1e-6),
    Config.map((alpha) => Math.min(0.01, Math.max(1e-12, alpha)))
  ),
  webhook: WebhookSettings,
  referenceLimits: Config.all({
    inAll: count("OPERATOR_REFERENCE_JOBS", 4).pipe(Config.map((jobs) => Math.max(1, jobs))),
    perOrganization: count("OPERATOR_REFERENCE_JOBS_PER_ORGANIZATION", 2).pipe(Config.map((jobs) => Math.max(1, jobs)))
  }),
  fetchImage: text("OPERATOR_FETCH_IMAGE", "ghcr.io/seatrial/seatrial:0.1.0"),
  pullSecrets: Config.String("OPERATOR_PULL_SECRETS").pipe(Config.withDefault(""), Config.map(namesOf)),
  fetchSeconds: count("OPERATOR_FETCH_SECONDS", 21_600),
  weightsClaim: text("OPERATOR_WEIGHTS_CLAIM", "seatrial-weights"),
  caConfigMap: Config.String("OPERATOR_CA_CONFIG_MAP").pipe(
    Config.withDefault(""),
    Config.map((name) => (name === "" ? null : name))
  ),
  downloadEnvironment: Config.all(ofDownloads.map(optionalVariable)).pipe(Config.map((each) => each.flat())),
  hubEndpoint: text("HF_ENDPOINT", "https://huggingface.co")
})
export type OperatorSettings = Config.Success<typeof OperatorSettings>
