import { Effect } from "effect"
import type { Edit } from "./Edit.ts"
import { type EditStage, modelDeployment, object, spec } from "./EditStage.ts"

const mdep = `modeldeployment/${object}`
const otherId = "dep_01k3v7m8q2w4x6y8z0a2b4c6d8"
const largest = Number.MAX_SAFE_INTEGER
const transition = { lastTransitionTime: "2026-01-01T00:00:00Z", observedGeneration: 1 }

/** The operator writes all of the status again as it was. */
const status = (name: string, change: object | null): Edit => ({
  name: `status: ${name}`,
  make: ({ patch }) => patch(mdep, { status: change }, "--subresource=status"),
  shows: ({ shown, shownAtFirst }) => [shown, (text) => text === shownAtFirst]
})

const condition = (type: string, value: string): Edit =>
  status(`${type} is ${value} by hand`, { conditions: [{ type, status: value, reason: "Edited", message: "By hand.", ...transition }] })

const metadata = (name: string, change: object, undone?: object): Edit => ({
  name: `metadata: ${name}`,
  make: ({ patch }) => patch(mdep, { metadata: change }),
  ...(undone === undefined ? {} : { undo: ({ patch }: EditStage) => patch(mdep, { metadata: undone }) })
})

const refusedSpec = (name: string, change: object, refused: string): Edit => ({
  name: `spec: ${name}`,
  make: ({ patch }) => patch(mdep, { spec: change }),
  refused
})

/** The object says that the specification is not accepted; the model serves on. */
const notAccepted = (name: string, change: object, undone: object): Edit => ({
  name: `spec: ${name}`,
  make: ({ patch }) => patch(mdep, { spec: change }),
  undo: ({ patch }) => patch(mdep, { spec: undone }),
  shows: ({ kubectl }) => [kubectl("get", mdep, "-o", "jsonpath={.status.conditions[?(@.type=='Accepted')].status}"), (text) => text === "False"]
})

const created = (name: string, manifest: { readonly metadata: { readonly name: string } }, refused: string): Edit => ({
  name: `another object: ${name}`,
  make: ({ apply }) => apply(manifest),
  refused
})

/** Edits of the object that shows the model that serves, and objects next to it. */
export const deploymentEdits: ReadonlyArray<Edit> = [
  condition("Ready", "False"),
  condition("Ready", "Unknown"),
  condition("Accepted", "False"),
  status("the phase is failed", { phase: "failed" }),
  status("the endpoint is gone", { endpoint: null }),
  status("another endpoint", { endpoint: "globex/theirs" }),
  status("no conditions", { conditions: [] }),
  status("it is removed", null),
  status("another run", { deploymentId: otherId }),
  status("another host class", { hostClass: "none" }),
  status("the largest generation", { observedGeneration: largest }),
  status("the most GPUs", { gpus: largest }),
  status("a message of 20 KB", { message: "x".repeat(20_000) }),
  status("no pod", { pod: null }),
  {
    name: "status: a number that JavaScript does not represent",
    make: ({ patch }) => patch(mdep, { status: { gpus: 2 ** 60 } }, "--subresource=status"),
    refused: "should be less than or equal to 9007199254740991"
  },
  metadata("labels are removed", { labels: null }),
  metadata("the labels of another run", { labels: { "seatrial.dev/deployment": otherId, "seatrial.dev/role": "engine" } }, { labels: null }),
  metadata("an annotation of 100 KB", { annotations: { note: "x".repeat(100_000) } }, { annotations: { note: null } }),
  {
    ...metadata("the finalizer is removed", { finalizers: null }),
    shows: ({ kubectl }) => [kubectl("get", mdep, "-o", "jsonpath={.metadata.finalizers}"), (text) => text.includes("seatrial.dev/retire")]
  },
  metadata("a finalizer of someone else", { finalizers: ["seatrial.dev/retire", "example.com/mine"] }, { finalizers: ["seatrial.dev/retire"] }),
  notAccepted("a host class that does not exist", { serving: { hostClass: "none" } }, { serving: { hostClass: "sim-small" } }),
  notAccepted("another organization", { organization: "globex" }, { organization: null }),
  refusedSpec("another repository", { source: { repo: "seatrial/other" } }, "the repository of a model is immutable"),
  refusedSpec("a context beyond 2^53", { serving: { maxContext: 2 ** 60 } }, "maxContext"),
  refusedSpec("a context of 0", { serving: { maxContext: 0 } }, "maxContext"),
  refusedSpec("a negative context", { serving: { maxContext: -1 } }, "maxContext"),
  refusedSpec("a context as text", { serving: { maxContext: "512" } }, "maxContext"),
  refusedSpec("a factor of 1e300", { serving: { yarn: { factor: 1e300 } } }, "yarn.factor must be at most"),
  refusedSpec("65 engines", { replicas: 65 }, "spec.replicas"),
  refusedSpec("no engines", { replicas: 0 }, "spec.replicas"),
  refusedSpec("a reference with dots", { source: { ref: "a..b" } }, "ref must not contain '..'"),
  refusedSpec("a run of the API", { deploymentId: otherId }, "deploymentId is set by Seatrial"),
  created("the name of a run", modelDeployment(otherId.replace("_", "-"), spec), "names like dep-01... are reserved"),
  created("a name of 200 letters", modelDeployment("a".repeat(200), spec), "at most 64 characters"),
  created("no source", modelDeployment("empty", {}), "source"),
  {
    name: "another object: of a run that does not exist",
    make: ({ apply }) => apply(modelDeployment(otherId.replace("_", "-"), { ...spec, deploymentId: otherId, organization: "local", model: "ghost" })),
    shows: ({ kubectl }) => [
      kubectl("get", "mdep", otherId.replace("_", "-"), "-o", "jsonpath={.status.conditions[?(@.type=='Accepted')].reason}"),
      (text) => text === "NotAdopted"
    ],
    undo: ({ kubectl }) => kubectl("delete", "mdep", otherId.replace("_", "-"), "--timeout=60s")
  },
  {
    name: "another object: a repository that does not exist",
    make: ({ apply }) => apply(modelDeployment("missing", { ...spec, source: { repo: "seatrial/missing" } })),
    shows: ({ kubectl }) => [kubectl("get", "mdep", "missing", "-o", "jsonpath={.status.phase}"), (text) => text === "failed"],
    undo: ({ kubectl }) => kubectl("delete", "mdep", "missing", "--timeout=60s")
  },
  {
    name: "all events are deleted",
    make: ({ kubectl }) => kubectl("delete", "events", "--all")
  },
  {
    name: "a burst of twenty labels",
    make: ({ patch }) =>
      Effect.map(
        Effect.forEach(Array.from({ length: 20 }).keys(), (index) => patch(mdep, { metadata: { labels: { burst: String(index) } } }), { concurrency: 4 }),
        (printed) => printed.join("")
      ),
    undo: ({ patch }) => patch(mdep, { metadata: { labels: null } })
  }
]
